"""Configuration of the logs, and the names of all metrics in one file.

Forbidden here: knowing what a name is used for.
"""

"""Logs and metrics, with all names of each in one file.

Forbidden here: knowing what a name is used for.
"""

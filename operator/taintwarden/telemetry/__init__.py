"""Logs and metrics: every name in one file each.

Forbidden here: knowing what a name is used for.
"""

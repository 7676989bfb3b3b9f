"""Checks of objects before they are stored, and additions to pods: for `validate`, `doctor` and the webhooks.

Forbidden here: I/O, and deciding about running pods.
"""

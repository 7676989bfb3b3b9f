"""Storage of objects as encoded JSON, with one revision counter and a recent history; lists and watches of objects.

Forbidden here: rules of kinds, admission, validation, HTTP.
"""

"""Storage of objects as encoded JSON with one revision counter and their recent history, and lists and watches of them.

Forbidden here: rules of kinds, admission, validation, HTTP.
"""

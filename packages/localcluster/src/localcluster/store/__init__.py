"""Storage: objects as encoded JSON under one revision counter, their recent history, lists and watches over both.

Forbidden here: rules of kinds, admission, validation, HTTP.
"""

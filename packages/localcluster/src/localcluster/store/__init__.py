"""Storage: objects as encoded JSON under one revision counter, their recent history, lists and watches over both.

Forbidden here: knowing what a Pod or a Node is, admission, validation, HTTP.
"""

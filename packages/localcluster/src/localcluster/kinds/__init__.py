"""The kinds this API server knows: their schemas, defaults, admission and validation.

One module a kind that has rules of its own. Forbidden here: HTTP, lists and watches, field management.
"""

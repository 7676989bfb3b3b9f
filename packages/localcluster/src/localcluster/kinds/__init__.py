"""The kinds of this API server: schemas, defaults, admission and validation.

Kinds with many rules have their own module. Forbidden here: HTTP, lists and watches, field management.
"""

"""Operations on the store: create, update, patch, apply, delete, evict.

All are synchronous, and therefore atomic. Forbidden here: HTTP, lists and watches.
"""

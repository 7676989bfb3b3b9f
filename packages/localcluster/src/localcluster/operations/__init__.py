"""What a request does, as a function on the store: create, update, patch, apply, delete, bind, evict.

Synchronous, so each is atomic. Forbidden here: HTTP, lists and watches.
"""

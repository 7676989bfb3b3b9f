"""What only kubectl asks for: discovery, OpenAPI, tables and their columns. No client of the tests needs it.

Forbidden here: HTTP, and changes of the store.
"""

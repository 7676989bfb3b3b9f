"""The API over HTTP: paths, media types, faults, the server.

Forbidden here: rules of kinds, and changes of the store except by `operations`.
"""

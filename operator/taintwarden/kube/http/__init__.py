"""Requests to the API server and its answers, over connections that are kept. Knows no kind of object."""

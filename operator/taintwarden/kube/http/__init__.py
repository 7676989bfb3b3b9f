"""Requests to the API server and its answers, over persistent connections. Knows no kind of object."""

"""Controllers that other clusters have beside their API server, as small as tests and demo need them.

They read and write the store as components of the cluster do. Forbidden here: HTTP, and deciding which pods go.
"""

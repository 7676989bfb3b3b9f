"""Controllers that run next to the API server in a cluster, reduced to what tests and demo need.

They read and write the store as components of the cluster do. Forbidden here: HTTP, and choosing pods to evict.
"""

"""Controllers of a cluster, reduced to the needs of tests and demo.

They read and write the store as trusted components. Forbidden here: HTTP, and choosing pods to evict.
"""

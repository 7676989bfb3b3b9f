"""The loop around the machine: clocks, the cache that feeds it, and the hands that carry out its commands.

Forbidden here: deciding who is evicted or when, and knowing kopf.
"""

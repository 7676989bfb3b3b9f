"""The loop around the machine: clocks, the cache that feeds it, and the effector that carries out its orders.

Forbidden here: deciding who is evicted or when, and knowing kopf.
"""

"""The loop around the machine: clocks, the handlers that feed it, and the effector that carries out its orders.

Forbidden here: deciding which pods are evicted or when.
"""

"""The loop around the machine: clocks, the handlers that feed it, and the effector that carries out its orders.

This package never decides which pods are evicted or when: the engine does.
"""

"""The decisions, pure: values in, values out.

Forbidden here: a clock (``now`` is an argument), I/O, logging, randomness, iterating over a set.
All that affects a decision passes through :mod:`taintwarden.engine.machine`.
"""

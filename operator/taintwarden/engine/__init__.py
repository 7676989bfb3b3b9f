"""The decisions, as pure functions of values.

Forbidden here: a clock (``now`` is an argument), I/O, logging, randomness, iterating over a set.
All input of a decision passes through :mod:`taintwarden.engine.machine`.
"""

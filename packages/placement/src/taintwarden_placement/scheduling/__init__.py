"""Which nodes suit a pod that is to be scheduled: the answers of the scheduler extender.

Forbidden here: I/O, and comparing values, which the engine does.
"""

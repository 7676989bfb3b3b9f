"""The answers of the scheduler extender: which nodes suit a pod that is not scheduled yet.

Forbidden here: I/O, and comparing values of taints, which the engine does.
"""

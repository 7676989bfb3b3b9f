"""What kopf calls: policies, profiles, the operator's life cycle, and the probes beside them.

Thin: decode and pass on. Forbidden here: logic about pods, taints or time.
"""

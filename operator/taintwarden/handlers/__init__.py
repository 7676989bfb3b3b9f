"""What kopf calls: policies, profiles, the operator's life cycle, and the probes beside them.

Thin: translate and hand over. Forbidden here: logic about pods, taints or time.
"""

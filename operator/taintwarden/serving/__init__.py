"""HTTP servers of every process: probes and metrics.

Thin: decode and pass on. Forbidden here: logic about pods, taints or time.
"""

"""What answers over HTTP: probes, metrics, webhooks, and the scheduler extender.

Thin: decode and pass on. Forbidden here: logic about pods, taints or time.
"""

"""``taintwarden publisher``: values that only Prometheus knows, published as taints of nodes.

What to publish is decided by pure modules: ``spec``, ``levels``, ``records``, ``samples``, ``deciding``, ``reporting``.
They take the time as an argument. Forbidden in them: a clock, I/O, kopf and the official client, which ``handlers``,
``rounds``, ``prometheus`` and ``cluster`` have. Forbidden everywhere: the operator's engine of evictions.
"""

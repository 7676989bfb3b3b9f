"""``taintwarden publisher``: values that only Prometheus knows, published as taints of nodes.

Pure modules decide what to publish: ``spec``, ``claims``, ``levels``, ``records``, ``samples``, ``deciding`` and
``reporting``. The time is an argument there. Forbidden in them: a clock, I/O, kopf and the official client, which
``handlers``, ``rounds``, ``prometheus`` and ``cluster`` use. Forbidden everywhere: the engine's machine and limits.
"""

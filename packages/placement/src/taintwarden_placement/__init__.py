"""Keeps pods off nodes that they would have to leave: labels of nodes, admission webhooks, and a scheduler extender.

The labeller in ``node_labels`` runs in the operator's process. The operator finds it as an entry point and imports
nothing from this package. The webhooks and the extender run in separate processes. ``affinity``, ``admission`` and
``scheduling`` are rules without I/O, also used by ``validate``, ``doctor``, ``explain`` and ``plan``. ``serving``
contains the HTTPS servers. Forbidden here: deciding about running pods.
"""

"""Keeps pods off nodes that they would have to leave: labels of nodes, admission webhooks, and a scheduler extender.

The labeller of ``node_labels`` runs in the operator's process, which finds it as an entry point and imports nothing of
this; webhooks and extender run in processes of their own. ``affinity``, ``admission`` and ``scheduling`` are rules
without I/O, which ``validate``, ``doctor``, ``explain`` and ``plan`` use as well; ``serving`` answers over HTTPS.
Forbidden here: deciding about pods that run.
"""

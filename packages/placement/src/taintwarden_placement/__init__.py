"""Keeps pods off nodes that they would have to leave: admission webhooks, scheduler extender, and their certificates.

These run in processes of their own; the operator works without them, and imports nothing of this. ``affinity``,
``admission`` and ``scheduling`` are rules without I/O, which ``validate``, ``doctor``, ``explain`` and ``plan`` use as
well; ``serving`` answers over HTTPS.
Forbidden here: deciding about pods that run.
"""

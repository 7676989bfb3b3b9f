"""Taintwarden decides when pods must leave a node whose taints changed.

The data flow, with one package for each step::

    watch          kube.watch                list and watch of pods, nodes and namespaces
    cache          controller.decoding       API objects become small values; the machine's state holds them
    evaluate       engine.evaluate           a verdict per taint, shared by all pods of a class on a node
    deadlines      engine.machine.queues     one heap; a new verdict replaces the old one
    limits         engine.limits             admit, or refuse with a reason and a time
    evict          kube.calls.evictor        one API call, with the pod's UID as precondition
    notify         controller.notifier       metric, log line, Event; controller.status_writer for the policy

``engine.machine`` makes every decision; ``controller.loop`` turns around it; ``app`` puts all together. ``serving`` is
what answers over HTTP, ``api`` what users write. What they run is the package ``taintwarden_cli``.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
"""As in pyproject.toml. What reads the metadata of the installed package takes a quarter of ``--version`` to import."""

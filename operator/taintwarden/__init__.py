"""Taintwarden decides when pods must leave a node whose taints changed.

The data flow, with one package for each step::

    watch          kube.watch                list and watch of pods, nodes and namespaces
    cache          controller.decoding       API objects become small values in the state of the machine
    evaluate       engine.evaluate           a verdict per taint, shared by all pods of a class on a node
    deadlines      engine.machine.queues     one heap; a new verdict replaces the old one
    limits         engine.limits             admit, or refuse with a reason and a time
    evict          kube.calls.evictor        one API call, with the pod's UID as precondition
    notify         controller.words          metric, log line, Event; controller.status for the policy

``engine.machine`` makes every decision, ``controller.loop`` runs it, ``app`` connects the objects. ``serving`` answers
over HTTP, ``api`` reads the objects that users write. The package ``taintwarden_cli`` contains the commands.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
"""The version in pyproject.toml. Reading it from metadata takes an import, a quarter of the time of ``--version``."""

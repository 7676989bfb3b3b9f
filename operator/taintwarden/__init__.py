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

>>> from taintwarden import tolerates
>>> tolerates({"key": "sla", "operator": "Gt", "value": "950"}, {"key": "sla", "value": "980", "effect": "NoExecute"})
True
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taintwarden.engine.model import Taint, Toleration

__all__ = ["Taint", "Toleration", "__version__", "tolerates"]

__version__ = "0.1.0"
"""As in pyproject.toml. What reads the metadata of the installed package takes a quarter of ``--version`` to import."""


def __getattr__(name: str) -> Any:
    """The structs, imported when they are asked for: every module of the package comes past here."""
    if name not in ("Taint", "Toleration"):
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from taintwarden.engine import model  # noqa: PLC0415

    return getattr(model, name)


def tolerates(toleration: "Toleration | Mapping[str, Any]", taint: "Taint | Mapping[str, Any]") -> bool:
    """Whether ``toleration`` tolerates ``taint``, with all seven operators; the taint's value is on the left.

    Both may be plain Kubernetes objects or our structs.

    Raises:
        msgspec.ValidationError: a field has the wrong type.

    """
    import msgspec  # noqa: PLC0415

    from taintwarden.engine.model import Taint, Toleration  # noqa: PLC0415
    from taintwarden.engine.operators import Match, match  # noqa: PLC0415

    ours = toleration if isinstance(toleration, Toleration) else msgspec.convert(toleration, Toleration)
    theirs = taint if isinstance(taint, Taint) else msgspec.convert(taint, Taint)
    return match(ours, theirs) is Match.HOLDS

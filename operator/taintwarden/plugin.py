"""Plugins from installed distributions, each an entry point: a source of taints, and a labeller of nodes."""

from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import entry_points
from typing import Any, Protocol

from taintwarden.controller.handlers.following import Spawn
from taintwarden.engine.events import Event, Feed
from taintwarden.engine.machine import NewSource
from taintwarden.engine.policy import Policy
from taintwarden.kube.calls.patching import Fence
from taintwarden.kube.http.client import Client
from taintwarden.kube.watch.watching import StreamTimings
from taintwarden.telemetry.metrics import Metrics

TAINT_SOURCE, LABELLER = "taintwarden.taint_source", "taintwarden.labeller"
"""Entry point group of each kind of plugin."""


class SourceFollowing(Protocol):
    """The streams of a source."""

    def policies_changed(self, policies: Iterable[Policy]) -> None:
        """Follow what these policies need, and nothing else."""


class SourcePlugin(Protocol):
    """A plugin that provides taints besides those in the spec of nodes."""

    new_source: NewSource
    """Creates the part that knows the taints, which like the machine does no I/O."""
    new_following: Callable[[Client, Feed, Metrics, StreamTimings, Spawn], SourceFollowing]
    """Creates the part that lists and watches, and feeds events to the machine."""


class Labeller(Protocol):
    """Writes labels of nodes. The machine decides without it, and does not know it."""

    def take(self, event: Event) -> None:
        """Process an event before the machine does."""


class LabellerPlugin(Protocol):
    """A plugin that provides a labeller."""

    Labeller: Callable[[Client, Fence, Callable[[Sequence[object]], None], Spawn], Labeller]
    """Creates it from the client, a fence that declines without the lease, a notice receiver, and a task starter."""


def load_plugin(group: str) -> Any:
    """Return the installed plugin of an entry point group, with the attributes of its protocol; None if there is none.

    Raises:
        RuntimeError: several distributions provide one.

    """
    found = list(entry_points(group=group))
    if len(found) > 1:
        named = ", ".join(sorted(str(entry_point.dist and entry_point.dist.name) for entry_point in found))
        msg = f"only one {group} can be installed, and these distributions offer one each: {named}"
        raise RuntimeError(msg)
    return found[0].load() if found else None

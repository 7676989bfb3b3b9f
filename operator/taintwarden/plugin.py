"""A source of taints beside those of nodes: an installed distribution offers one as an entry point."""

from collections.abc import Callable, Iterable
from importlib.metadata import entry_points
from typing import Protocol

from taintwarden.controller.handlers.following import Spawn
from taintwarden.controller.loop import Feed
from taintwarden.engine.machine import NewSource
from taintwarden.engine.model import Policy
from taintwarden.kube.http.client import Client
from taintwarden.kube.watch.watching import StreamTimings
from taintwarden.telemetry.metrics import Metrics

GROUP = "taintwarden.taint_source"


class SourceFollowing(Protocol):
    """The streams of a source."""

    def policies_changed(self, policies: Iterable[Policy]) -> None:
        """Other policies are in force: follow what they need, and nothing else."""


class SourcePlugin(Protocol):
    """What an entry point names: a module, or an object, with these."""

    new_source: NewSource
    """Makes the part that knows the taints: without I/O, as the machine that asks it."""
    new_following: Callable[[Client, Feed, Metrics, StreamTimings, Spawn], SourceFollowing]
    """Makes the part that lists and watches: what its streams deliver is fed to the machine."""


def installed() -> SourcePlugin | None:
    """The plugin that is installed; None: there is none.

    Raises:
        RuntimeError: there are several.

    """
    found = list(entry_points(group=GROUP))
    if len(found) > 1:
        named = ", ".join(sorted(str(one.dist and one.dist.name) for one in found))
        msg = f"only one source of taints can be installed, and these distributions offer one each: {named}"
        raise RuntimeError(msg)
    plugin: SourcePlugin | None = found[0].load() if found else None
    return plugin

"""What installed distributions add to the operator, each as an entry point: a source of taints, a writer of labels."""

from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import entry_points
from typing import Any, Protocol

from taintwarden.controller.handlers.following import Spawn
from taintwarden.controller.loop import Feed
from taintwarden.engine.machine import Event, NewSource
from taintwarden.engine.model import Policy
from taintwarden.kube.calls.patching import Fence
from taintwarden.kube.http.client import Client
from taintwarden.kube.watch.watching import StreamTimings
from taintwarden.telemetry.metrics import Metrics

TAINT_SOURCE = "taintwarden.taint_source"
LABELLER = "taintwarden.labeller"


class SourceFollowing(Protocol):
    """The streams of a source."""

    def policies_changed(self, policies: Iterable[Policy]) -> None:
        """Other policies are in force: follow what they need, and nothing else."""


class SourcePlugin(Protocol):
    """Offers taints beside those of nodes."""

    new_source: NewSource
    """Makes the part that knows the taints: without I/O, as the machine that asks it."""
    new_following: Callable[[Client, Feed, Metrics, StreamTimings, Spawn], SourceFollowing]
    """Makes the part that lists and watches: what its streams deliver is fed to the machine."""


class Labeller(Protocol):
    """Writes labels of nodes. The machine decides without them, and knows nothing of them."""

    def take(self, event: Event) -> None:
        """An event that the machine is going to see."""


class LabellerPlugin(Protocol):
    """Offers a labeller."""

    Labeller: Callable[[Client, Fence, Callable[[Sequence[object]], None], Spawn], Labeller]
    """Makes it: from the session to use, whether the lease is held, what takes notices, and what starts tasks."""


def installed(group: str) -> Any:
    """What is installed for this purpose: an object with the attributes of its protocol. None: nothing is.

    Raises:
        RuntimeError: several distributions offer one.

    """
    found = list(entry_points(group=group))
    if len(found) > 1:
        named = ", ".join(sorted(str(one.dist and one.dist.name) for one in found))
        msg = f"only one {group} can be installed, and these distributions offer one each: {named}"
        raise RuntimeError(msg)
    return found[0].load() if found else None

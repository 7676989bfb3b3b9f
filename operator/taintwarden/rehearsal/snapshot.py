"""The objects of a cluster at one moment, read from its API server or from files."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from taintwarden.kube.wire.kinds import (
    BudgetObject,
    ClaimObject,
    NamespaceObject,
    NodeObject,
    WorkloadObject,
)
from taintwarden.rehearsal.places import PlacedPod, PlacedVolume
from taintwarden.rehearsal.sources import Source, Subject


class Snapshot(msgspec.Struct):
    """Objects by kind; policies and profiles as they are stored, since they may be invalid.

    ``now`` is the time of the snapshot, in seconds since the epoch. ``problems`` are the sources that cannot be read:
    their fields are empty.
    """

    now: float = 0.0
    server: str = ""
    problems: Mapping[Source, str] = {}
    unreadable: Sequence[tuple[Subject, str]] = ()
    """Objects that cannot be decoded, with the reason."""
    policies: Sequence[Mapping[str, Any]] = ()
    profiles: Sequence[Mapping[str, Any]] = ()
    undefined: Sequence[Source] = ()
    """Kinds of our API group that the cluster does not serve."""
    has_extender: bool = False
    """The scheduler extender is installed."""
    operator_problem: str = ""
    """Why the operator is not running, if it is not."""
    nodes: Sequence[NodeObject] = ()
    pods: Sequence[PlacedPod] = ()
    namespaces: Sequence[NamespaceObject] = ()
    workloads: Mapping[str, Sequence[WorkloadObject]] = {}
    """Controllers of pods by the plural of their kind."""
    budgets: Sequence[BudgetObject] = ()
    claims: Sequence[ClaimObject] = ()
    """Those of a pod that is explained, and their volumes."""
    volumes: Sequence[PlacedVolume] = ()

    def knows(self, source: Source) -> bool:
        """Whether the source was read."""
        return source not in self.problems

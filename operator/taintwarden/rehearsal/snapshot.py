"""What was read of a cluster at one moment, from its API server or from files."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from taintwarden.kube.objects import BudgetObject, NamespaceObject, NodeObject, PodObject, WorkloadObject
from taintwarden.rehearsal.sources import Source, Subject


class Snapshot(msgspec.Struct):
    """Objects by kind; policies and profiles as they are stored, since they may be invalid.

    ``now`` is when they were read, in seconds since the epoch. ``problems`` are the sources that could not be read:
    their fields are empty.
    """

    now: float = 0.0
    server: str = ""
    problems: Mapping[Source, str] = {}
    unreadable: Sequence[tuple[Subject, str]] = ()
    """Objects that are not what Kubernetes says they are, with the reason."""
    policies: Sequence[Mapping[str, Any]] = ()
    profiles: Sequence[Mapping[str, Any]] = ()
    undefined: Sequence[Source] = ()
    """Our kinds that the cluster does not serve."""
    operator_problem: str = ""
    """Why the operator is not at work, if it is not."""
    nodes: Sequence[NodeObject] = ()
    pods: Sequence[PodObject] = ()
    namespaces: Sequence[NamespaceObject] = ()
    workloads: Mapping[str, Sequence[WorkloadObject]] = {}
    """Controllers of pods by their plural."""
    budgets: Sequence[BudgetObject] = ()

    def knows(self, source: Source) -> bool:
        """Whether it was read."""
        return source not in self.problems

"""All of a cluster that the operator follows, read once."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from taintwarden.cli.cluster import stored_policies, stored_profiles
from taintwarden.cli.session import Session
from taintwarden.kube.custom import GROUP_PATH
from taintwarden.kube.objects import BudgetObject, NamespaceObject, NodeObject, PodObject, WorkloadObject
from taintwarden.kube.profiles import PLURAL as PROFILES
from taintwarden.kube.streams import (
    BUDGETS,
    DAEMON_SETS,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
)

WORKLOADS = (REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, REPLICATION_CONTROLLERS, JOBS)


class Snapshot(msgspec.Struct):
    """What was there at one moment; ``workloads`` by their plural."""

    policies: Sequence[Mapping[str, Any]] = ()
    profiles: Sequence[Mapping[str, Any]] = ()
    nodes: Sequence[NodeObject] = ()
    pods: Sequence[PodObject] = ()
    namespaces: Sequence[NamespaceObject] = ()
    workloads: Mapping[str, Sequence[WorkloadObject]] = {}
    budgets: Sequence[BudgetObject] = ()


async def read_snapshot(session: Session) -> Snapshot:
    """Read everything at once.

    Raises:
        ClusterError: something cannot be read; all of it is needed.

    """
    policies, profiles, nodes, pods, namespaces, budgets, *workloads = await asyncio.gather(
        stored_policies(session),
        stored_profiles(session, f"{GROUP_PATH}/{PROFILES}"),
        *(session.list_all(resource) for resource in (NODES, PODS, NAMESPACES, BUDGETS, *WORKLOADS)),
    )
    by_plural = {resource.name: found for resource, found in zip(WORKLOADS, workloads, strict=True)}
    return Snapshot(policies, profiles, nodes, pods, namespaces, by_plural, budgets)

"""Reads what ``explain`` needs from a cluster: six requests, each bounded in time."""

import asyncio
from typing import Any
from urllib.parse import quote

import msgspec

from taintwarden.cli.facts import Facts
from taintwarden.cli.session import ClusterError, Session
from taintwarden.kube.objects import BudgetObject, NamespaceObject, NodeObject, PodObject
from taintwarden.kube.policies import PATH as POLICIES_PATH
from taintwarden.kube.profiles import path_in

MAX_BUDGETS = 500


class _Budgets(msgspec.Struct):
    items: list[BudgetObject] = []


class _Stored(msgspec.Struct):
    items: list[dict[str, Any]] = []


async def facts_from_cluster(session: Session, namespace: str, name: str, now: float) -> Facts:
    """The pod, then all that belongs to it at once.

    Raises:
        ClusterError: the pod, its node, the policies or the profiles cannot be read.

    """
    core, space = "/api/v1", quote(namespace, safe="")
    pod = await session.read(f"{core}/namespaces/{space}/pods/{quote(name, safe='')}", PodObject, "pods")
    if pod is None:
        msg = f"there is no pod {namespace}/{name} in the cluster at {session.server}"
        raise ClusterError(msg)
    node_path = f"{core}/nodes/{quote(pod.spec.node_name, safe='')}"
    node, (labels, unlabelled), policies, (budgets, problem), profiles = await asyncio.gather(
        session.read(node_path, NodeObject, "nodes") if pod.spec.node_name else _nothing(),
        _namespace_labels(session, f"{core}/namespaces/{space}"),
        stored_policies(session),
        _budgets(session, f"/apis/policy/v1/namespaces/{space}/poddisruptionbudgets"),
        stored_profiles(session, path_in(space)),
    )
    return Facts(pod, now, node, labels, unlabelled, policies, budgets, problem, profiles)


async def stored_policies(session: Session) -> list[dict[str, Any]]:
    """All policies as they are stored.

    Raises:
        ClusterError: they cannot be read, or the cluster does not know such things.

    """
    found = await session.read(POLICIES_PATH, _Stored, "taintevictionpolicies")
    if found is None:
        msg = f"the cluster at {session.server} does not know TaintEvictionPolicies: apply the CRDs first"
        raise ClusterError(msg)
    return found.items


async def stored_profiles(session: Session, path: str) -> list[dict[str, Any]]:
    """The profiles of a list as they are stored; none where an older operator brought no definition of them.

    Raises:
        ClusterError: they cannot be read. They decide, so there is no answer without them.

    """
    found = await session.read(path, _Stored, "tolerationprofiles")
    return [] if found is None else found.items


async def _namespace_labels(session: Session, path: str) -> tuple[dict[str, str] | None, str]:
    """The labels, or why they are not known: few policies ask for them."""
    try:
        namespace = await session.read(path, NamespaceObject, "namespaces")
    except ClusterError as error:
        return None, str(error)
    return (namespace.metadata.labels, "") if namespace else (None, "the namespace is gone")


async def _budgets(session: Session, path: str) -> tuple[list[BudgetObject], str]:
    """The budgets of the namespace, or why they are not known: they explain more, and decide nothing."""
    try:
        found = await session.read(path, _Budgets, "poddisruptionbudgets", {"limit": str(MAX_BUDGETS)})
    except ClusterError as error:
        return [], str(error)
    return (found.items, "") if found else ([], "the cluster does not serve policy/v1")


async def _nothing() -> None:
    """A pod without a node has none to read."""

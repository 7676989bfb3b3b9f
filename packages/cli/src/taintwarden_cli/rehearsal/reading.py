"""Reads a snapshot of a cluster page by page, with the rights of the user: all objects, or those of one pod or node."""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from taintwarden.controller.words import wording
from taintwarden.kube.calls.own_kinds import PROFILES
from taintwarden.kube.wire.kinds import DeploymentObject, NamespaceObject, NodeObject, WorkloadObject
from taintwarden.kube.wire.resources import BUDGETS, NODES, PODS
from taintwarden_cli.rehearsal.deployments import read_deployments, runs_extender
from taintwarden_cli.rehearsal.liveness import read_liveness
from taintwarden_cli.rehearsal.node_requirements import FullPod
from taintwarden_cli.rehearsal.session import ClusterError, NotServedError, Session
from taintwarden_cli.rehearsal.snapshot import FullBudget, Snapshot
from taintwarden_cli.rehearsal.sources import (
    COUNTED,
    DEVICES,
    FOLLOWED,
    OBJECTS,
    REPLACING,
    UNREADABLE,
    WORKLOADS,
    Listing,
    Source,
    identity,
)
from taintwarden_devices.objects import DeviceClaimObject, SliceObject, TaintRuleObject

AFTER_POLICIES: tuple[Source, ...] = (*DEVICES, Source.DEPLOYMENTS)
"""Sources that are read only if a policy needs them."""
_FIELDS: dict[Source, tuple[str, type[Any]]] = {
    Source.NODES: ("nodes", NodeObject),
    Source.PODS: ("pods", FullPod),
    Source.NAMESPACES: ("namespaces", NamespaceObject),
    Source.BUDGETS: ("budgets", FullBudget),
    Source.SLICES: ("slices", SliceObject),
    Source.DEVICE_CLAIMS: ("device_claims", DeviceClaimObject),
    Source.TAINT_RULES: ("taint_rules", TaintRuleObject),
    Source.DEPLOYMENTS: ("deployments", DeploymentObject),
}
"""The field of a snapshot for each source, and the type of its objects."""
T = TypeVar("T")


class Reader:
    """Reads one cluster once. A source that cannot be read does not stop the others.

    Args:
        found: the snapshot to fill.
        namespace: the namespace whose ResourceClaims, ReplicaSets and Deployments are read; empty for all.
        node: the node whose ResourceSlices are read, with those of no node; empty for all. A kubelet may write many.

    """

    after_policies: tuple[Source, ...] = AFTER_POLICIES

    def __init__(self, session: Session, found: Snapshot, namespace: str = "", node: str = "") -> None:
        self._session = session
        self._found = found
        self._namespace = namespace
        self._node = node
        self._undefined: set[Source] = set()
        found.server = session.server

    async def read(self, wanted: Iterable[Source]) -> None:
        """Read these sources concurrently; some after the policies, and only if one needs them."""
        wanted, problems = frozenset(wanted), dict[Source, str]()

        async def attempt(source: Source) -> None:
            try:
                await self._read(source)
            except ClusterError as error:
                problems[source] = str(error)
                if isinstance(error, NotServedError) and source is Source.POLICIES:
                    self._undefined.add(source)

        sources = [source for source in Source if source in wanted]
        await asyncio.gather(*(attempt(source) for source in sources if source not in self.after_policies))
        needed = [*DEVICES] * self._found.selects_devices + [Source.DEPLOYMENTS] * self._found.asks_replacements
        late = [source for source in sources if source in needed and source in self.after_policies]
        await asyncio.gather(*map(attempt, late))
        # In the order of the sources, not of the responses.
        self._found.problems = {source: problems[source] for source in sources if source in problems}
        self._found.undefined = [source for source in sources if source in self._undefined]

    async def _read(self, source: Source) -> None:
        found = self._found
        if source is Source.POLICIES:
            found.policies = await self._session.policies(dict[str, Any])
        elif source is Source.PROFILES:
            listed = await read_profiles(self._session, PROFILES.path)
            if listed is None:
                self._undefined.add(source)
            found.profiles = listed or []
        elif source in COUNTED:
            workloads = await self._objects(source, WorkloadObject)  # other tasks change ``workloads`` during the await
            found.workloads = {**found.workloads, source.value: workloads}
        else:
            try:
                field, kind = _FIELDS[source]
                setattr(found, field, await self._objects(source, kind))
            except NotServedError:
                if source not in DEVICES:
                    raise
                if source is not Source.TAINT_RULES:  # Kubernetes serves them from 1.37; slices have taints, too
                    found.devices_unserved = wording.devices_unserved([source])

    async def _pages(self, source: Source, listing: Listing, take: Callable[[list[bytes]], Any]) -> None:
        async for page in self._session.pages(listing.path, msgspec.Raw, source.value, listing.field_selector):
            take([bytes(one) for one in page])

    async def _objects(self, source: Source, kind: type[T]) -> list[T]:
        """Return the objects of a source, and record those that cannot be decoded as unreadable."""
        listing = OBJECTS.get(source) or WORKLOADS[source]
        listings = [listing]
        if source in (Source.DEVICE_CLAIMS, *REPLACING) and self._namespace:
            group, _, plural = listing.path.rpartition("/")
            path = f"{group}/namespaces/{quote(self._namespace, safe='')}/{plural}"
            listings = [Listing(path, listing.group, listing.kind)]
        if source is Source.SLICES and self._node:
            selectors = [f"spec.nodeName={node}" for node in ("", self._node)]
            listings = [Listing(listing.path, listing.group, listing.kind, selector) for selector in selectors]
        decoder, found = msgspec.json.Decoder(kind), list[T]()

        def take(page: list[bytes]) -> None:
            for raw in page:
                try:
                    found.append(decoder.decode(raw))
                except UNREADABLE as error:
                    unreadable = (identity(listing.kind, raw), " ".join(str(error).split()))
                    self._found.unreadable = [*self._found.unreadable, unreadable]

        for one in listings:
            await self._pages(source, one, take)
        return found


async def read_snapshot(session: Session, operator_namespace: str, now: float) -> Snapshot:
    """Read everything that the operator watches.
    Raises ClusterError if an object, or a source other than those of devices and Deployments, cannot be read.
    """
    found = Snapshot(now)
    await Reader(session, found).read(FOLLOWED)
    for source, problem in found.problems.items():
        if source not in AFTER_POLICIES:
            raise ClusterError(problem)
    for subject, why in found.unreadable:
        raise ClusterError(f"cannot read {subject}: {why}")
    try:
        found.has_extender = runs_extender(await read_deployments(session, operator_namespace))
    except ClusterError as error:
        found.problems = {**found.problems, Source.OPERATOR: str(error)}
    found.operator_problem = (await read_liveness(session, operator_namespace, found.policies, now)).problem
    return found


async def read_nodes_and_policies(session: Session, now: float) -> Snapshot:
    """Read nodes and policies. The definition of policies need not be installed.
    Raises ClusterError if nodes, or policies that are defined, cannot be read.
    """
    found = Snapshot(now)
    await Reader(session, found).read((Source.POLICIES, Source.NODES))
    for source, problem in found.problems.items():
        if source not in found.undefined:
            raise ClusterError(problem)
    return found


async def read_pod(session: Session, operator_namespace: str, namespace: str, name: str, now: float) -> Snapshot:
    """Read a pod, then its related objects concurrently.

    ``namespace`` defaults to that of the session. Raises ClusterError if the pod, its node, the policies or the
    profiles cannot be read.
    """
    namespace = namespace or session.namespace
    core, quoted = "/api/v1", quote(namespace, safe="")
    pod = await session.read(f"{core}/namespaces/{quoted}/pods/{quote(name, safe='')}", FullPod, "pods")
    if pod is None:
        events = f"kubectl events -n {namespace} --for pod/{name}"
        msg = f"there is no pod {namespace}/{name} in the cluster at {session.server}; if it is gone: {events}"
        raise ClusterError(msg)
    found, problems = Snapshot(now, session.server, pods=[pod]), dict[Source, str]()

    async def nodes() -> None:
        found.nodes = await _nodes_for(session, pod)

    async def namespace_labels() -> None:
        """Read the labels of the namespace. Few policies select by them."""
        try:
            one = await session.read(f"{core}/namespaces/{quoted}", NamespaceObject, "namespaces")
        except ClusterError as error:
            problems[Source.NAMESPACES] = str(error)
            return
        if one is None:
            problems[Source.NAMESPACES] = "the namespace is gone"
        else:
            found.namespaces = [one]

    async def budgets() -> None:
        """Read the budgets. They are only displayed, so a failure is recorded and not raised."""
        path = f"/apis/policy/v1/namespaces/{quoted}/poddisruptionbudgets"
        try:
            async for page in session.pages(path, FullBudget, BUDGETS.name):
                found.budgets = [*found.budgets, *page]
        except ClusterError as error:
            problems[Source.BUDGETS] = str(error)

    *_, found.policies, profiles = await asyncio.gather(
        nodes(),
        namespace_labels(),
        budgets(),
        session.policies(dict[str, Any]),
        read_profiles(session, PROFILES.path_in(quoted)),
    )
    found.profiles = profiles or []
    # Not ``now``, which may be the time of ``--at``.
    found.operator_problem = (await read_liveness(session, operator_namespace, found.policies, time.time())).problem
    wanted = (*DEVICES, *REPLACING) if found.asks_replacements else DEVICES
    await Reader(session, found, namespace=namespace, node=pod.spec.node_name).read(wanted)
    found.problems = {**problems, **found.problems}
    return found


async def read_node(session: Session, operator_namespace: str, name: str, now: float) -> Snapshot:
    """Read a node with its pods.
    Raises ClusterError if there is no such node, or its pods, the policies or the profiles cannot be read.
    """
    node = await session.read(f"{NODES.path}/{quote(name, safe='')}", NodeObject, NODES.name)
    if node is None:
        raise ClusterError(f"there is no node {name} in the cluster at {session.cluster}")
    found = Snapshot(now, nodes=[node])
    wanted = (Source.POLICIES, Source.PROFILES, Source.NAMESPACES, Source.BUDGETS, *DEVICES)
    await Reader(session, found, node=name).read(wanted)
    for source in (Source.POLICIES, Source.PROFILES):
        if source in found.problems:
            raise ClusterError(found.problems[source])
    pods = session.pages(PODS.path, FullPod, PODS.name, f"spec.nodeName={name}")
    found.pods = [pod async for page in pods for pod in page if pod.is_on_node]
    if found.asks_replacements:
        problems = found.problems
        await Reader(session, found).read(REPLACING)
        found.problems = {**problems, **found.problems}
    found.operator_problem = (await read_liveness(session, operator_namespace, found.policies, now)).problem
    return found


async def _nodes_for(session: Session, pod: FullPod) -> list[NodeObject]:
    """Read the node of a pod; all nodes if it is not bound."""
    if pod.is_pending:
        return [one async for page in session.pages(NODES.path, NodeObject, NODES.name) for one in page]
    if not pod.spec.node_name:
        return []
    node = await session.read(f"{NODES.path}/{quote(pod.spec.node_name, safe='')}", NodeObject, NODES.name)
    return [] if node is None else [node]


async def read_profiles(session: Session, path: str) -> list[dict[str, Any]] | None:
    """Read profiles as they are stored; None if the cluster does not serve the kind.
    Raises ClusterError if they cannot be read: decisions depend on them.
    """
    try:
        return await session.items(path, dict[str, Any], PROFILES.name)
    except NotServedError:
        return None

"""Inspects a cluster for what statuses of policies lack: nodes that are removed, pods that stay, and problems that do
not pass by themselves, such as a budget that never allows an eviction.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from taintwarden.controller.decoding import decoding
from taintwarden.controller.decoding.times import time_of
from taintwarden.controller.words import wording
from taintwarden.controller.words.wording import pods
from taintwarden.engine import rfc3339
from taintwarden.engine.limits.refusal import BUDGET, WORKLOAD
from taintwarden.engine.machine import NodeView, named_taints
from taintwarden.engine.model import Gates, Taint, several_budgets
from taintwarden.engine.policy import Method, Mode, Policy
from taintwarden.kube.wire.resources import PODS
from taintwarden_cli.rehearsal.ideal import Assumptions
from taintwarden_cli.rehearsal.node_requirements import FullPod
from taintwarden_cli.rehearsal.plan import Plan, PlannedFate
from taintwarden_cli.rehearsal.reading import Reader
from taintwarden_cli.rehearsal.rehearsal import Rehearsal, rehearse
from taintwarden_cli.rehearsal.session import ClusterError, Page, Session
from taintwarden_cli.rehearsal.shadowing import acting_first, why_first
from taintwarden_cli.rehearsal.simulation import PlanSimulation
from taintwarden_cli.rehearsal.snapshot import FullBudget, Snapshot, is_kept_from_enforcing, status_of
from taintwarden_cli.rehearsal.sources import Source
from taintwarden_cli.rehearsal.staying import StayingGroup
from taintwarden_cli.status.event_timeline import KEPT_SECONDS, policy_of, read_events
from taintwarden_cli.status.findings import (
    Missed,
    PolicyFindings,
    Removal,
    describe_missed,
    describe_removals,
    removal_time,
)
from taintwarden_cli.status.lasting_problems import find_absence, publisher_fault, selected_keys, why_never_allows
from taintwarden_cli.status.problems import STUCK_SECONDS, Problem, ProblemKind

MAX_NODES = 100
"""Maximum number of tainted nodes whose pods are read, each with one request, without ``--all``."""
MAX_NAMED = 3
"""Maximum number of pods named for each reason to stay, without ``--all``."""
RECENT_SECONDS = 600.0
"""Seconds for which a missed deadline is a problem, as for the alert."""
HORIZON_SECONDS = 3_600.0
"""Maximum time over which removals of nodes are simulated."""
_PUBLISHERS = "/apis/taintwarden.io/v1alpha1/taintpublishers"
_PodFilter = Callable[[FullPod], bool]


class Inspection(msgspec.Struct):
    """The result of an inspection, which adds to the statuses of policies."""

    at: float
    by_policy: dict[str, PolicyFindings]
    unread: list[str]
    """Why objects could not be read."""


async def inspect_cluster(
    session: Session, stored: Sequence[Mapping[str, Any]], gates: Gates, now: float, *, show_all: bool = False
) -> Inspection:
    """Inspect nodes, their pods, budgets and Events. What may not be read is left out, and named."""
    # With --dry-run the operator treats Enforce as DryRun.
    kept = [
        one if not is_kept_from_enforcing(one) else {**one, "spec": {**one["spec"], "mode": "DryRun"}} for one in stored
    ]
    snapshot = Snapshot(now, policies=kept)
    await Reader(session, snapshot).read((Source.NODES, Source.NAMESPACES, Source.PROFILES, Source.BUDGETS))
    inspector = _Inspector(session, snapshot, gates, most=None if show_all else MAX_NODES)
    await inspector.inspect()
    return Inspection(now, inspector.found, [*snapshot.problems.values(), *inspector.unread])


class _Inspector:
    """Collects the findings of each policy."""

    def __init__(self, session: Session, snapshot: Snapshot, gates: Gates, most: int | None) -> None:
        self._session = session
        self._snapshot = snapshot
        self._gates = gates
        self._most = most
        known = rehearse(snapshot, gates)
        self._view, self._policies = known.view, known.policies
        self._statuses = {policy["metadata"]["name"]: status_of(policy) for policy in snapshot.policies}
        self._nodes = [node for name in self._view.nodes if (node := self._view.node(name)) is not None]
        self.found = {policy.name: PolicyFindings() for policy in known.policies}
        self.unread: list[str] = []

    async def inspect(self) -> None:
        """Inspect everything that may be read."""
        for policy in self._policies:
            if policy.mode is Mode.PAUSED:
                self._add_shadows(policy)
        if self._snapshot.has_read(Source.NODES) and self._nodes:
            self._add_missing_taints()
            if all(map(self._snapshot.has_read, (Source.NAMESPACES, Source.PROFILES))):
                await self._attempt(self._inspect_pods)
        await self._attempt(self._inspect_budgets)
        await self._attempt(self._inspect_workloads)
        await self._attempt(self._inspect_events)
        await self._attempt(self._inspect_publishers)

    async def _attempt(self, inspect: Any) -> None:
        try:
            await inspect()
        except ClusterError as error:
            self.unread.append(str(error))

    def _add(self, policy: str, kind: ProblemKind, cause: str, effect: str, remedy: str) -> None:
        self.found[policy].problems = [*self.found[policy].problems, Problem(kind, cause, effect, remedy)]

    def _add_shadows(self, policy: Policy) -> None:
        for other, key in acting_first(policy, [one for one in self._policies if one.mode is Mode.ENFORCE]):
            effect = "it evicts pods that both select, although this policy is paused"
            remedy = f"taintwarden pause {other.name}"
            self._add(policy.name, ProblemKind.SHADOWED, why_first(policy, other, key), effect, remedy)

    def _add_missing_taints(self) -> None:
        carried: dict[Taint, set[str]] = {}
        for taint, name in ((taint, node.node.name) for node in self._nodes for taint, _ in node.taints):
            carried.setdefault(Taint(taint.key, effect=taint.effect, source=taint.source), set()).add(name)
        for policy in self._policies:
            if self._statuses[policy.name].evicting_nodes:
                continue
            remedy = f"taint nodes, or correct key or nodeSelector: kubectl edit taintevictionpolicy {policy.name}"
            keys = selected_keys(policy, self._nodes)
            for selector in policy.taints:
                if text := find_absence(selector, keys, carried, self._policies)[0]:
                    self._add(policy.name, ProblemKind.NO_NODE, text, "the policy evicts no pod for it", remedy)

    # -- pods of tainted nodes ----------------------------------------------------------------------------------------

    async def _inspect_pods(self) -> None:
        tainted = {policy.name: list(self._tainted_nodes(policy)) for policy in self._policies}
        wanted, inspected = dict[str, None](), list[Policy]()
        for policy in sorted(self._policies, key=lambda one: (one.reclaim is None, len(tainted[one.name]))):
            names = wanted | {node.node.name: None for node in tainted[policy.name]}
            if self._most is None or len(names) <= self._most:
                wanted = names
                inspected.append(policy)
            elif policy.reclaim is not None:
                which = f"{len(tainted[policy.name])} nodes of policy {policy.name}"
                self.unread.append(f"when {which} are removed, and which pods end with them: taintwarden status --all")
        seen = await self._read_pods(list(wanted))
        known = rehearse(seen, self._gates)  # verdicts do not depend on the nodes left out
        for policy in inspected:
            nodes = [known.view.node(node.node.name) or node for node in tainted[policy.name]]
            self.found[policy.name].staying = list(self._staying(known, policy, nodes))
        self._inspect_removals([one for one in inspected if one.reclaim is not None], tainted, seen, known)

    def _tainted_nodes(self, policy: Policy) -> Iterator[NodeView]:
        """The nodes that a policy selects, even if they opt out of it, with a taint that it names."""
        for node in self._nodes:
            taints = (taint for taint, _ in node.taints)
            if policy.node_selector.selects(node.node.labels) and named_taints(policy, taints):
                yield node

    async def _read_pods(self, names: list[str]) -> Snapshot:
        """The snapshot with only these nodes, and with their pods."""

        async def pods_of(name: str) -> list[FullPod]:
            pages = self._session.pages(PODS.path, FullPod, PODS.name, f"spec.nodeName={name}")
            return [pod async for page in pages for pod in page if pod.is_on_node]

        found = list[FullPod]()
        if len(names) <= MAX_NODES:
            for listed in await asyncio.gather(*map(pods_of, names)):
                found += listed
        else:
            chosen = frozenset(names)
            async for page in self._session.pages(PODS.path, FullPod, PODS.name):
                found += [pod for pod in page if pod.is_on_node and pod.spec.node_name in chosen]
        nodes = [node for node in self._snapshot.nodes if node.metadata.name in set(names)]
        return msgspec.structs.replace(self._snapshot, nodes=nodes, pods=found)

    def _staying(self, known: Rehearsal, policy: Policy, nodes: Iterable[NodeView]) -> Iterator[StayingGroup]:
        names: dict[str, list[str]] = {}
        view, faulty = known.view, {f"{issue.namespace}/{issue.name}" for issue in known.pod_issues if issue.errors}
        invalid = dict(key.split("/") for key in known.profile_problems)
        for node in nodes:
            for pod in view.pods(node.node.name):
                claims = view.claims(pod.uid)
                if any(claim.policy == policy or claim.policy.mode is Mode.ENFORCE for claim in claims):
                    continue
                if why := view.why_staying(node.node.name, pod.shared, policy):
                    why += ", entries of its annotation are invalid" * (str(pod) in faulty)
                    why += f", profile {invalid[pod.namespace]} is invalid" if pod.namespace in invalid else ""
                    names.setdefault(why, []).append(str(pod))
        for why, listed in sorted(names.items(), key=lambda one: (-len(one[1]), one[0])):
            yield StayingGroup(why, len(listed), sorted(listed)[: None if self._most is None else MAX_NAMED])

    # -- nodes that are removed ---------------------------------------------------------------------------------------

    def _inspect_removals(
        self, policies: Iterable[Policy], tainted: Mapping[str, list[NodeView]], seen: Snapshot, known: Rehearsal
    ) -> None:
        ends = {
            (policy.name, node.node.name): at
            for policy in policies
            for node in tainted[policy.name]
            if (at := removal_time(policy, node)) is not None
        }
        if not ends:
            return
        plan = self._forecast(seen, {name for _, name in ends}, max(ends.values()))
        terminating = Counter(pod.spec.node_name for pod in seen.pods if pod.metadata.deletion_timestamp is not None)
        claimed = Counter((claim.policy.name, claim.pod.node) for claim in known.view.all_claims())
        for (policy, node), at in sorted(ends.items(), key=lambda one: (one[1], one[0])):
            planned = [pod for pod in plan.pods if (pod.policy, pod.node) == (policy, node)]
            missed = [pod for pod in planned if pod.fate is PlannedFate.ENDS]
            held = sorted({name for pod in missed for name in pod.budgets or [pod.limit] if name})
            cut = sum(pod.fate is PlannedFate.LEAVES and bool(pod.late) for pod in planned)
            number = claimed[policy, node] + terminating[node]
            removal = Removal(node, rfc3339.at(at), number, len(missed), cut, held)
            self.found[policy].removals = [*self.found[policy].removals, removal]
        for name, findings in self.found.items():
            if failing := [one for one in findings.removals if one.missed or one.cut]:
                self._add(name, ProblemKind.RECLAIM, *describe_removals(name, failing, rfc3339.at(self._snapshot.now)))

    def _forecast(self, seen: Snapshot, names: set[str], until: float) -> Plan:
        """Simulate these nodes until all are removed, at most for ``HORIZON_SECONDS``."""
        nodes = [node for node in seen.nodes if node.metadata.name in names]
        listed = [pod for pod in seen.pods if pod.spec.node_name in names]
        part = msgspec.structs.replace(seen, nodes=nodes, pods=listed)
        horizon = min(max(until - seen.now + 1.0, 1.0), HORIZON_SECONDS)
        return PlanSimulation(part, seen.now, Assumptions(), self._gates).run((), horizon)

    async def _inspect_events(self) -> None:
        reclaiming = {policy.name for policy in self._policies if policy.reclaim is not None}
        if not reclaiming:
            return
        latest = dict[str, str]()
        for at, event in await read_events(self._session, self._snapshot.now - KEPT_SECONDS, "DeadlineMissed"):
            name = policy_of(event.note)
            if name in reclaiming:
                latest[name] = f"{event.namespace}/{event.name}"
                missed = self.found[name].missed
                is_cut = event.note.startswith(wording.MISSED["grace-cut"])
                recent = missed.recent or at >= self._snapshot.now - RECENT_SECONDS
                counts = missed.not_evicted + (not is_cut), missed.cut + is_cut
                self.found[name].missed = Missed(*counts, recent)
        for name in reclaiming:
            if (missed := self.found[name].missed).recent:
                effect = f"they had less time to stop than they ask for, or none, such as {latest[name]}"
                remedy = "taintwarden history; docs/runbooks/deadline-missed.md"
                self._add(name, ProblemKind.RECLAIM, describe_missed(missed), effect, remedy)

    async def _inspect_publishers(self) -> None:
        """Find TaintPublishers that do not publish, so that the taints of policies keep values that may be old."""
        found = await self._session.read(_PUBLISHERS, Page[dict[str, Any]], "taintpublishers")
        for publisher in found.items if found else ():
            spec, name = publisher["spec"], publisher["metadata"]["name"]
            since, why, remedy = publisher_fault(publisher, self._snapshot.now)
            if spec.get("mode") == "Publish" and self._snapshot.now - since >= STUCK_SECONDS:
                told = f"TaintPublisher {name}: {why}", "its taints keep values that may be old"
                for policy in self._policies:
                    if named_taints(policy, [Taint(spec["key"])]):
                        self._add(policy.name, ProblemKind.PUBLISHER, *told, remedy)

    # -- budgets ------------------------------------------------------------------------------------------------------

    async def _inspect_budgets(self) -> None:
        """Find budgets that pods wait for and that allow no eviction ever, or none until a Pending pod runs."""
        budgets = {(one.metadata.namespace, one.metadata.name): one for one in self._snapshot.budgets}
        for policy in self._policies:
            if policy.mode is not Mode.ENFORCE or policy.eviction.method is not Method.EVICT:
                continue
            self._add_several_budgets(policy)
            for blocking in self._statuses[policy.name].blocked_budgets:
                budget = budgets.get((blocking.namespace, blocking.name))
                if budget is None:
                    continue
                effect = f"{pods(blocking.pods)} {'waits' if blocking.pods == 1 else 'wait'} for it"
                if why := why_never_allows(budget):
                    cause = f"PodDisruptionBudget {blocking} never allows an eviction: {why}"
                    edit = f"kubectl -n {blocking.namespace} edit poddisruptionbudget {blocking.name}"
                    self._add(policy.name, ProblemKind.NEVER, cause, effect, edit)
                    continue
                waiting, is_wanted = f"PodDisruptionBudget {blocking}", partial(_is_selected, budget)
                for cause, remedy in await self._find_pending_pod(blocking.namespace, waiting, is_wanted):
                    self._add(policy.name, ProblemKind.BUDGET, cause, effect, remedy)

    def _add_several_budgets(self, policy: Policy) -> None:
        """Add the sets of budgets that select one pod, which the API server then refuses to evict."""
        status = self._statuses[policy.name]
        messages = [limit.message for limit in status.limits if limit.limit == BUDGET]
        for cause in dict.fromkeys([*messages, *(pod.message for pod in status.next_pods if pod.limit == BUDGET)]):
            if cause.startswith(refusal := several_budgets(()).removesuffix(")")):
                space, _, name = cause.removeprefix(refusal).partition(",")[0].partition("/")
                remedy = f"leave one budget for each pod: kubectl -n {space} edit poddisruptionbudget {name}"
                self._add(policy.name, ProblemKind.NEVER, cause, "pods that all of them select are not evicted", remedy)

    async def _inspect_workloads(self) -> None:
        """Find pods that fit no node, or are not Ready, of workloads that lose no other pod until these are Ready."""
        for policy in self._policies:
            if policy.mode is not Mode.ENFORCE:
                continue
            waiting = [pod for pod in self._statuses[policy.name].next_pods if pod.limit == WORKLOAD]
            for space, message in dict.fromkeys((pod.namespace, pod.message) for pod in waiting):
                effect, is_wanted = "no Ready pod of its workload is evicted", partial(_is_missing, message)
                found = await self._find_pending_pod(space, "limit workload", is_wanted)
                for cause, remedy in found or await self._find_unready_pod(space, message):
                    self._add(policy.name, ProblemKind.WORKLOAD, cause, effect, remedy)

    async def _find_pending_pod(self, space: str, waiting: str, is_wanted: _PodFilter) -> list[tuple[str, str]]:
        """Cause and remedy of the first wanted pod that is Pending, although an autoscaler had time to add a node."""
        path, until = PODS.path_in(space), self._snapshot.now - STUCK_SECONDS
        async for page in self._session.pages(path, FullPod, PODS.name, "status.phase=Pending"):
            for pod in page:
                if pod.is_pending and (time_of(pod.metadata.creation_timestamp) or 0.0) <= until and is_wanted(pod):
                    name, why = f"{space}/{pod.metadata.name}", f": {pod.unschedulable}" if pod.unschedulable else ""
                    return [(f"{name}, for which {waiting} waits, is Pending{why}", f"taintwarden explain pod {name}")]
        return []

    async def _find_unready_pod(self, space: str, message: str) -> list[tuple[str, str]]:
        """Cause and remedy of the pod that the message of a limit names, if it has long been unready."""
        name, until = message.partition("(such as ")[2].partition(" on ")[0], self._snapshot.now - STUCK_SECONDS
        pages = self._session.pages(PODS.path_in(space), FullPod, PODS.name, f"metadata.name={name}")
        conditions = [one async for page in pages for pod in page for one in pod.status.conditions] if name else []
        unready = (one for one in conditions if (one.type, one.status) == ("Ready", "False"))
        if not any((time_of(one.last_transition_time) or until) < until for one in unready):
            return []
        cause = f"{space}/{name}, for which limit workload waits, is not Ready"
        return [(cause, f"kubectl -n {space} describe pod {name}")]


def _is_selected(budget: FullBudget, pod: FullPod) -> bool:
    decoded = decoding.budget(budget)
    return decoded is not None and decoded.selector is not None and decoded.selector.selects(pod.metadata.labels)


def _is_missing(message: str, pod: FullPod) -> bool:
    """True if the scheduler finds no node for a pod of the workload that the message of a limit names."""
    owner = pod.controller
    if owner is None or not pod.unschedulable:
        return False
    named = f" of {owner.kind} {owner.name} ", f"asked Deployment {owner.name.rpartition('-')[0]} "
    labels = (f" with label {key}={value} " for key, value in pod.metadata.labels.items())
    return any(one in message for one in (*named, *labels))

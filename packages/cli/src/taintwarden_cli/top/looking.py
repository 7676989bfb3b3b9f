"""What ``top`` shows of a cluster: the verdicts are those of the operator's engine, with the rights of the user."""

from collections.abc import Iterable, Iterator
from enum import IntEnum

import msgspec

from taintwarden.api.status import PolicyStatus
from taintwarden.engine.evaluate import TaintVerdict
from taintwarden.engine.history import TaintHistory
from taintwarden.engine.limits.zones import ZONE_LABEL
from taintwarden.engine.machine import ClaimView, GuardReport, View
from taintwarden.engine.model import Gates, Mode, Policy, Taint
from taintwarden.kube.wire.kinds import PodObject
from taintwarden_cli.explain.waiting import budgets_explained, waiting
from taintwarden_cli.rehearsal.deployments import unready_webhook
from taintwarden_cli.rehearsal.liveness import read_liveness
from taintwarden_cli.rehearsal.reading import Reader
from taintwarden_cli.rehearsal.rehearsal import at_once, named, taught
from taintwarden_cli.rehearsal.session import ClusterError, Session
from taintwarden_cli.rehearsal.snapshot import Snapshot
from taintwarden_cli.rehearsal.sources import DEVICES, EVALUATION, Source
from taintwarden_cli.status.event_timeline import Happening, read_timeline
from taintwarden_cli.status.policy_status import PolicySummary, summarize

EVENTS_SECONDS = 600.0
MAX_EVENTS = 30


class PodMark(IntEnum):
    """The state of a pod, the least urgent first."""

    STAYS = 0
    LEAVING = 1
    """It is terminating."""
    INVALID = 2
    """Its last valid verdict counts, as a value cannot be compared."""
    WOULD_LEAVE = 3
    """Only a policy that does not enforce gives it a deadline."""
    SCHEDULED = 4
    """It has a deadline."""
    BLOCKED = 5
    """It is due, and a PodDisruptionBudget does not allow its eviction."""
    OVERDUE = 6


class PodLook(msgspec.Struct):
    """One pod."""

    namespace: str
    name: str
    node: str
    fate: PodMark
    due_at: float | None = None
    policy: str = ""
    taint: str = ""
    holds: str = ""
    """What a pod that is due waits for."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class TaintLook(msgspec.Struct):
    """One taint of a node or of a device of its pods, and the worst state of these pods because of it."""

    key: str
    value: str
    effect: str
    worst: PodMark
    acts: bool
    """Whether a policy acts on it."""
    before: str | None = None
    """The value before."""
    device: str = ""
    """The name of the device that has it, in its pool; empty for a taint of the node."""


class NodeLook(msgspec.Struct):
    """One node with its pods, the least urgent first."""

    name: str
    zone: str
    taints: list[TaintLook]
    pods: list[PodLook]
    opts_out: bool = False

    @property
    def worst(self) -> PodMark:
        """The worst state of a pod, or of a taint whose value is invalid."""
        return max([PodMark.STAYS, *(one.fate for one in self.pods), *(one.worst for one in self.taints)])


class PolicyLook(msgspec.Struct):
    """One policy: its status, and how many evictions its guard counts and allows."""

    summary: PolicySummary
    guard_counts: int | None = None
    guard_allows: int | None = None


class Look(msgspec.Struct):
    """Everything at one moment."""

    at: float
    cluster: str
    problem: str
    """Why no operator is running, if none is."""
    reported_at: float | None
    nodes: list[NodeLook]
    policies: list[PolicyLook]
    events: list[Happening]
    """The oldest first."""
    unread: list[str]
    """What could not be read, and why."""

    def pods(self) -> Iterator[PodLook]:
        """All pods on nodes."""
        return (pod for node in self.nodes for pod in node.pods)


async def look(session: Session, operator: str, gates: Gates, now: float) -> Look:
    """Read the cluster. ``operator``: its namespace.

    Raises:
        ClusterError: nodes, pods or policies cannot be read.

    """
    snapshot = Snapshot(now)
    await Reader(session, snapshot).read((*EVALUATION, Source.BUDGETS, *DEVICES))
    for source in (Source.POLICIES, Source.NODES, Source.PODS):
        if source in snapshot.problems:
            raise ClusterError(snapshot.problems[source])
    unread = list(dict.fromkeys([*snapshot.problems.values(), *filter(None, [snapshot.devices_unserved])]))
    events: list[Happening] = []
    try:
        events = (await read_timeline(session, operator, "", EVENTS_SECONDS, now)).happenings[-MAX_EVENTS:]
    except ClusterError as error:
        unread.append(str(error))
    alive = await read_liveness(session, operator, snapshot.policies, now)
    found = judged(snapshot, gates)
    found.cluster, found.reported_at = session.cluster, alive.reported_at
    found.problem = alive.problem or await unready_webhook(session, operator)
    found.events, found.unread = events, unread
    return found


def judged(snapshot: Snapshot, gates: Gates) -> Look:
    """The verdicts of the engine on a snapshot; a paused policy counts as one that does not enforce."""
    rehearsal, now = taught(snapshot, gates), at_once(snapshot.now)()
    view, modes = rehearsal.view, {one.name: one.mode for one in rehearsal.policies}
    summaries = summarize([one for one in snapshot.policies if named(one)[1]], (), snapshot.now).policies
    judge = _Judge(view, modes, {one.name: one.status for one in summaries}, snapshot)
    leaving = _leaving(snapshot.pods)
    nodes = [judge.node(name, leaving.get(name, [])) for name in sorted(view.nodes)]
    policies = []
    for summary in summaries:
        guard = view.guard(summary.name, now)
        policies.append(PolicyLook(summary, *(_counted(guard) if guard else (None, None))))
    return Look(snapshot.now, "", "", None, [one for one in nodes if one is not None], policies, [], [])


def _counted(guard: GuardReport) -> tuple[int, int]:
    """How many evictions a guard counts, and how many it allows."""
    return guard.evicted + guard.due, guard.allowance


class _Judge:
    """What the view says of a node and its pods."""

    def __init__(
        self, view: View, modes: dict[str, Mode], statuses: dict[str, PolicyStatus], snapshot: Snapshot
    ) -> None:
        self._view = view
        self._modes = modes
        self._statuses = statuses
        self._snapshot = snapshot

    def node(self, name: str, leaving: list[PodLook]) -> NodeLook | None:
        """A node; None if only pods refer to it."""
        node = self._view.node(name)
        if node is None:
            return None
        pods, worst = list(leaving), dict[Taint, PodMark]()
        for pod in self._view.pods(name):
            verdicts = self._view.verdicts(name, pod.shared)
            standing = [one for one in self._view.claims(pod.uid) if not one.exempt]
            claims = sorted(standing, key=lambda one: (not self._enforces(one.policy), one.due_at))
            shown = self._claimed(claims[0]) if claims else None
            if shown is None:
                fate = PodMark.INVALID if any(one.invalid for one in verdicts) else PodMark.STAYS
                shown = PodLook(pod.namespace, pod.name, name, fate)
            pods.append(shown)
            for verdict in verdicts:
                fate = self._fate_of(verdict, shown)
                worst[verdict.taint] = max(worst.get(verdict.taint, PodMark.STAYS), fate)
        present = (*node.taints, *node.device_taints)
        taints = [_taint(taint, history, worst, node.policies) for taint, history in present]
        pods.sort(key=lambda one: (one.fate, one.due_at or 0.0, str(one)))
        zone = node.node.labels.get(ZONE_LABEL, "")
        return NodeLook(name, zone, taints, pods, node.node.do_not_evict)

    def _enforces(self, policy: Policy) -> bool:
        return self._modes.get(policy.name) is Mode.ENFORCE

    def _fate_of(self, verdict: TaintVerdict, pod: PodLook) -> PodMark:
        if verdict.evicts:
            return pod.fate if str(verdict.taint) == pod.taint else PodMark.SCHEDULED
        return PodMark.INVALID if verdict.invalid else PodMark.STAYS

    def _claimed(self, claim: ClaimView) -> PodLook:
        pod, policy = claim.pod, claim.policy
        shown = PodLook(pod.namespace, pod.name, pod.node, PodMark.SCHEDULED, claim.due_at, policy.name)
        shown.taint = str(claim.verdict.taint)
        if not self._enforces(policy):
            shown.fate = PodMark.WOULD_LEAVE
            shown.holds = f"policy {policy.name} is {_mode(self._modes.get(policy.name))}"
        elif claim.due_at <= self._snapshot.now:
            budgets = list(budgets_explained(self._view.budgets(pod), self._snapshot.budgets))
            found = waiting(pod, policy, self._statuses[policy.name], budgets, self._snapshot.now)
            shown.fate, shown.holds = PodMark.BLOCKED if found.budget else PodMark.OVERDUE, str(found)
        return shown


def _mode(mode: Mode | None) -> str:
    return "paused" if mode is Mode.PAUSED else f"in mode {mode}"


def _taint(taint: Taint, history: TaintHistory, worst: dict[Taint, PodMark], policies: Iterable[Policy]) -> TaintLook:
    acts = any(policy.selector_for(taint) for policy in policies)
    before = next(iter(history.values[1:]), None)
    device = "" if taint.origin is None else taint.origin.device.device
    return TaintLook(taint.key, taint.value, taint.effect, worst.get(taint, PodMark.STAYS), acts, before, device)


def _leaving(pods: Iterable[PodObject]) -> dict[str, list[PodLook]]:
    """The pods that terminate, by node: the engine does not know them any more."""
    found: dict[str, list[PodLook]] = {}
    for pod in pods:
        meta, node = pod.metadata, pod.spec.node_name
        if meta.deletion_timestamp is not None and node:
            found.setdefault(node, []).append(PodLook(meta.namespace, meta.name, node, PodMark.LEAVING))
    return found

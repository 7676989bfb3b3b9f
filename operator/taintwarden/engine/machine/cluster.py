"""What is known of the cluster: nodes with their taints' histories, and the pods on them."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from taintwarden.engine.evaluate import Concern, Grounds, TaintVerdict
from taintwarden.engine.history import TaintHistory, encode_histories, joined, observed, read_histories, until_now
from taintwarden.engine.model import DeviceUse, MonotonicTime, Node, Pod, PodClass, Policy, Taint, Tolerations
from taintwarden.engine.tally import Tally

Alike = tuple[Tolerations, tuple[Policy, ...], int, float, tuple[DeviceUse, ...]]
"""What verdicts on a node depend on: all tolerations, the policies, the grace if a policy reclaims its nodes, how long
a pod is protected, and its devices.
"""

Judged = tuple[tuple[TaintVerdict, ...], tuple[Grounds, ...]]
"""Verdicts on a class of pods, and why policies evict such pods, now or later."""

_NOT_READY, _UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
_ONE_CONDITION = {_UNREACHABLE: _NOT_READY}
"""The taints of a node that does not work. Kubernetes replaces one by the other while it stays so."""

TimedTaints = tuple[tuple[Taint, float | None], ...]


class TaintsBeside(Protocol):
    """The taints beside those of a node that concern pods on it, as a source of taints knows them."""

    def taints(self) -> Iterator[tuple[Taint, TaintHistory]]:
        """All of them, with their histories."""

    def concerns(self, pod_class: PodClass) -> Iterator[Concern]:
        """Those that concern pods of a class: a node may have a device for each pod."""

    def awaited(self, policies: Iterable[Policy]) -> Mapping[str, TaintHistory]:
        """The histories of taints that are not known yet, as far as these policies may act on them."""

    def lose(self) -> bool:
        """They are not known any more; their histories wait until they are. Returns whether there were any."""


class NodeState:
    """A node, the pods bound to it, and what was computed from both. ``node`` is None while only pods refer to it."""

    __slots__ = (
        "alike",
        "awaited_version",
        "beside",
        "concerned",
        "confirmed_at",
        "confirmed_version",
        "histories",
        "judged",
        "name",
        "node",
        "pods",
        "policies",
        "population",
        "reported_invalid",
        "staying",
        "unreadable_from",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: Node | None = None
        self.pods: dict[str, Pod] = {}
        self.histories: dict[str, TaintHistory] = {}
        self.beside: TaintsBeside | None = None
        """The taints of its pods that are not its own; None: no source has brought any."""
        self.concerned: tuple[Policy, ...] = ()
        """The policies whose nodeSelector selects this node, also if it opts out: its history is kept for them."""
        self.policies: tuple[Policy, ...] | None = None
        """The policies that select this node; None: to be computed again."""
        self.judged: dict[PodClass, Judged] = {}
        self.alike: dict[Alike, Judged] = {}
        """The verdicts on all classes that do not differ in what verdicts depend on."""
        self.population: Tally[str] = Tally()
        """Policy -> how many pods it may evict here."""
        self.staying: Counter[tuple[str, str]] | None = None
        """By policy and reason, how many of its pods stay although it has a taint; None: to be counted again."""
        self.confirmed_version = -1
        """The node is known as it was when pods had this resourceVersion."""
        self.confirmed_at = MonotonicTime(-math.inf)
        """A read of the node at this time found what the stream had delivered."""
        self.awaited_version = -1
        """A read found this version, which the stream has yet to deliver."""
        self.unreadable_from: float | None = None
        """Since when the newest version of the node cannot be decoded; None: it can."""
        self.reported_invalid: dict[str, str] = {}

    @property
    def labels(self) -> dict[str, str]:
        """The node's labels; none while only pods refer to it."""
        return self.node.labels if self.node is not None else {}

    @property
    def do_not_evict(self) -> bool:
        """Whether the node opts out of evictions."""
        return self.node is not None and self.node.do_not_evict

    def taints(self) -> Iterator[tuple[Taint, TaintHistory]]:
        """The taints of the node and of its pods, with their histories."""
        if self.node is not None:
            for taint, _ in self.node.taints:
                yield taint, self.histories[history_name(taint)]
            if self.beside is not None:
                yield from self.beside.taints()

    def history(self, name: str) -> TaintHistory | None:
        """The history of a taint of the node or of its pods, by its name; None: it is not there."""
        found = self.histories.get(name)
        if found is None and self.beside is not None:
            found = next((history for taint, history in self.beside.taints() if history_name(taint) == name), None)
        return found

    def concerns(self, pod_class: PodClass) -> Iterator[Concern]:
        """What of these concerns pods of a class."""
        if self.node is not None:
            for taint, _ in self.node.taints:
                yield Concern(taint, self.histories[history_name(taint)])
            if self.beside is not None:
                yield from self.beside.concerns(pod_class)

    @property
    def is_tainted(self) -> bool:
        """Whether there may be any."""
        return self.node is not None and bool(self.node.taints or self.beside is not None)

    def is_heartbeat(self, node: Node) -> bool:
        """Whether no relevant field of the same node differs: most updates of a node change only its status.

        Some writers renew the times of taints with each report.
        """
        known = self.node
        return (
            known is not None
            and are_alike(known.taints, node.taints)
            and known.labels == node.labels
            and known.history == node.history
            and known.do_not_evict == node.do_not_evict
        )

    def beat(self, node: Node, now: float) -> None:
        """Store a version in which only what does not matter differs, and the newest times of its taints."""
        if self.node is not None and self.node.taints != node.taints:
            for taint, stamp in node.taints:
                name = history_name(taint)
                self.histories[name] = self.histories[name].seen(taint.value, stamp, now)
        self.node = node

    def update(
        self, node: Node, now: float, *, seen_until: float, gap: bool
    ) -> tuple[Mapping[str, TaintHistory], list[str]]:
        """Store the node's newest state and extend the histories.

        Args:
            node: as it is stored.
            now: seconds since the epoch.
            seen_until: when what was known of the node was certainly true last: ``now`` while it is watched.
            gap: changes since then may be missing, so a later ``timeAdded`` means that the taint was added again, and
                the annotation may contain what another leader saw meanwhile. Otherwise the annotation is read once,
                when the node is first seen: from then on memory is newer.

        Returns:
            The histories of the annotation, if it was read; and what of it could not be read, and why.

        """
        faults: list[str] = []
        known, stored = self.histories, dict[str, TaintHistory]()
        is_new = self.node is None or self.node.uid != node.uid
        if is_new:
            known, seen_until, gap = {}, -math.inf, True
        if is_new or (gap and self.node is not None and self.node.history != node.history):
            stored, faults = _read(node.history, now)
            known = stored if is_new else joined(known, stored, seen_until)
        if self.node is None or self.node.labels != node.labels or self.node.do_not_evict != node.do_not_evict:
            self.policies = None
        self.node = node
        self.histories = {
            (name := history_name(taint)): observed(
                known.get(name), taint.value, stamp, now, absent_at=seen_until, gap=gap
            )
            for taint, stamp in node.taints
        }
        self.forget_verdicts()
        return stored, faults

    def forget_verdicts(self) -> None:
        """The taints, policies or tolerations changed."""
        self.judged.clear()
        self.alike.clear()

    def history_text(self) -> str:
        """The text that the annotation should have: the taints that a policy acts on."""
        selected = {
            history_name(taint): history
            for taint, history in self.taints()
            if any(policy.selector_for(taint) for policy in self.concerned)
        }
        awaited = {} if self.beside is None else self.beside.awaited(self.concerned)
        return encode_histories({**awaited, **selected})


class Cluster:
    """All nodes, and how many pods there are of each class, and of each namespace on each node."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeState] = {}
        self.classes: Tally[PodClass] = Tally()
        self.namespaces: dict[str, Tally[str]] = {}
        """Namespace -> how many of its pods each node has."""

    def state(self, name: str) -> NodeState:
        """The node of this name, which is created if it is not known."""
        state = self.nodes.get(name)
        if state is None:
            state = self.nodes[name] = NodeState(name)
        return state

    def labels(self, name: str) -> dict[str, str]:
        """The labels of a node; none if it is not known."""
        state = self.nodes.get(name)
        return state.labels if state is not None else {}

    def pod(self, node: str, uid: str) -> Pod | None:
        """The current pod; None if it is no longer on its node."""
        state = self.nodes.get(node)
        return None if state is None else state.pods.get(uid)

    def put(self, pod: Pod) -> None:
        """Store a pod."""
        state = self.state(pod.node)
        known = state.pods.get(pod.uid)
        state.pods[pod.uid] = pod
        if known is None or known.shared is not pod.shared:
            self.classes[pod.shared] += 1
            self.namespaces.setdefault(pod.namespace, Tally())[pod.node] += 1
            if known is not None:
                self._discount(state, known)

    def remove(self, node: str, uid: str) -> Pod | None:
        """Remove a pod. Returns what was known of it."""
        state = self.nodes.get(node)
        if state is None:
            return None
        known = state.pods.pop(uid, None)
        if known is not None:
            self._discount(state, known)
        if state.node is None and not state.pods:
            del self.nodes[node]
        return known

    def _discount(self, state: NodeState, pod: Pod) -> None:
        self.classes.take(pod.shared)
        self.namespaces[pod.namespace].take(pod.node)
        if not self.namespaces[pod.namespace]:
            del self.namespaces[pod.namespace]
        if pod.shared in state.judged and all(one.shared is not pod.shared for one in state.pods.values()):
            # Every run of a Job is a class of its own: a node would collect them until its taints change.
            del state.judged[pod.shared]
            state.alike.clear()  # which holds its tolerations

    def replace(self, name: str) -> NodeState:
        """A node is gone, or another one has its name: only the pods of the old one remain in the new state."""
        old = self.nodes[name]
        new = self.nodes[name] = NodeState(name)
        new.pods, new.beside, new.population = old.pods, old.beside, old.population
        if new.beside is not None:
            new.beside.lose()
        return new


def history_name(taint: Taint) -> str:
    """The name of a taint's history: the key and effect, without the value; and its device or source, if it has one.

    The two taints of a node that does not work are one.
    """
    name = f"{_ONE_CONDITION.get(taint.key, taint.key)}:{taint.effect}"
    if taint.origin is not None:
        return f"{name}@{taint.origin.name}"
    return f"{name} from {taint.source}" if taint.source else name


def are_alike(one: TimedTaints, other: TimedTaints) -> bool:
    """Whether they differ only in their times."""
    return one == other or [taint for taint, _ in one] == [taint for taint, _ in other]


def _read(text: str, now: float) -> tuple[dict[str, TaintHistory], list[str]]:
    """The histories of an annotation, and its faults."""
    found, faults = read_histories(text)
    believed = until_now(found, now)
    if believed != found:
        faults.append("its times lie in the future, and count from now")
    return believed, faults

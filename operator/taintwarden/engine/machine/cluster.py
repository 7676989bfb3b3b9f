"""Nodes with the histories of their taints, and the pods on them."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from taintwarden.engine.evaluate import Concern, Grounds, TaintVerdict
from taintwarden.engine.history import TaintHistory, encode_histories, joined, observed, read_histories, until_now
from taintwarden.engine.model import DeviceUse, MonotonicTime, Node, Pod, PodClass, Taint, Tolerations, later
from taintwarden.engine.policy import Policy
from taintwarden.engine.tally import Tally

VerdictKey = tuple[Tolerations, tuple[Policy, ...], int, float, tuple[DeviceUse, ...]]
"""Key of verdicts on a node: tolerations, policies, grace period (0: no ``reclaim``), protected seconds, devices."""

ClassVerdicts = tuple[tuple[TaintVerdict, ...], tuple[Grounds, ...]]
"""Verdicts on a class of pods, and why policies evict such pods, now or later."""

_NOT_READY, _UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
_ONE_CONDITION = {_UNREACHABLE: _NOT_READY}
"""Taints of a node that does not work. Kubernetes replaces one by the other, so both share a history."""

CHANGE_SECONDS, RESTLESS_SECONDS = 0.5, 5.0
"""Seconds for which a change of a node counts, and maximum sum: ten changes at once, then two a second."""
TimedTaints = tuple[tuple[Taint, float | None], ...]
"""Taints with their ``timeAdded`` in seconds since the epoch; None if that is not set."""


class SourceTaints(Protocol):
    """Taints that a source of taints, such as that of devices, adds for pods on a node."""

    def taints(self) -> Iterator[tuple[Taint, TaintHistory]]:
        """All these taints, with their histories."""

    def concerns(self, pod_class: PodClass) -> Iterator[Concern]:
        """Those that concern pods of a class: each pod of a node may use another device."""

    def unknown_histories(self, policies: Iterable[Policy]) -> Mapping[str, TaintHistory]:
        """Stored histories of taints that are not known again yet, if these policies may act on them."""

    def mark_unknown(self) -> bool:
        """Mark the taints as not known, but keep their histories. Returns True if there were any."""


class NodeState:
    """A node, the pods bound to it, and results computed from both. ``node`` is None while only pods refer to it."""

    __slots__ = (
        "awaited_version",
        "calm_at",
        "class_verdicts",
        "confirmed_at",
        "confirmed_version",
        "histories",
        "history_policies",
        "name",
        "node",
        "pods",
        "policies",
        "population",
        "reported_invalid",
        "shared_verdicts",
        "source_taints",
        "staying",
        "unreadable_from",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: Node | None = None
        self.pods: dict[str, Pod] = {}
        self.histories: dict[str, TaintHistory] = {}
        self.source_taints: SourceTaints | None = None
        """Taints that a source of taints adds for its pods; None if it has added none."""
        self.history_policies: tuple[Policy, ...] = ()
        """Policies whose nodeSelector selects the node, even if it opts out. Its history is kept for them."""
        self.policies: tuple[Policy, ...] | None = None
        """Policies that act on the node; None until they are computed again."""
        self.class_verdicts: dict[PodClass, ClassVerdicts] = {}
        self.shared_verdicts: dict[VerdictKey, ClassVerdicts] = {}
        """Verdicts shared by all classes that do not differ in the key."""
        self.population: Tally[str] = Tally()
        """Policy -> number of pods that it may evict here."""
        self.staying: Counter[tuple[str, str]] | None = None
        """Pods that stay although the node has a taint, by policy and reason; None until they are counted again."""
        self.confirmed_version = -1
        """Pods up to this resourceVersion may be evicted: a read has confirmed the known state of the node for them."""
        self.confirmed_at = MonotonicTime(-math.inf)
        """Start of the last read that found the version which the stream had delivered."""
        self.awaited_version = -1
        """Version that a read found and that the stream has yet to deliver; -1 if there is none."""
        self.calm_at = MonotonicTime(-math.inf)
        """Time until which counted changes last, see :meth:`is_restless`."""
        self.unreadable_from: float | None = None
        """Time since which the newest version of the node cannot be decoded; None if it can."""
        self.reported_invalid: dict[str, str] = {}
        """History name -> invalid value of the taint, which was reported."""

    @property
    def labels(self) -> dict[str, str]:
        """Labels of the node; empty while only pods refer to it."""
        return self.node.labels if self.node is not None else {}

    @property
    def do_not_evict(self) -> bool:
        """True if the node opts out of evictions."""
        return self.node is not None and self.node.do_not_evict

    def taints(self) -> Iterator[tuple[Taint, TaintHistory]]:
        """Taints of the node, and those that a source adds, with their histories."""
        if self.node is not None:
            for taint, _ in self.node.taints:
                yield taint, self.histories[history_name(taint)]
            if self.source_taints is not None:
                yield from self.source_taints.taints()

    def history(self, name: str) -> TaintHistory | None:
        """History, by its name, of a taint of the node or of a source; None if there is no such taint."""
        found = self.histories.get(name)
        if found is None and self.source_taints is not None:
            found = next((history for taint, history in self.taints() if history_name(taint) == name), None)
        return found

    def concerns(self, pod_class: PodClass) -> Iterator[Concern]:
        """Taints of the node, and those of a source that concern pods of a class."""
        if self.node is not None:
            for taint, _ in self.node.taints:
                yield Concern(taint, self.histories[history_name(taint)])
            if self.source_taints is not None:
                yield from self.source_taints.concerns(pod_class)

    @property
    def is_tainted(self) -> bool:
        """True if the node has taints, or a source may add some."""
        return self.node is not None and bool(self.node.taints or self.source_taints is not None)

    def is_restless(self, now: MonotonicTime) -> bool:
        """Count a change of the node. Returns True if there were too many lately, so that its pods are evaluated later.

        A kubelet may change its node at any rate, and each change may concern a hundred pods.
        """
        lasts_until = later(max(self.calm_at, now), CHANGE_SECONDS)
        if lasts_until > now + RESTLESS_SECONDS:
            return True
        self.calm_at = lasts_until
        return False

    def is_heartbeat(self, node: Node) -> bool:
        """True if no relevant field differs, as in most updates. Times of taints do not matter: writers renew them."""
        known = self.node
        return (
            known is not None
            and have_same_taints(known.taints, node.taints)
            and known.labels == node.labels
            and known.history == node.history
            and known.do_not_evict == node.do_not_evict
        )

    def store_heartbeat(self, node: Node, now: float) -> None:
        """Store a version that differs in no relevant field, and the newest times of its taints."""
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
            node: its newest version.
            now: seconds since the epoch.
            seen_until: last time at which the known version was the newest: ``now`` while it is watched.
            gap: True if changes since then may be missing. A later ``timeAdded`` then means that the taint was added
                again, and the annotation may contain what another leader saw meanwhile. Without a gap the annotation
                is read only when the node is first seen: from then on memory is newer.

        Returns:
            The histories of the annotation, if it was read, and the faults found in it.

        """
        faults: list[str] = []
        known, stored = self.histories, dict[str, TaintHistory]()
        is_new = self.node is None or self.node.uid != node.uid
        unread = set() if self.node is None else {str(source) for source in node.sources - self.node.sources}
        begun = {history_name(taint) for taint, _ in node.taints if taint.source in unread}  # perhaps long ago
        if is_new:
            known, seen_until, gap = {}, -math.inf, True
        if is_new or (gap and self.node is not None and self.node.history != node.history):
            stored, faults = _read(node.history, now)
            of_others = {name: one for name, one in stored.items() if name in begun}
            known = stored if is_new else joined(known | of_others, stored, seen_until)
        if self.node is None or self.node.labels != node.labels or self.node.do_not_evict != node.do_not_evict:
            self.policies = None
        self.node = node
        self.histories = {
            (name := history_name(taint)): observed(
                known.get(name), taint.value, stamp, now, absent_at=-math.inf if name in begun else seen_until, gap=gap
            )
            for taint, stamp in node.taints
        }
        self.forget_verdicts()
        return stored, faults

    def forget_verdicts(self) -> None:
        """Drop the verdicts, since taints, policies or tolerations changed."""
        self.class_verdicts.clear()
        self.shared_verdicts.clear()

    def history_text(self) -> str:
        """Content that the annotation should have: histories of taints that one of ``history_policies`` selects."""
        selected = {
            history_name(taint): history
            for taint, history in self.taints()
            if any(policy.selector_for(taint) for policy in self.history_policies)
        }
        awaited = {} if self.source_taints is None else self.source_taints.unknown_histories(self.history_policies)
        return encode_histories({**awaited, **selected})


class Cluster:
    """All nodes, and the numbers of pods by class, and by namespace and node."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeState] = {}
        self.classes: Tally[PodClass] = Tally()
        self.namespaces: dict[str, Tally[str]] = {}
        """Namespace -> number of its pods on each node."""

    def state(self, name: str) -> NodeState:
        """State of the node of this name, created if there is none."""
        state = self.nodes.get(name)
        if state is None:
            state = self.nodes[name] = NodeState(name)
        return state

    def labels(self, name: str) -> dict[str, str]:
        """Labels of a node; empty if it is not known."""
        state = self.nodes.get(name)
        return state.labels if state is not None else {}

    def pod(self, node: str, uid: str) -> Pod | None:
        """Current version of a pod; None if it is no longer on its node."""
        state = self.nodes.get(node)
        return None if state is None else state.pods.get(uid)

    def put_pod(self, pod: Pod) -> None:
        """Store a pod."""
        state = self.state(pod.node)
        known = state.pods.get(pod.uid)
        state.pods[pod.uid] = pod
        if known is None or known.shared is not pod.shared:
            self.classes[pod.shared] += 1
            self.namespaces.setdefault(pod.namespace, Tally())[pod.node] += 1
            if known is not None:
                self._uncount_pod(state, known)

    def remove_pod(self, node: str, uid: str) -> Pod | None:
        """Remove a pod. Returns its last version, if it was known."""
        state = self.nodes.get(node)
        if state is None:
            return None
        known = state.pods.pop(uid, None)
        if known is not None:
            self._uncount_pod(state, known)
        if state.node is None and not state.pods:
            del self.nodes[node]
        return known

    def _uncount_pod(self, state: NodeState, pod: Pod) -> None:
        self.classes.take(pod.shared)
        self.namespaces[pod.namespace].take(pod.node)
        if not self.namespaces[pod.namespace]:
            del self.namespaces[pod.namespace]
        if pod.shared in state.class_verdicts and all(one.shared is not pod.shared for one in state.pods.values()):
            # Every run of a Job is a class of its own. The node would collect classes until its taints change.
            del state.class_verdicts[pod.shared]
            state.shared_verdicts.clear()  # its keys hold the tolerations of the class

    def replace_node(self, name: str) -> NodeState:
        """Create a new state for a node that is gone or has a new UID. Pods remain; taints of a source are unknown."""
        old = self.nodes[name]
        new = self.nodes[name] = NodeState(name)
        new.pods, new.source_taints, new.population = old.pods, old.source_taints, old.population
        if new.source_taints is not None:
            new.source_taints.mark_unknown()
        return new


def history_name(taint: Taint) -> str:
    """Name of a taint's history: its key and effect, not its value, and the device or value source that it has, if any.

    The two taints of a node that does not work share a name.
    """
    if taint.origin is not None:
        return f"{taint.key}:{taint.effect}@{taint.origin.name}"
    name = f"{_ONE_CONDITION.get(taint.key, taint.key)}:{taint.effect}"
    return f"{name} from {taint.source}" if taint.source else name


def have_same_taints(one: TimedTaints, other: TimedTaints) -> bool:
    """True if the taints differ at most in their times."""
    return one == other or [taint for taint, _ in one] == [taint for taint, _ in other]


def _read(text: str, now: float) -> tuple[dict[str, TaintHistory], list[str]]:
    """Histories of an annotation, and its faults."""
    found, faults = read_histories(text)
    believed = until_now(found, now)
    if believed != found:
        faults.append("its times lie in the future, and count from now")
    return believed, faults

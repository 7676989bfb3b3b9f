"""What is known of the cluster: nodes with their taints' histories, and the pods on them."""

from collections import Counter
from collections.abc import Iterator

import msgspec

from taintwarden.engine.evaluate import TaintVerdict
from taintwarden.engine.history import TaintHistory, decode_histories, encode_histories, until_now
from taintwarden.engine.model import Node, Pod, PodClass, Policy, Taint, Tolerations

Alike = tuple[Tolerations, tuple[Policy, ...], int]
"""What verdicts on a node depend on: all tolerations, the policies, and the grace if a policy reclaims its nodes."""


class NodeState:
    """A node, the pods bound to it, and what was computed from both. ``node`` is None while only pods refer to it."""

    __slots__ = (
        "alike",
        "check_wanted",
        "checked_version",
        "degraded",
        "evicting",
        "found_draining",
        "histories",
        "name",
        "node",
        "pods",
        "policies",
        "reported_invalid",
        "verdicts",
        "witnesses",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: Node | None = None
        self.pods: dict[str, Pod] = {}
        self.histories: dict[str, TaintHistory] = {}
        self.policies: tuple[Policy, ...] | None = None
        """The policies that select this node; None: to be computed again."""
        self.verdicts: dict[PodClass, tuple[TaintVerdict, ...]] = {}
        self.evicting: dict[PodClass, tuple[TaintVerdict, ...]] = {}
        """The verdicts of these that evict pods, now or later."""
        self.alike: dict[Alike, tuple[TaintVerdict, ...]] = {}
        """The verdicts on all classes that do not differ in what verdicts depend on."""
        self.witnesses: dict[tuple[str, str], PodClass] = {}
        """(policy, taint) that drains the node -> the class of a pod that has to leave, or had to and is gone."""
        self.found_draining: dict[str, str] = {}
        """Taints that drained the node when it was first seen, with their values then: they have no witnesses."""
        self.checked_version = -1
        """A direct read is known to be at least as new as this resourceVersion."""
        self.check_wanted = False
        self.degraded = False
        self.reported_invalid: dict[str, str] = {}

    @property
    def labels(self) -> dict[str, str]:
        """The node's labels; none while only pods refer to it."""
        return self.node.labels if self.node is not None else {}

    def taints(self) -> Iterator[tuple[Taint, TaintHistory]]:
        """The node's taints with their histories."""
        if self.node is not None:
            for taint, _ in self.node.taints:
                yield taint, self.histories[history_name(taint)]

    def is_heartbeat(self, node: Node) -> bool:
        """Whether no relevant field differs from what is known: most updates of a node change only its status."""
        known = self.node
        return (
            known is not None
            and known.uid == node.uid
            and known.taints == node.taints
            and known.labels == node.labels
            and known.history == node.history
        )

    def update(self, node: Node, now: float, *, adopt: bool, gap: bool) -> str | None:
        """Store the node's newest state and extend the histories.

        Args:
            node: as it is stored.
            now: seconds since the epoch.
            adopt: the annotation is from another replica, which leads and has newer data. Otherwise it is read once,
                when the node is first seen: from then on memory is newer than the annotation.
            gap: changes of the node may be missing, so a later ``timeAdded`` means that the taint was added again, and
                the annotation may contain what another leader saw meanwhile.

        Returns:
            Why the annotation could not be read, if so.

        """
        problem, known = None, self.histories
        is_new = self.node is None or self.node.uid != node.uid
        if is_new or ((adopt or gap) and self.node is not None and self.node.history != node.history):
            stored, problem = _read(node.history, now)
            known = stored if is_new else _adopted(stored, known) if adopt else _later(stored, known)
        if is_new:
            self.found_draining = {name: one.value for name, one in known.items() if one.drains}
        if self.node is None or self.node.labels != node.labels:
            self.policies = None
        self.node = node
        self.histories = {
            history_name(taint): _observed(known.get(history_name(taint)), taint, added, now, gap=gap or is_new)
            for taint, added in node.taints
        }
        self.witnesses = {key: one for key, one in self.witnesses.items() if key[1] in self.histories}
        self.verdicts, self.evicting, self.alike = {}, {}, {}
        return problem

    def set_draining(self, name: str, *, drains: bool) -> None:
        """Set whether pods have to leave, or had to, because of a taint."""
        history = self.histories[name]
        if history.drains != drains:
            self.histories[name] = msgspec.structs.replace(history, drains=drains)

    def history_text(self) -> str:
        """The text that the annotation should have: the taints that a policy acts on."""
        selected = {
            history_name(taint): history
            for taint, history in self.taints()
            if any(policy.selector_for(taint) for policy in self.policies or ())
        }
        return encode_histories(selected)


class Cluster:
    """All nodes, and how many pods of each class there are."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeState] = {}
        self.classes: Counter[PodClass] = Counter()

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

    def put(self, pod: Pod) -> Pod | None:
        """Store a pod. Returns what was known of it."""
        state = self.state(pod.node)
        known = state.pods.get(pod.uid)
        state.pods[pod.uid] = pod
        if known is None or known.shared is not pod.shared:
            self.classes[pod.shared] += 1
            if known is not None:
                self._discount(state, known)
        return known

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
        self.classes[pod.shared] -= 1
        if not self.classes[pod.shared]:
            del self.classes[pod.shared]
        if pod.shared in state.verdicts and all(one.shared is not pod.shared for one in state.pods.values()):
            # Every run of a Job is a class of its own: a node would collect them until its taints change.
            del state.verdicts[pod.shared], state.evicting[pod.shared]
            state.alike.clear()  # which holds its tolerations

    def replace(self, name: str) -> NodeState:
        """A node is gone, or another one has its name: only the pods of the old one remain in the new state."""
        old = self.nodes[name]
        new = self.nodes[name] = NodeState(name)
        new.pods = old.pods
        return new


def history_name(taint: Taint) -> str:
    """The name of a taint's history: the key and effect, without the value."""
    return f"{taint.key}:{taint.effect}"


def _read(text: str, now: float) -> tuple[dict[str, TaintHistory], str | None]:
    """The histories of an annotation, and its fault, if there is one."""
    try:
        decoded = decode_histories(text)
    except ValueError as error:
        return {}, str(error)
    believed = until_now(decoded, now)
    return believed, "its times lie in the future, and count from now" if believed != decoded else None


def _adopted(stored: dict[str, TaintHistory], known: dict[str, TaintHistory]) -> dict[str, TaintHistory]:
    """What the leader has written, extended by the values that this process saw and the leader has not written yet."""
    found = dict(known)
    for name, history in stored.items():
        mine = known.get(name)
        if mine is not None and mine.value != history.value and mine.spans[-1].since > history.spans[-1].since:
            found[name] = history.observe(mine.value, mine.spans[-1].since)
        else:
            found[name] = history
    return found


def _later(stored: dict[str, TaintHistory], known: dict[str, TaintHistory]) -> dict[str, TaintHistory]:
    """What this process saw, except where what is stored is later: a late eviction is better than an early one."""
    newer = {
        name: history
        for name, history in stored.items()
        if name not in known or known[name].spans[-1].since < history.spans[-1].since
    }
    return known | newer


def _observed(
    known: TaintHistory | None, taint: Taint, time_added: float | None, now: float, *, gap: bool
) -> TaintHistory:
    added_at = now if time_added is None else min(time_added, now)
    if known is None:
        return TaintHistory.begin(taint.value, added_at)
    if time_added is not None:
        if gap and known.is_added_again(added_at):
            return TaintHistory.begin(taint.value, added_at)
        if not gap:  # else an older object may have been restored, from before the taint was added again
            # The time as written: a clock that was set back moves nothing earlier.
            known = known.added_no_later_than(time_added)
    return known.observe(taint.value, now)

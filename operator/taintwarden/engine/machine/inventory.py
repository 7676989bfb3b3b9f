"""What is known of the cluster: nodes with their taints' histories and the pods on them."""

from collections.abc import Iterator

import msgspec

from taintwarden.engine.evaluate import TaintVerdict
from taintwarden.engine.history import TaintHistory, decode_histories, encode_histories
from taintwarden.engine.model import Node, Pod, PodClass, Policy, Taint


class NodeState:
    """A node, the pods bound to it, and what was computed from both. ``node`` is None while only pods name it."""

    __slots__ = (
        "check_wanted",
        "checked_version",
        "degraded",
        "found_draining",
        "histories",
        "name",
        "node",
        "parked",
        "pods",
        "policies",
        "reported_invalid",
        "saved",
        "saving",
        "verdicts",
        "witnesses",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: Node | None = None
        self.pods: dict[str, Pod] = {}
        self.histories: dict[str, TaintHistory] = {}
        self.policies: tuple[Policy, ...] | None = None
        """Those that select this node; None: to be computed again."""
        self.verdicts: dict[PodClass, tuple[TaintVerdict, ...]] = {}
        self.witnesses: dict[str, PodClass] = {}
        """For a taint that drains: the class of a pod that had to leave, which may be gone."""
        self.found_draining: dict[str, str] = {}
        """Taints that drained when the node was first seen, with their values then: nobody here is their witness."""
        self.checked_version = -1
        """A fresh read is known to be at least as new as this resourceVersion."""
        self.check_wanted = False
        self.parked: list[str] = []
        """UIDs of due pods that wait for a fresh read."""
        self.saved = ""
        self.saving: str | None = None
        self.degraded = False
        self.reported_invalid: dict[str, str] = {}

    @property
    def labels(self) -> dict[str, str]:
        """The node's labels; none while only pods name it."""
        return self.node.labels if self.node is not None else {}

    def taints(self) -> Iterator[tuple[Taint, TaintHistory]]:
        """The node's taints with their histories."""
        if self.node is not None:
            for taint, _ in self.node.taints:
                yield taint, self.histories[history_name(taint)]

    def update(self, node: Node, now: float) -> str | None:
        """Take over the node's newest state and extend the histories.

        The annotation counts once, when the node is first seen: from then on memory is newer than what it says.

        Returns:
            Why the annotation could not be read, if so.

        """
        problem = None
        known = self.histories
        if self.node is None or self.node.uid != node.uid:
            known = {}
            try:
                known = decode_histories(node.history)
            except ValueError as error:
                problem = str(error)
            self.found_draining = {name: one.value for name, one in known.items() if one.drains}
        if self.saving is None or node.history == self.saving:
            self.saved = node.history
        if self.node is None or self.node.labels != node.labels:
            self.policies = None
        self.node = node
        self.histories = {
            history_name(taint): _observed(known.get(history_name(taint)), taint, time_added, now)
            for taint, time_added in node.taints
        }
        self.witnesses = {name: one for name, one in self.witnesses.items() if name in self.histories}
        return problem

    def mark_draining(self, taint: Taint, witness: PodClass) -> bool:
        """A pod of this class has to leave because of ``taint``. Returns whether that is news."""
        name = history_name(taint)
        self.witnesses[name] = witness
        self.found_draining.pop(name, None)
        history = self.histories[name]
        if history.drains:
            return False
        self.histories[name] = msgspec.structs.replace(history, drains=True)
        return True

    def unmark_draining(self, name: str) -> None:
        """Nobody has to leave any more because of this taint, nor would those who had to."""
        self.witnesses.pop(name, None)
        self.found_draining.pop(name, None)
        self.histories[name] = msgspec.structs.replace(self.histories[name], drains=False)

    def drained_by(self, policy: Policy) -> bool:
        """Whether pods have, or had, to leave this node because of a taint that ``policy`` acts on."""
        return any(history.drains and policy.selector_for(taint) for taint, history in self.taints())

    def history_text(self) -> str:
        """What the annotation should say: the taints that some policy acts on."""
        selected = {
            history_name(taint): history
            for taint, history in self.taints()
            if any(policy.selector_for(taint) for policy in self.policies or ())
        }
        return encode_histories(selected)


def history_name(taint: Taint) -> str:
    """What a history belongs to: a taint's key and effect, whatever its value."""
    return f"{taint.key}:{taint.effect}"


def _observed(known: TaintHistory | None, taint: Taint, time_added: float | None, now: float) -> TaintHistory:
    added_at = now if time_added is None else min(time_added, now)
    if known is None:
        return TaintHistory.begin(taint.value, added_at)
    if time_added is not None:
        known = known.added_no_later_than(added_at)
    return known.observe(taint.value, now)

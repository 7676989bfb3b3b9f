"""The law of the condition ``taintwarden.io/Drained``, as a judge of histories.

*Not before*: no write says that a node is drained while a pod is there that had to leave, or left, when its pods were
read. *Not later*: in the end each node with a selected taint has the condition, and it says what is true.
"""

from collections.abc import Iterable
from copy import copy
from typing import Any

from simulated.world import when
from simulated.world.law import STALE, Breach, Judge, Rules
from simulated.world.when import NEVER

RULES = ("policies", "profiles", "namespaces", "slices", "claims", "rules")
"""Kinds whose changes give pods other deadlines, and which operators know a moment later."""
SEEN_SECONDS = 1.5
"""Until an operator that is well knows of a pod."""


class DrainedJudge:
    """Asks another judge which pods have to leave.

    Args:
        law: knows all objects as they are stored.

    """

    def __init__(self, law: Judge) -> None:
        self.breaches: list[Breach] = []
        self.trues = 0
        """Number of times that a node was reported as drained."""
        self._law = law
        self._rules_changed = -NEVER
        self._read: dict[int, set[str]] = {}
        """id of an order -> UIDs of pods that had to leave, or left, when it read the pods of its node."""
        self._orders: list[Any] = []
        """Kept, so that no id is used twice."""
        self._there: set[str] = set()

    def changed(self, kind: str, at: float) -> None:
        """An object of this kind changed."""
        if kind in RULES:
            self._rules_changed = at

    def read(self, node: str, order: Any) -> None:
        """The pods of a node are read for a write."""
        self._orders.append(order)
        self._read[id(order)] = self._leaving(node)

    def sent(self, node: str, order: Any, *, is_well: bool) -> None:
        """A write goes out, of an operator whose streams may be well: it knows who came a while ago."""
        begin = self._law.now - SEEN_SECONDS
        known = {uid for uid in self._leaving(node) if self._law._pods[uid][-1][0] < begin} if is_well else set()
        self._read[id(order)] = self._read.get(id(order), set()) | known

    def writes(self, node: str) -> None:
        """A write is about to be carried out."""
        self._there = self._leaving(node)

    def written(self, node: str, content: tuple[str, str, str] | None, order: Any) -> None:
        """Compare the written condition with the pods that have to leave."""
        if content is None or content[0] != "True":
            return
        self.trues += 1
        wrong = self._read.get(id(order), set()) & self._there
        if wrong and self._law.now > self._rules_changed + STALE:
            names = ", ".join(sorted(wrong))
            self.breaches.append(Breach("drained", self._law.now, f"node {node} is drained in spite of {names}", node))

    def _leaving(self, node: str) -> set[str]:
        """UIDs of pods of a node that surely have to leave, or that terminate and would."""
        self._law._settle()
        found = {
            uid
            for (_, uid), want in self._law.wants.items()
            if want.pod.node == node and want.rules.enforces and want.due.late < NEVER
        }
        return found | {pod.uid for pod in self._stopping(node) if self._would_leave(pod)}

    def _stopping(self, node: str) -> Iterable[when.Pod]:
        for states in self._law._pods.values():
            pod = states[-1][1]
            if pod is not None and pod.node == node and pod.stops is not None:
                yield pod

    def _would_leave(self, pod: when.Pod) -> bool:
        running = copy(pod)
        running.stops = None
        demands = self._law._demands(pod.uid, running)
        return any(rules.enforces and due.late < NEVER and not due.taint.by for rules, due in demands)

    # -- in the end ---------------------------------------------------------------------------------------------------

    def end(self, nodes: Iterable[Any]) -> list[Breach]:
        """Compare the condition of each node, as it is stored, after a long calm."""
        for node in nodes:
            wanted, said = self._wanted(node.name), node.drained[0] if node.drained else ""
            if wanted not in (None, said):
                sentence = f"of node {node.name} it says {said or 'nothing'}, and should say {wanted or 'nothing'}"
                self.breaches.append(Breach("drained-late", self._law.now, sentence, node.name))
        return self.breaches

    def _wanted(self, name: str) -> str | None:
        """``True``, ``False``, nothing (empty), or None: not known."""
        node = self._law._nodes[name][-1][1]
        assert node is not None
        if any(rules.devices for rules in self._law.policies.values()):
            return None
        if not any(self._selects(rules, node) for rules in self._law.policies.values()):
            return ""
        if self._leaving(name):
            return "False"
        perhaps = any(want.pod.node == name for want in self._law.wants.values()) or any(
            True for _ in self._stopping(name)
        )
        is_paused = any(not rules.acts for rules in self._law.policies.values())
        return None if perhaps or is_paused else "True"

    def _selects(self, rules: Rules, node: when.Node) -> bool:
        is_dry = not rules.enforces and rules.acts
        opts_out = node.marks.get("taintwarden.io/do-not-evict") == "true"
        if is_dry or not when.matches(rules.nodes, node.labels):
            return False
        if opts_out and rules.exclude.get("respectDoNotEvict", True):
            return False
        return any(when.specificity(rules.taints, taint) for taint in node.taints)

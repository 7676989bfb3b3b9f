"""The taints of nodes whose last good value is known from the history: how to restore it, node by node."""

from collections.abc import Iterator, Sequence

import msgspec

from taintwarden.controller import wording
from taintwarden.engine.evaluate import TaintVerdict, acting_policy, judge
from taintwarden.engine.history import TaintHistory
from taintwarden.engine.machine import NodeView, View
from taintwarden.engine.model import Gates, PodClass, Policy, Taint


class Repair(msgspec.Struct, rename="camel", kw_only=True):
    """One taint of one node. ``value`` None: no earlier value is better."""

    node: str
    key: str
    effect: str
    current: str
    value: str | None
    since: str
    """When the current value began."""
    seconds: int
    """How long ago that is."""
    leaving: int
    """Pods on the node that have to leave now because of the taint."""
    leaving_after: int = 0
    """The same with ``value``."""

    @property
    def taint(self) -> str:
        """The taint to set, ``KEY=VALUE:EFFECT``."""
        return str(Taint(self.key, self.value or "", self.effect))


class Other(msgspec.Struct, rename="camel", kw_only=True):
    """A taint that makes pods leave and that no command restores: another component writes its value."""

    node: str
    taint: str
    source: str
    """What of the node it is read from; empty: it is a taint of a device."""
    leaving: int
    """Pods on the node that have to leave now because of the taint."""


def others(view: View, policy: Policy) -> list[Other]:
    """What makes pods leave beside taints that clients write: values of nodes, and taints of devices, by node."""
    found = []
    for name in sorted(view.nodes):
        node = view.node(name)
        if node is None or policy not in node.policies:
            continue
        for taint in dict.fromkeys(taint for taint, _ in (*node.taints, *node.device_taints)):
            leaving = sum(one.evicts for one, _ in _verdicts(view, node, policy, taint))
            if leaving and (taint.source or taint.origin is not None):
                found.append(Other(node=name, taint=str(taint), source=str(taint.source), leaving=leaving))
    return found


def repairs(view: View, policy: Policy, gates: Gates, now: float) -> list[Repair]:
    """The taints on which a policy acts and that have a bad value, by node.

    A value is bad if a pod has to leave because of it, had to, or cannot compare it. The last good one is the latest
    earlier value that can be compared and with which the fewest pods of the node have to leave.
    """
    found = []
    for name in sorted(view.nodes):
        node = view.node(name)
        if node is not None and policy in node.policies:
            found += [
                _repair(view, node, policy, taint, history, gates, now)
                for taint, history in node.taints
                if _is_bad(view, node, policy, taint, history)
            ]
    return found


def _is_bad(view: View, node: NodeView, policy: Policy, taint: Taint, history: TaintHistory) -> bool:
    if taint.source or acting_policy(taint, node.policies) is not policy:  # no command sets what is derived
        return False
    return history.drains or any(one.evicts or one.invalid for one, _ in _verdicts(view, node, policy, taint))


def _verdicts(view: View, node: NodeView, policy: Policy, taint: Taint) -> Iterator[tuple[TaintVerdict, PodClass]]:
    """The verdicts of the policy on each pod of the node because of the taint."""
    for pod in view.pods(node.node.name):
        for verdict in view.verdicts(node.node.name, pod.shared):
            if verdict.taint == taint and verdict.policy == policy:
                yield verdict, pod.shared


def _repair(
    view: View, node: NodeView, policy: Policy, taint: Taint, history: TaintHistory, gates: Gates, now: float
) -> Repair:
    pairs = [*_verdicts(view, node, policy, taint)]
    classes = [pod_class for _, pod_class in pairs]
    leaving = sum(verdict.evicts for verdict, _ in pairs)
    best: tuple[int, str] | None = None
    for span in reversed(history.spans[:-1]):
        after = _leaving(view, classes, policy, Taint(taint.key, span.value, taint.effect), gates)
        is_better = after is not None and span.value != taint.value and (best is None or after < best[0])
        if after is not None and is_better:
            best = (after, span.value)
    return Repair(
        node=node.node.name,
        key=taint.key,
        effect=taint.effect,
        current=taint.value,
        value=best[1] if best else None,
        since=wording.at(history.spans[-1].since),
        seconds=round(now - history.spans[-1].since),
        leaving=leaving,
        leaving_after=best[0] if best else 0,
    )


def _leaving(view: View, classes: Sequence[PodClass], policy: Policy, taint: Taint, gates: Gates) -> int | None:
    """How many of these pods would have to leave; None if the value cannot be compared."""
    selector, number = policy.selector_for(taint), 0
    value_type = selector.value_type if selector else None
    mode = policy.timing.toleration_seconds_mode
    for pod_class in classes or (None,):
        relevant = () if pod_class is None else view.tolerations_of(pod_class).relevant_to(taint.key)
        judgement = judge(relevant, taint, mode, value_type, gates)
        if judgement.invalid:
            return None
        number += pod_class is not None and not judgement.tolerated
    return number

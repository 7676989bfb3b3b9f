"""Pods that are evicted and fit no other node. Considered: taints, nodeSelector, required nodeAffinity.

Not considered: free resources, affinity to pods, topology spread, volumes, ports; nodes that an autoscaler would add.
"""

from collections.abc import Iterator

from taintwarden.cli.doctor.check import Check, Found, Severity
from taintwarden.cli.doctor.context import Context
from taintwarden.cli.doctor.injected_namespaces import injects
from taintwarden.cli.doctor.inventory import PodGroup
from taintwarden.engine.evaluate import TaintVerdict
from taintwarden.engine.machine import NodeView
from taintwarden.engine.model import Effect, Mode, Taint
from taintwarden.engine.operators import Match, match
from taintwarden.rehearsal.sources import EVALUATION, TEMPLATES, Source, Subject

_NAMED = 3
"""The number of taints that are named."""


def _nowhere(context: Context) -> Iterator[Found]:
    told: set[Subject] = set()
    nodes = _Nodes(context)
    for group in context.groups:
        if group.pod_class.daemon_set or group.subject.kind == "Pod":
            continue  # they are not replaced on another node
        leaving = _leaving(context, group)
        if leaving and not nodes.take(group):
            told.add(group.subject)
            yield from _told(group, leaving)
    yield from (one for one in unplaceable(context) if one.subject not in told)


def unplaceable(context: Context) -> Iterator[Found]:
    """Workloads whose pods would fit no node, by their templates."""
    nodes = _Nodes(context)
    for group in context.groups:
        if group.template and group.wanted > 0 and not group.pod_class.daemon_set:
            yield from _unplaceable(context, group, nodes)


def _leaving(context: Context, group: PodGroup) -> list[tuple[TaintVerdict, int]]:
    """Why pods have to leave their node, and how many."""
    found: dict[str, tuple[TaintVerdict, int]] = {}
    for _, count, verdicts in context.evaluated(group):
        verdict = next((one for one in verdicts if one.evicts), None)
        if verdict is not None:
            first, pods = found.setdefault(str(verdict.taint), (verdict, 0))
            found[str(verdict.taint)] = (first, pods + count)
    return [*found.values()]


def _told(group: PodGroup, leaving: list[tuple[TaintVerdict, int]]) -> Iterator[Found]:
    for verdict, pods in leaving:
        enforced = verdict.policy.mode is Mode.ENFORCE
        how = "have to leave" if enforced else "would have to leave"
        message = f"{how} because of {verdict.taint} (policy {verdict.policy.name}), and fit no other node"
        yield Found(group.subject, message, severity=None if enforced else Severity.WARNING, pods=pods)


def _unplaceable(context: Context, group: PodGroup, nodes: "_Nodes") -> Iterator[Found]:
    """A workload that fits no node only because of taints that policies act on."""
    if nodes.take(group):
        return
    candidates, blocking = 0, dict[str, None]()
    for node in context.nodes.values():
        if _suits(group, node):
            taint = _blocking(context, group, node)
            if taint is None:
                return
            candidates += 1
            blocking[str(taint)] = None
    if candidates:
        taints = ", ".join([*blocking][:_NAMED]) + (" and others" if len(blocking) > _NAMED else "")
        where = "do not hold on the only node" if candidates == 1 else f"hold on none of the {candidates} nodes"
        message = f"its tolerations {where} that it could be on: {taints}"
        yield Found(group.subject, message, severity=Severity.WARNING)


class _Nodes:
    """The nodes, those first that fitted a pod last: they probably fit the next one, too."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._nodes = list(context.nodes.values())

    def take(self, group: PodGroup) -> bool:
        """Whether the pods fit a node that would not evict them."""
        for index, node in enumerate(self._nodes):
            if self._takes(node, group):
                self._nodes.insert(0, self._nodes.pop(index))
                return True
        return False

    def _takes(self, node: NodeView, group: PodGroup) -> bool:
        context = self._context
        return (
            _suits(group, node)
            and all(_schedules(context, group, taint) for taint, _ in node.taints)
            and not any(verdict.evicts for verdict in context.verdicts(node.node.name, group))
        )


def _suits(group: PodGroup, node: NodeView) -> bool:
    return group.shape.place.fits(node.node.name, node.node.labels)


def _blocking(context: Context, group: PodGroup, node: NodeView) -> Taint | None:
    """A taint that keeps the pods off a node, and that a policy acts on."""
    evicting = (one.taint for one in context.verdicts(node.node.name, group) if one.evicts)
    refused = (
        taint
        for taint, _ in node.taints
        if any(policy.selector_for(taint) for policy in node.policies) and not _schedules(context, group, taint)
    )
    return next(evicting, None) or next(refused, None)


def _schedules(context: Context, group: PodGroup, taint: Taint) -> bool:
    """Whether the scheduler, which reads native tolerations only, accepts the taint."""
    tolerations = group.pod_class.tolerations
    if taint.source or taint.effect == Effect.PREFER_NO_SCHEDULE:
        return True
    if any(match(one, taint, context.gates) is Match.HOLDS for one in tolerations.native):
        return True
    every = context.view.tolerations_of(group.pod_class)
    return injects(context, group) and any(one.key == taint.key for one in every.extended)


CHECKS = (
    Check(
        id="nowhere-to-go",
        severity=Severity.ERROR,
        finds="pods that must leave, and workloads, that no node would take by taints, nodeSelector and nodeAffinity",
        remedy="add nodes, loosen the tolerations, or pause the policy until there are; resources were not looked at",
        needs=EVALUATION,
        uses=(*TEMPLATES, Source.MUTATING),
        run=_nowhere,
    ),
)

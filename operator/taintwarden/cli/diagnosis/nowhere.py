"""Pods that leave and find no other node. Looked at: taints, nodeSelector, required nodeAffinity.

Not looked at: free resources, affinity to pods, topology spread, volumes, ports; nodes that an autoscaler would add.
"""

from collections.abc import Iterator

from taintwarden.cli.diagnosis.census import Group
from taintwarden.cli.diagnosis.checks import Check
from taintwarden.cli.diagnosis.finding import Found, Severity
from taintwarden.cli.diagnosis.ground import Look
from taintwarden.cli.diagnosis.injection import injects
from taintwarden.cli.diagnosis.sources import JUDGING, TEMPLATES, Source
from taintwarden.cli.diagnosis.subjects import Subject
from taintwarden.engine.evaluate import TaintVerdict
from taintwarden.engine.machine.inventory import NodeState
from taintwarden.engine.matching.tolerations import Match, match
from taintwarden.engine.model import Effect, Mode, Taint

_NAMED = 3
"""So many taints are named."""


def _nowhere(look: Look) -> Iterator[Found]:
    told: set[Subject] = set()
    nodes = _Nodes(look)
    for group in look.groups:
        if group.pod_class.daemon_set or group.subject.kind == "Pod":
            continue  # nothing takes their place elsewhere
        leaving = _leaving(look, group)
        if leaving and not nodes.take(group):
            told.add(group.subject)
            yield from _told(group, leaving)
    for group in look.groups:
        if group.template and group.wanted > 0 and group.subject not in told and not group.pod_class.daemon_set:
            yield from _unplaceable(look, group, nodes)


def _leaving(look: Look, group: Group) -> list[tuple[TaintVerdict, int]]:
    """Why pods have to leave where they are, with how many."""
    found: dict[str, tuple[TaintVerdict, int]] = {}
    for _, count, verdicts in look.judged(group):
        verdict = next((one for one in verdicts if one.evicts), None)
        if verdict is not None:
            first, pods = found.setdefault(str(verdict.taint), (verdict, 0))
            found[str(verdict.taint)] = (first, pods + count)
    return [*found.values()]


def _told(group: Group, leaving: list[tuple[TaintVerdict, int]]) -> Iterator[Found]:
    for verdict, pods in leaving:
        enforced = verdict.policy.mode is Mode.ENFORCE
        how = "have to leave" if enforced else "would have to leave"
        message = f"{how} because of {verdict.taint} (policy {verdict.policy.name}), and fit no other node"
        yield Found(group.subject, message, severity=None if enforced else Severity.WARNING, pods=pods)


def _unplaceable(look: Look, group: Group, nodes: "_Nodes") -> Iterator[Found]:
    """A workload that could be placed, if it were not for taints that policies act on."""
    if nodes.take(group):
        return
    candidates, blocking = 0, dict[str, None]()
    for state in look.states.values():
        if _suits(group, state):
            taint = _blocking(look, group, state)
            if taint is None:
                return
            candidates += 1
            blocking[str(taint)] = None
    if candidates:
        taints = ", ".join([*blocking][:_NAMED]) + (" and others" if len(blocking) > _NAMED else "")
        message = f"its tolerations hold on none of the {candidates} nodes that it could be on: {taints}"
        yield Found(group.subject, message, severity=Severity.WARNING)


class _Nodes:
    """The nodes, those first that took somebody last: they probably take the next one, too."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._states = list(look.states.values())

    def take(self, group: Group) -> bool:
        """Whether some node would take the pods and keep them."""
        for index, state in enumerate(self._states):
            if self._takes(state, group):
                self._states.insert(0, self._states.pop(index))
                return True
        return False

    def _takes(self, state: NodeState, group: Group) -> bool:
        look = self._look
        return (
            _suits(group, state)
            and all(_schedules(look, group, taint) for taint, _ in state.taints())
            and not any(verdict.evicts for verdict in look.verdicts.of(state, group.pod_class))
        )


def _suits(group: Group, state: NodeState) -> bool:
    return state.node is not None and group.shape.place.fits(state.name, state.node.labels)


def _blocking(look: Look, group: Group, state: NodeState) -> Taint | None:
    """A taint that keeps the pods off a node, and that a policy acts on."""
    evicting = (one.taint for one in look.verdicts.of(state, group.pod_class) if one.evicts)
    policies = look.verdicts.select(state)
    refused = (
        taint
        for taint, _ in state.taints()
        if any(policy.selector_for(taint) for policy in policies) and not _schedules(look, group, taint)
    )
    return next(evicting, None) or next(refused, None)


def _schedules(look: Look, group: Group, taint: Taint) -> bool:
    """Whether the scheduler, which knows native tolerations only, would accept the taint."""
    tolerations = group.pod_class.tolerations
    if taint.effect == Effect.PREFER_NO_SCHEDULE:
        return True
    if any(match(one, taint, look.gates) is Match.HOLDS for one in tolerations.native):
        return True
    every = look.verdicts.tolerations(group.pod_class)
    return injects(look, group) and any(one.key == taint.key for one in every.extended)


CHECKS = (
    Check(
        id="nowhere-to-go",
        severity=Severity.ERROR,
        finds="pods that must leave, and workloads, that no node would take by taints, nodeSelector and nodeAffinity",
        remedy="add nodes, loosen the tolerations, or pause the policy until there are; resources were not looked at",
        needs=JUDGING,
        uses=(*TEMPLATES, Source.MUTATING),
        run=_nowhere,
    ),
)

"""Findings of an inspection about one policy. The structs are what ``-o json`` prints."""

from collections.abc import Sequence

import msgspec

from taintwarden.controller.words.wording import pods, several
from taintwarden.engine.evaluate import acting_on
from taintwarden.engine.machine import NodeView
from taintwarden.engine.policy import Policy
from taintwarden_cli.rehearsal.staying import StayingGroup
from taintwarden_cli.status.problems import Problem


class Removal(msgspec.Struct, rename="camel"):
    """The removal of a node, by ``reclaim`` of a policy."""

    node: str
    at: str
    pods: int
    """Pods that have to leave, or are terminating."""
    missed: int = 0
    """Those of ``pods`` that are not evicted in time, in a simulation from now on."""
    cut: int = 0
    """Those of ``pods`` that get less time to stop than they ask for."""
    held_by: list[str] = []
    """The budgets, or limits, that delay the pods that are not evicted in time."""


class Missed(msgspec.Struct, frozen=True, rename="camel"):
    """Pods evicted too late before the removal of their node, or not at all, as Events of the last hour report."""

    not_evicted: int = 0
    cut: int = 0
    recent: bool = False
    """True if the latest is so recent that a person has to act."""


class PolicyFindings(msgspec.Struct, rename="camel"):
    """Findings that an inspection adds to the status of a policy. ``staying`` is None if pods were not counted."""

    problems: list[Problem] = []
    """Problems that a person has to correct or check, the worst first."""
    removals: list[Removal] = []
    missed: Missed = Missed()
    staying: list[StayingGroup] | None = None


def describe_missed(missed: Missed) -> str:
    """The numbers in ``missed`` as text; empty if both are 0."""
    parts = (
        f"{pods(missed.not_evicted)} not evicted before the node was removed" if missed.not_evicted else "",
        f"{pods(missed.cut)} with a grace that was cut" if missed.cut else "",
    )
    text = ", ".join(filter(None, parts))
    return f"{text}, in the last hour" if text else ""


def removal_time(policy: Policy, node: NodeView) -> float | None:
    """The time when a node is removed, by the earliest taint on which the policy acts; None if there is none."""
    if policy.reclaim is None:
        return None
    acted_on = ((history, acting_on(taint, node.policies)) for taint, history in node.taints)
    times = (history.added_at for history, acting in acted_on if acting is not None and acting[0] == policy)
    return min((at + policy.reclaim.deadline_seconds for at in times), default=None)


def describe_removals(policy: str, failing: Sequence[Removal], now: str) -> tuple[str, str, str]:
    """Cause, effect and remedy of nodes that are removed before their pods have left."""
    first, more = failing[0], len(failing) - 1
    cause = f"node {first.node} {'is removed at' if first.at > now else 'counts as removed since'} {first.at}"
    cause += f" (and {several(more, 'more node')} until {failing[-1].at})" if more else ""
    missed, cut = sum(removal.missed for removal in failing), sum(removal.cut for removal in failing)
    held = sorted({name for removal in failing for name in removal.held_by})
    by = f", held by {', '.join(held)}" if held else ""
    effects = (
        f"{pods(missed)} not evicted by then{by}" if missed else "",
        f"the grace of {pods(cut)} is cut" if cut else "",
    )
    remedy = "set terminationGracePeriodSeconds of these pods below reclaim.deadlineSeconds"
    if missed:
        remedy = f"taintwarden explain node {first.node}; docs/runbooks/deadline-missed.md"
    if budgets := [name for name in held if "/" in name]:  # limits have no namespace
        space, _, budget = budgets[0].partition("/")
        remedy = f"let it allow more: kubectl -n {space} edit poddisruptionbudget {budget}; or set eviction.method "
        remedy += f"EvictThenDelete: kubectl edit taintevictionpolicy {policy}"
    return cause, "; ".join(filter(None, effects)), remedy

"""What a close look at the cluster finds for one policy. The structs are what ``-o json`` prints."""

from collections.abc import Sequence

import msgspec

from taintwarden.controller.words.wording import pods, several
from taintwarden.engine.evaluate import acting_on
from taintwarden.engine.machine import NodeView
from taintwarden.engine.model import Policy
from taintwarden_cli.rehearsal.staying import Staying
from taintwarden_cli.status.problems import Problem


class Removal(msgspec.Struct, rename="camel"):
    """A node that is removed, by ``reclaim`` of a policy."""

    node: str
    at: str
    pods: int
    """Pods that have to leave, or terminate."""
    missed: int = 0
    """Those of them that are not evicted in time, as a plan from now on says."""
    cut: int = 0
    """Those of them that get less time to stop than they ask for."""
    held_by: list[str] = []
    """The budgets, or limits, that keep those that are not evicted in time."""


class Missed(msgspec.Struct, frozen=True, rename="camel"):
    """Pods that missed the end of their node, as Events of the last hour say."""

    not_evicted: int = 0
    cut: int = 0
    recent: bool = False
    """So recently that a person has to look."""


class PolicyFindings(msgspec.Struct, rename="camel"):
    """What a look at the cluster adds to the status of a policy. ``staying`` None: not counted."""

    problems: list[Problem] = []
    """What a person has to correct or check, the worst first."""
    removals: list[Removal] = []
    missed: Missed = Missed()
    staying: list[Staying] | None = None


def describe_missed(missed: Missed) -> str:
    """How many pods missed the end of their node; empty: none."""
    parts = (
        f"{pods(missed.not_evicted)} not evicted before the node was removed" if missed.not_evicted else "",
        f"{pods(missed.cut)} with a grace that was cut" if missed.cut else "",
    )
    text = ", ".join(filter(None, parts))
    return f"{text}, in the last hour" if text else ""


def removal_time(policy: Policy, node: NodeView) -> float | None:
    """When a node is removed, by the taints on which the policy acts; None: it acts on none of them."""
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
    missed, cut = sum(one.missed for one in failing), sum(one.cut for one in failing)
    held = sorted({name for one in failing for name in one.held_by})
    by = f", held by {', '.join(held)}" if held else ""
    effects = (
        f"{pods(missed)} not evicted by then{by}" if missed else "",
        f"the grace of {pods(cut)} is cut" if cut else "",
    )
    remedy = "set terminationGracePeriodSeconds of these pods below the notice"
    if held:
        allow = f"set eviction.method EvictThenDelete, or let {held[0]} allow more"
        remedy = f"{allow}: kubectl edit taintevictionpolicy {policy}"
    return cause, "; ".join(filter(None, effects)), remedy

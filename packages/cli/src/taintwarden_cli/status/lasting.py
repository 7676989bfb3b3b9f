"""What does not change by itself, for which doctor has checks: budgets that never allow an eviction, invalid values of
taints, and taints that no node has.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any
from urllib.parse import quote

import msgspec

from taintwarden.api.policies import parse_policy
from taintwarden.controller.words.wording import pods, several
from taintwarden.engine.model import Method, Mode, Policy, Taint, TaintSelector, ValueType, cannot_compute
from taintwarden.engine.reported_status import BlockedBudget
from taintwarden.fields.field_errors import InvalidObject
from taintwarden.kube.wire.kinds import BudgetObject, BudgetSpec, BudgetStatus, NodeObject
from taintwarden.kube.wire.resources import NODES
from taintwarden_cli.rehearsal.session import ClusterError, Session
from taintwarden_cli.status.policy_status import PolicySummary, is_of_budgets

SYSTEM_DOMAINS = ("kubernetes.io", "k8s.io", "cilium.io", "karpenter.sh")
"""Domains whose controllers set and remove the taint, so that its value means nothing else."""


class FullBudgetSpec(BudgetSpec, rename="camel"):
    """Fields that the operator does not need: whether it can allow a disruption at all."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class FullBudgetStatus(BudgetStatus, rename="camel"):
    """With the number of pods that its controller expects."""

    expected_pods: int = 0


class FullBudget(BudgetObject):
    """A PodDisruptionBudget."""

    spec: FullBudgetSpec = msgspec.field(default_factory=FullBudgetSpec)
    status: FullBudgetStatus | None = None


def why_never(budget: FullBudget) -> str:
    """Why it allows no disruption even if all its pods are healthy; empty if it can allow one."""
    spec, status = budget.spec, budget.status
    if spec.max_unavailable in (0, "0%"):
        return f"maxUnavailable is {spec.max_unavailable}"
    if spec.min_available == "100%":
        return "minAvailable is 100%"
    if spec.min_available is not None and status is not None and 0 < status.expected_pods <= status.desired_healthy:
        return f"minAvailable is {spec.min_available} of {status.expected_pods} pods"
    return ""


def why_none(budget: FullBudget) -> str:
    """The same, and that its controller fails."""
    fails = budget.status.problem if budget.status is not None else ""
    return cannot_compute(fails) if fails else why_never(budget)


def of_system(key: str) -> bool:
    """Whether a controller of Kubernetes or of a node's provider sets and removes taints with the key."""
    domain = key.partition("/")[0] if "/" in key else ""
    return any(domain == known or domain.endswith(f".{known}") for known in SYSTEM_DOMAINS)


def absent(
    selector: TaintSelector, carried: Mapping[Taint, int], policies: Sequence[Policy], *, is_compared: bool = False
) -> tuple[str, str]:
    """That no node has a taint that should be there: not a signal such as the end of a spot node. Empty: not so.

    ``carried``: how many nodes have which taints. ``is_compared``: tolerations compare its values.
    Returns also the key that is perhaps meant.
    """
    key = selector.key
    if selector.source is not None or "*" in key or any(taint.key == key for taint in carried):
        return "", ""
    free = Counter[str]()
    for taint, nodes in carried.items():
        if not (taint.source or of_system(taint.key) or any(one.selector_for(taint) for one in policies)):
            free[taint.key] += nodes
    if similar := next(iter(get_close_matches(key, free, n=1)), ""):
        have = "has" if free[similar] == 1 else "have"
        text = f"no node has a taint {key}; {several(free[similar], 'node')} {have} {similar}, on which no policy acts"
        return text, similar
    is_always_there = is_compared or selector.value_type in (ValueType.INTEGER, ValueType.VERSION)  # text is a signal
    return (f"no node has a taint {key}, whose values are compared", "") if is_always_there else ("", "")


def invalid_values(policy: PolicySummary) -> str:
    """The first taint whose value cannot be compared, how many others there are, and what to do; empty: none."""
    if not policy.invalid:
        return ""
    first, *others = policy.invalid
    more = f" (and {several(len(others), 'more taint')})" if others else ""
    return f"{first}{more}. Set a valid value: taintwarden doctor has the command"


async def add_problems(session: Session, stored: Iterable[Mapping[str, Any]], found: Sequence[PolicySummary]) -> None:
    """Add them to policies without a problem, or with one of budgets. What may not be read is left out."""
    policies = list(_valid(stored))
    fine = {one.name: one for one in found if not one.problem}
    waiting = fine | {one.name: one for one in found if is_of_budgets(one)}
    respecting = [waiting[one.name] for one in policies if one.name in waiting and one.eviction.method is Method.EVICT]
    idle = [one for one in policies if one.name in fine and not fine[one.name].status.evicting_nodes]
    try:
        for summary in (one for one in respecting if one.mode == Mode.ENFORCE):
            summary.problem = await _never_allowing(session, summary.status.blocked_budgets) or summary.problem
    except ClusterError:
        pass
    try:
        carried = await _carried(session, idle)
    except ClusterError:
        return
    if carried is None:
        return
    for policy in idle:
        faults = (absent(selector, carried, policies)[0] for selector in policy.taints)
        fine[policy.name].problem = fine[policy.name].problem or next(filter(None, faults), "")


def _valid(stored: Iterable[Mapping[str, Any]]) -> Iterator[Policy]:
    for one in stored:
        try:
            yield parse_policy(one)
        except InvalidObject:
            continue  # its summary says so


async def _never_allowing(session: Session, blocking: Iterable[BlockedBudget]) -> str:
    for one in blocking:
        space, name = quote(one.namespace, safe=""), quote(one.name, safe="")
        path = f"/apis/policy/v1/namespaces/{space}/poddisruptionbudgets/{name}"
        budget = await session.read(path, FullBudget, "poddisruptionbudgets")
        if budget is not None and (why := why_none(budget)):
            wait = "waits" if one.pods == 1 else "wait"
            return f"{pods(one.pods)} {wait} for PodDisruptionBudget {one}, which never allows an eviction: {why}"
    return ""


async def _carried(session: Session, policies: Sequence[Policy]) -> Counter[Taint] | None:
    """How many nodes have which taints, without values; None if each key of the policies is there, or no node is."""
    wanted = {one.key for policy in policies for one in policy.taints if one.source is None and "*" not in one.key}
    if not wanted:
        return None
    found, nodes = Counter[Taint](), 0
    async for page in session.pages(NODES.path, NodeObject, NODES.name):
        nodes += len(page)
        found.update(Taint(one.key, effect=one.effect) for node in page for one in node.spec.taints)
        if wanted <= {taint.key for taint in found}:
            return None
    return found if nodes else None

"""Problems that do not pass by themselves: budgets that never allow an eviction, absent taints, silent publishers."""

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from taintwarden.controller.decoding.times import time_of
from taintwarden.controller.words.wording import several
from taintwarden.engine.machine import NodeView
from taintwarden.engine.model import Taint, cannot_compute
from taintwarden.engine.policy import Policy, TaintSelector, ValueType
from taintwarden_cli.rehearsal.snapshot import FullBudget

SYSTEM_DOMAINS = ("kubernetes.io", "k8s.io", "cilium.io", "karpenter.sh")
"""Domains of taints that controllers set and remove."""
LIST_PUBLISHERS = "kubectl get pods -A -l app.kubernetes.io/name=taintwarden-publisher"
"""Command that shows the pods of the publisher, in every namespace."""


def why_spec_never_allows(budget: FullBudget) -> str:
    """Why the spec allows no disruption even if all pods are healthy; empty if it can allow one."""
    spec, status = budget.spec, budget.status
    if spec.max_unavailable in (0, "0%"):
        return f"maxUnavailable is {spec.max_unavailable}"
    if spec.min_available == "100%":
        return "minAvailable is 100%"
    if spec.min_available is not None and status is not None and 0 < status.expected_pods <= status.desired_healthy:
        return f"minAvailable is {spec.min_available} of {status.expected_pods} pods"
    return ""


def why_never_allows(budget: FullBudget) -> str:
    """Why the budget never allows a disruption, or that its controller fails; empty if it can allow one."""
    fails = budget.status.problem if budget.status is not None else ""
    return cannot_compute(fails) if fails else why_spec_never_allows(budget)


def is_system_key(key: str) -> bool:
    """True if a controller of Kubernetes or of a node's provider sets and removes taints with the key."""
    domain = key.partition("/")[0] if "/" in key else ""
    return any(domain == known or domain.endswith(f".{known}") for known in SYSTEM_DOMAINS)


def selected_keys(policy: Policy, nodes: Collection[NodeView]) -> set[str]:
    """The keys of taints of the nodes that a policy selects, or of all nodes if it selects none."""
    selected = [node for node in nodes if policy.node_selector.selects(node.node.labels)]
    return {taint.key for node in selected or nodes for taint, _ in node.taints}


def find_absence(
    selector: TaintSelector,
    keys: set[str],
    carried: Mapping[Taint, Collection[str]],
    policies: Sequence[Policy],
    *,
    is_compared: bool = False,
) -> tuple[str, str]:
    """A sentence that no node has the taint of a selector, and a similar key that may be meant. Else two empty texts.

    A taint that is only a signal, such as the end of a spot node, may be absent. ``keys`` are the
    :func:`selected_keys`, ``carried`` has the names of the nodes by taint, and ``is_compared`` is True if tolerations
    compare the values.
    """
    key = selector.key
    if selector.source is not None or "*" in key or key in keys:
        return "", ""
    is_number = is_compared or selector.value_type in (ValueType.INTEGER, ValueType.VERSION)  # others may be signals
    if any(taint.key == key for taint in carried):
        return f"none of the nodes that it selects has a taint {key}, which others have" * is_number, ""
    free: dict[str, set[str]] = {}
    for taint, nodes in carried.items():
        if not (taint.source or is_system_key(taint.key) or any(policy.selector_for(taint) for policy in policies)):
            free.setdefault(taint.key, set()).update(nodes)
    if similar := next(iter(get_close_matches(key, free, n=1)), ""):
        number, have = len(free[similar]), "has" if len(free[similar]) == 1 else "have"
        text = f"no node has a taint {key}; {several(number, 'node')} {have} {similar}, on which no policy acts"
        return text, similar
    return (f"no node has a taint {key}, whose values are compared", "") if is_number else ("", "")


def publisher_fault(publisher: Mapping[str, Any], now: float) -> tuple[float, str, str]:
    """When a TaintPublisher ceased to publish, why, and the remedy; for one that reports no fault, the next report."""
    status, meta = publisher.get("status", {}), publisher["metadata"]
    if failing := [one for one in status.get("conditions", ()) if one["status"] == "False"]:
        since = min(time_of(one.get("lastTransitionTime")) or 0.0 for one in failing)
        return since, str(status.get("summary")), f"kubectl describe taintpublisher {meta['name']}"
    answered = status.get("lastAnswerTime") or meta.get("creationTimestamp")
    due = (time_of(answered) or now) + publisher["spec"].get("intervalSeconds", 0)
    return due, f"no publisher has reported since {answered}", LIST_PUBLISHERS

"""Finds policies that act first on the taints of another, which then has no effect on the pods that both select."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from taintwarden.api.policies import parse_policy
from taintwarden.engine.evaluate import acting_on
from taintwarden.engine.model import Taint
from taintwarden.engine.policy import Policy
from taintwarden.engine.selectors import LabelSelector, SelectorOperator
from taintwarden.fields.field_errors import InvalidObject


def valid_policies(stored: Iterable[Mapping[str, Any]]) -> list[Policy]:
    """The policies that are valid."""
    found = list[Policy]()
    for obj in stored:
        with contextlib.suppress(InvalidObject):
            found.append(parse_policy(obj))
    return found


def acting_first(policy: Policy, policies: Iterable[Policy]) -> Iterator[tuple[Policy, str]]:
    """The policies that act first on taints that ``policy`` names too, whatever their mode, each with one such key.

    Policies whose selectors exclude each other are left out. Which pods both select is not considered.
    """
    for other in policies:
        if other.name != policy.name and not _are_disjoint(policy, other):
            key = next(_common_keys(policy, other), "")
            if key:
                yield other, key


def _common_keys(policy: Policy, other: Policy) -> Iterator[str]:
    for mine in policy.taints:
        for theirs in other.taints:
            for key, effect in ((selector.key, effect) for selector in (mine, theirs) for effect in selector.effects):
                taint = Taint(key.replace("*", "any"), effect=effect)
                found = acting_on(taint, (policy, other)) if policy.selector_for(taint) else None
                if found is not None and found[0] is other:
                    yield key


def _are_disjoint(policy: Policy, other: Policy) -> bool:
    """True if, by requirements with ``In``, no pod and node can have the labels that both ask for."""
    return any(
        _exclude_each_other(mine, theirs)
        for mine, theirs in (
            (policy.node_selector, other.node_selector),
            (policy.pod_selector, other.pod_selector),
            (policy.namespace_selector, other.namespace_selector),
        )
    )


def _exclude_each_other(own: LabelSelector, other: LabelSelector) -> bool:
    wanted = {want.key: set(want.values) for want in own.requirements if want.operator is SelectorOperator.IN}
    others = (want for want in other.requirements if want.operator is SelectorOperator.IN and want.key in wanted)
    return any(not wanted[want.key] & set(want.values) for want in others)


def why_first(policy: Policy, other: Policy, key: str) -> str:
    """A clause: the other policy acts first on taints with the key, and why."""
    closer = all(selector.key != key for selector in policy.taints)
    by_age = "is older" if other.created_at < policy.created_at else "comes first by its name"
    why = "selects the key more specifically" if closer else by_age
    return f"policy {other.name}, which {why}, acts first on taint {key}"

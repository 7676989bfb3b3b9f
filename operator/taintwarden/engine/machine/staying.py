"""Reasons why pods stay on a node with a taint that a policy names, short enough to be counted."""

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from taintwarden.engine.evaluate import VerdictKind, exclusion
from taintwarden.engine.machine.cluster import NodeState
from taintwarden.engine.machine.verdicts import Verdicts
from taintwarden.engine.model import PodClass, Taint
from taintwarden.engine.policy import Mode, Policy, TaintSelector

PROFILE = "profile"
"""First word of the reason of pods that tolerate by a profile. Counts omit its name: there may be many profiles."""
_EXCLUDED = {
    "the pod opts out with": "opted out",
    "the pod opts out of": "do not disrupt",
    "exclude.namespaces": "excluded namespace",
    "its priority": "priority",
    "it has no controller": "no controller",
    "it has an emptyDir": "local storage",
    "it belongs to a DaemonSet": "DaemonSet",
    "podSelector": "not selected by podSelector",
    "namespaceSelector": "not selected by namespaceSelector",
}
"""Beginning of the engine's sentence about an excluded pod -> short reason."""


def in_short(sentence: str) -> str:
    """Shorten a sentence that states why a policy does not evict a pod."""
    return next((short for begin, short in _EXCLUDED.items() if sentence.startswith(begin)), sentence)


def named_taints(policy: Policy, taints: Iterable[Taint]) -> list[Taint]:
    """Taints of the node itself with a key that the policy names, whatever their effect."""
    return [one for one in taints if one.origin is None and any(_names(selector, one) for selector in policy.taints)]


def _names(selector: TaintSelector, taint: Taint) -> bool:
    return bool(replace(selector, effects=(taint.effect,)).specificity(taint))


def count_staying(verdicts: Verdicts, state: NodeState) -> Counter[tuple[str, str]]:
    """Number of staying pods by policy and reason, for policies that name a taint of the node. ``state`` caches it."""
    if state.staying is None:
        found = state.staying = Counter[tuple[str, str]]()
        named = {policy: taints for policy in verdicts.policies if (taints := _named(policy, state))}
        for pod_class, pods in Counter(pod.shared for pod in state.pods.values()).items() if named else ():
            grounds = verdicts.of(state, pod_class)[1]
            if not any(ground.policy.mode is Mode.ENFORCE for ground in grounds):
                for policy, taints in named.items():
                    if all(ground.policy is not policy for ground in grounds):
                        why = _why(verdicts, state, pod_class, policy, taints)
                        found[policy.name, PROFILE if why.startswith(PROFILE) else why] += pods
    return state.staying


def why_staying(verdicts: Verdicts, state: NodeState, pod_class: PodClass, policy: Policy) -> str:
    """Why a policy evicts no pods of a class from a node; empty if it does, or names no taint of a node it selects.

    Call it only for a pod without an enforced claim and without a claim of this policy.
    """
    named = _named(policy, state)
    return _why(verdicts, state, pod_class, policy, named) if named else ""


def _named(policy: Policy, state: NodeState) -> list[Taint]:
    return named_taints(policy, [taint for taint, _ in state.taints() if not taint.source])


def _why(verdicts: Verdicts, state: NodeState, pod_class: PodClass, policy: Policy, named: list[Taint]) -> str:
    if policy not in verdicts.policies_on(state):
        return "node opted out" if policy.node_selector.selects(state.labels) else ""
    if policy not in verdicts.policies_for(pod_class):
        return in_short(exclusion(policy, pod_class, verdicts.namespace_labels(pod_class.namespace)) or "")
    selected = [taint for taint in named if policy.selector_for(taint)]
    return next(_reasons(verdicts, state, pod_class, policy, selected), "") if selected else "other effect"


def _reasons(
    verdicts: Verdicts, state: NodeState, pod_class: PodClass, policy: Policy, taints: list[Taint]
) -> Iterator[str]:
    """Yield for each taint that the policy selects why the policy evicts no pod of the class."""
    for verdict in verdicts.of(state, pod_class)[0]:
        if verdict.taint not in taints:
            continue
        if verdict.policy != policy:
            yield f"shadowed by policy {verdict.policy.name}"
        elif verdict.evicts:
            continue
        elif verdict.kind is VerdictKind.HELD:
            yield "value cannot be compared"
        else:
            own = verdict.toleration in (*verdict.tolerations.native, *verdict.tolerations.annotated)
            named = (one for one in verdicts.profiles_of(pod_class) if verdict.toleration in one.tolerations)
            profile = None if own else next(named, None)
            yield "tolerates" if profile is None else f"{PROFILE} {profile.name}"

"""Why pods stay on a node with a taint that a policy names, in a few words, so that they can be counted."""

from collections.abc import Iterator

import msgspec

from taintwarden.engine.evaluate import Kind, exclusion
from taintwarden.engine.machine import NodeView, View
from taintwarden.engine.model import Pod, PodClass, Policy, Taint, TaintSelector

NO_POLICY, NO_TAINT, STATIC = "no policy for its taints", "no taint", "static"
OTHER_EFFECT, OPTED_OUT_NODE, INVALID = "other effect", "node opted out", "value cannot be compared"
_EXCLUDED = {
    "the pod opts out with": "opted out",
    "the pod opts out of": "do not disrupt",
    "exclude.namespaces": "excluded namespace",
    "its priority": "priority",
    "it has no controller": "no controller",
    "it has an emptyDir": "local storage",
    "it belongs to a DaemonSet": "DaemonSet",
    "podSelector": "not selected",
    "namespaceSelector": "not selected",
}
"""How the engine's sentences about excluded pods begin -> the same in short."""


class Staying(msgspec.Struct):
    """Pods that stay for one reason, on nodes with a taint that their policy names. ``names`` may be the first few."""

    reason: str
    pods: int
    names: list[str]


def in_short(sentence: str) -> str:
    """Why a policy does not evict a pod, in a few words."""
    return next((short for begin, short in _EXCLUDED.items() if sentence.startswith(begin)), sentence)


def named_taints(policy: Policy, node: NodeView) -> list[Taint]:
    """The taints of a node with a key that the policy names, whatever their effect."""
    return [taint for taint, _ in node.taints if any(_names(one, taint) for one in policy.taints)]


def _names(selector: TaintSelector, taint: Taint) -> bool:
    return bool(msgspec.structs.replace(selector, effects=(taint.effect,)).specificity(taint))


def why_staying(view: View, node: NodeView, pod: Pod, policy: Policy) -> str:
    """Why a policy that names a taint of the node does not evict the pod. Empty: it does, or has no such node or taint.

    The pod has neither an enforced claim nor one of this policy.
    """
    named = [one for one in named_taints(policy, node) if not one.source]
    if not named:
        return ""
    if policy not in node.policies:
        opts_out = node.node.do_not_evict and policy.exclude.respect_do_not_evict
        return OPTED_OUT_NODE if opts_out and policy.node_selector.selects(node.node.labels) else ""
    if why := exclusion(policy, pod.shared, view.namespace_labels(pod.namespace)):
        return in_short(why)
    selected = [one for one in named if policy.selector_for(one)]
    if not selected:
        return OTHER_EFFECT
    return next(_verdicts(view, node, pod.shared, policy, selected), "")


def _verdicts(view: View, node: NodeView, shared: PodClass, policy: Policy, taints: list[Taint]) -> Iterator[str]:
    """What each taint that the policy selects means for pods of a class, if it evicts none."""
    for verdict in view.verdicts(node.node.name, shared):
        if verdict.taint not in taints:
            continue
        if verdict.policy != policy:
            yield f"shadowed by policy {verdict.policy.name}"
        elif verdict.evicts:
            continue
        elif verdict.kind is Kind.HELD:
            yield INVALID
        else:
            profiles = (one for one in view.profiles_of(shared) if verdict.toleration in one.tolerations)
            own = verdict.toleration in (*verdict.tolerations.native, *verdict.tolerations.annotated)
            profile = None if own else next(profiles, None)
            yield "tolerates" if profile is None else f"profile {profile.name}"

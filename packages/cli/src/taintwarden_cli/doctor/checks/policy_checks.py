"""Checks for policies and profiles whose effect differs from what their spec suggests."""

from collections.abc import Iterator

from taintwarden.controller.words.wording import several
from taintwarden.engine.model import Effect, Taint
from taintwarden.engine.operators import Operator, is_comparison
from taintwarden.engine.profile_selection import matching
from taintwarden_cli.doctor.check import Finding, Severity, check
from taintwarden_cli.doctor.checks.operation import POLICY
from taintwarden_cli.doctor.context import Context
from taintwarden_cli.rehearsal.sources import TEMPLATES, Source, Subject
from taintwarden_cli.status.lasting_problems import find_absence, selected_keys

STATIC_MARKERS = (
    "cloud.google.com/gke-spot",
    "cloud.google.com/gke-preemptible",
    "kubernetes.azure.com/scalesetpriority",
    "karpenter.sh/capacity-type",
    "eks.amazonaws.com/capacityType",
    "nvidia.com/gpu",
)
"""Keys of taints that mark the class of a node for its whole lifetime, and announce no disruption."""


# -- policies ---------------------------------------------------------------------------------------------------------


@check(
    "policy-never-acts",
    Severity.WARNING,
    "policies for a key that none of their nodes has (a typo?), or for no node",
    "compare its key and nodeSelector with: kubectl get nodes -o 'custom-columns=NAME:.metadata.name,"
    "TAINTS:.spec.taints[*].key,LABELS:.metadata.labels'; or see what taintwarden init proposes",
    needs=(Source.POLICIES, Source.NODES),
    uses=(Source.PODS, Source.PROFILES, *TEMPLATES),
)
def policy_never_acts(context: Context) -> Iterator[Finding]:
    """Find valid policies that evict no pod."""
    for policy in context.policies if context.nodes else ():
        subject = Subject(POLICY, policy.name)
        if policy.node_selector.requirements and not any(policy in node.policies for node in context.nodes.values()):
            yield Finding(subject, f"its nodeSelector selects none of {several(len(context.nodes), 'node')}")
            continue
        keys = selected_keys(policy, context.nodes.values())
        for selector in policy.taints:
            is_compared = _is_compared(context, selector.key)
            text, similar = find_absence(selector, keys, context.taints, context.policies, is_compared=is_compared)
            if text:
                remedy = f"kubectl edit taintevictionpolicy {policy.name}; or: taintwarden init --key {similar}"
                yield Finding(subject, text, remedy if similar else "")


def _is_compared(context: Context, key: str) -> bool:
    """True if pods or profiles compare values of the key. Nodes should then always have the taint."""
    every = (one for group in context.groups for one in context.view.tolerations_of(group.pod_class).extended)
    return any(toleration.key == key and is_comparison(toleration) for toleration in every)


@check(
    "policy-too-wide",
    Severity.WARNING,
    "policies that act on a taint which marks a class of nodes, such as spot, or on cordoned nodes",
    "list the keys that you mean: deploy/samples has the taints that clouds set before they remove a node",
    needs=(Source.POLICIES,),
    uses=(Source.NODES,),
)
def policy_too_wide(context: Context) -> Iterator[Finding]:
    """Find policies that evict pods from healthy nodes."""
    carried = {taint.key for taint in context.taints}
    cordon = Taint("node.kubernetes.io/unschedulable", effect=Effect.NO_SCHEDULE)
    for policy in context.policies:
        for marker in STATIC_MARKERS:
            every = ((one, Taint(marker, effect=effect)) for one in policy.taints for effect in one.effects)
            chosen = (one for one, taint in every if one.specificity(taint))
            if any(one.key != "*" or marker in carried for one in chosen):
                yield Finding(Subject(POLICY, policy.name), f"acts on {marker}, which such nodes always have")
        selector = policy.selector_for(cordon)
        if selector is not None and selector.key.endswith("*"):
            text = f"{selector.key} with NoSchedule also selects {cordon}: kubectl cordon evicts the pods of a node"
            yield Finding(Subject(POLICY, policy.name), text)


# -- profiles ---------------------------------------------------------------------------------------------------------


@check(
    "profile-without-effect",
    Severity.WARNING,
    "profiles that are not valid, or select no pod",
    "compare it with: kubectl get pods --show-labels",
    needs=(Source.PROFILES, Source.PODS),
    uses=TEMPLATES,
)
def profile_without_effect(context: Context) -> Iterator[Finding]:
    """Find profiles that are invalid, or select no pod."""
    for key, why in sorted(context.profile_problems.items()):
        namespace, _, name = key.partition("/")
        remedy = f"correct it: kubectl edit tolerationprofile {name} -n {namespace}"
        yield Finding(Subject("TolerationProfile", name, namespace), why, remedy, Severity.ERROR)
    for profile in context.profiles:
        subject = Subject("TolerationProfile", profile.name, profile.namespace)
        if not any(matching([profile], group.pod_class) for group in context.groups):
            text, get = "its podSelector selects no pod and no template of its namespace", "get pods --show-labels"
            yield Finding(subject, text, f"compare it with: kubectl -n {profile.namespace} {get}")


@check(
    "profile-tolerates-everything",
    Severity.WARNING,
    "profiles with operator Exists and neither key nor effect: no policy evicts their pods, whatever the taint",
    "name the keys that the pods tolerate",
    needs=(Source.PROFILES, Source.PODS),
    uses=(Source.POLICIES,),
)
def profile_tolerates_everything(context: Context) -> Iterator[Finding]:
    """Find profiles that keep pods on any node, which the templates of the pods do not show."""
    spared = " but a quarantine" if any(policy.quarantine for policy in context.policies) else ""
    for profile in context.profiles:
        endless = (one for one in profile.tolerations if one.toleration_seconds is None)
        if any(not (one.key or one.effect) and one.operator == Operator.EXISTS for one in endless):
            pods = sum(group.count for group in context.running_groups if matching([profile], group.pod_class))
            every = "" if profile.selector.requirements else ", which are all of its namespace"
            text = f"tolerates every taint, so no policy{spared} evicts the pods that it selects{every}"
            edit = f"name the keys that the pods tolerate: kubectl -n {profile.namespace} edit tolerationprofile "
            subject = Subject("TolerationProfile", profile.name, profile.namespace)
            yield Finding(subject, text, edit + profile.name, pods=pods)

"""Policies that do not have the effect that their spec suggests."""

from collections.abc import Iterator

from taintwarden.cli.doctor.check import Check, Found, Severity
from taintwarden.cli.doctor.context import Context
from taintwarden.cli.status.policy_status import NOT_OBSERVED, OUTDATED
from taintwarden.controller.times import moment
from taintwarden.controller.wording import duration
from taintwarden.engine.evaluate import acting_policy
from taintwarden.engine.model import Effect, Exclude, Mode, Policy, Taint
from taintwarden.engine.selectors import LabelSelector
from taintwarden.rehearsal.conditions import conditions
from taintwarden.rehearsal.rehearsal import named
from taintwarden.rehearsal.sources import Source, Subject

STATIC_MARKERS = (
    "cloud.google.com/gke-spot",
    "cloud.google.com/gke-preemptible",
    "kubernetes.azure.com/scalesetpriority",
    "karpenter.sh/capacity-type",
    "eks.amazonaws.com/capacityType",
    "nvidia.com/gpu",
)
"""Taints that state the class of a node for its whole lifetime: they announce no change."""
LONG_SECONDS = 7 * 86_400.0
"""A dry run that lasts longer has probably been forgotten."""


def _subject(name: str) -> Subject:
    return Subject("TaintEvictionPolicy", name)


def _not_accepted(context: Context) -> Iterator[Found]:
    told = dict(context.policy_problems)
    for one in context.summaries:
        if one.is_refused:
            told.setdefault(one.name, one.problem)
    for name, why in sorted(told.items()):
        yield Found(_subject(name), why)


def _hindered(context: Context) -> Iterator[Found]:
    for one in context.summaries:
        is_told_elsewhere = (
            one.is_refused
            or one.is_halted
            or one.lacks_devices
            or one.problem in (NOT_OBSERVED, OUTDATED)
            or one.name in context.policy_problems
        )
        if one.problem and not is_told_elsewhere:
            yield Found(_subject(one.name), one.problem)


def _not_observed(context: Context) -> Iterator[Found]:
    for one in context.summaries:
        if one.problem in (NOT_OBSERVED, OUTDATED) and one.name not in context.policy_problems:
            yield Found(_subject(one.name), one.problem)


def _paused(context: Context) -> Iterator[Found]:
    for policy in context.policies:
        if policy.mode is Mode.PAUSED:
            since = _since(context, policy, "Paused")
            ago = f" for {duration(context.snapshot.now - since)}" if since is not None else ""
            told = f"is paused{ago}: it evicts no pod, nor does a policy that comes after it for the same taints"
            yield Found(_subject(policy.name), told)


def _long_dry_run(context: Context) -> Iterator[Found]:
    for policy in context.policies:
        since = _since(context, policy, "DryRun") or policy.created_at
        age = context.snapshot.now - since
        if policy.mode is Mode.DRY_RUN and since and age > LONG_SECONDS:
            yield Found(_subject(policy.name), f"has been in mode DryRun for {duration(age)}: it evicts no pod")


def _since(context: Context, policy: Policy, reason: str) -> float | None:
    """When its condition Enforcing got its present status, if that has this reason."""
    stored = next((one for one in context.snapshot.policies if named(one)[1] == policy.name), {})
    for condition in conditions(stored):
        if condition.get("type") == "Enforcing" and condition.get("reason") == reason:
            try:
                return moment(str(condition.get("lastTransitionTime")))
            except ValueError:
                return None
    return None


def _static_markers(context: Context) -> Iterator[Found]:
    carried = {taint.key for taint in context.taints}
    for policy in context.policies:
        for marker in STATIC_MARKERS:
            chosen = [
                selector
                for selector in policy.taints
                if any(selector.specificity(Taint(marker, effect=effect)) for effect in selector.effects)
            ]
            if any(one.key != "*" or marker in carried for one in chosen):
                yield Found(_subject(policy.name), f"acts on {marker}, which such nodes carry all their life")


def _acts_on_cordons(context: Context) -> Iterator[Found]:
    cordon = Taint("node.kubernetes.io/unschedulable", effect=Effect.NO_SCHEDULE)
    for policy in context.policies:
        selector = policy.selector_for(cordon)
        if selector is not None and selector.key.endswith("*"):
            told = f"{selector.key} with NoSchedule also selects {cordon}: kubectl cordon evicts the pods of a node"
            yield Found(_subject(policy.name), told)


def _opted_out(context: Context) -> Iterator[Found]:
    respecting = [policy for policy in context.policies if policy.exclude.respect_do_not_evict]
    for name, node in context.nodes.items():
        if node.node.do_not_evict and respecting:
            yield Found(Subject("Node", name), "opts out of evictions: no pod leaves it, whatever its taints")


def _no_node(context: Context) -> Iterator[Found]:
    for policy in context.policies:
        if context.nodes and policy.node_selector.requirements and not context.selecting(policy):
            yield Found(_subject(policy.name), f"its nodeSelector selects none of {len(context.nodes)} nodes")


def _shielded(context: Context) -> Iterator[Found]:
    for policy in context.policies:
        shields: dict[str, None] = {}
        pairs = [(selector.key, effect) for selector in policy.taints for effect in selector.effects]
        if policy.devices or not pairs:
            continue
        for key, effect in pairs:
            by = [one.name for one in context.policies if one is not policy and _shields(one, policy, key, effect)]
            if not by:
                break
            shields |= dict.fromkeys(by)
        else:
            told = f"{', '.join(shields)} {'comes' if len(shields) == 1 else 'come'} first"
            yield Found(_subject(policy.name), f"never acts: {told} for each of its taints, nodes and pods")


def _shields(other: Policy, policy: Policy, key: str, effect: str) -> bool:
    """Whether ``other`` shields all taints with this key (or pattern) from the policy, for all its pods."""
    if not any(one.key == key and effect in one.effects for one in other.taints):
        return False
    # Any taint that the pattern selects is sufficient: both select it equally specifically.
    example = Taint(f"{key[:-1]}x" if key.endswith("*") else key, effect=effect)
    if acting_policy(example, (other, policy)) is not other:
        return False
    pairs = (
        (other.node_selector, policy.node_selector),
        (other.pod_selector, policy.pod_selector),
        (other.namespace_selector, policy.namespace_selector),
    )
    return all(_covers(mine, theirs) for mine, theirs in pairs) and _excludes_no_more(other.exclude, policy.exclude)


def _covers(mine: LabelSelector, theirs: LabelSelector) -> bool:
    return set(mine.requirements) <= set(theirs.requirements)


def _excludes_no_more(mine: Exclude, theirs: Exclude) -> bool:
    bound, other = mine.priority_at_least, theirs.priority_at_least
    return (
        set(mine.namespaces) <= set(theirs.namespaces)
        and (bound is None or (other is not None and bound >= other))
        and (theirs.daemon_sets or not mine.daemon_sets)
        and (theirs.respect_do_not_disrupt or not mine.respect_do_not_disrupt)
        and (theirs.respect_do_not_evict or not mine.respect_do_not_evict)
        and (theirs.bare or not mine.bare)
        and (theirs.local_storage or not mine.local_storage)
    )


CHECKS = (
    Check(
        id="policy-not-accepted",
        severity=Severity.ERROR,
        finds="policies that are not valid; a running operator keeps their last valid version",
        remedy="correct it: kubectl edit taintevictionpolicy NAME",
        needs=(Source.POLICIES,),
        run=_not_accepted,
    ),
    Check(
        id="policy-not-observed",
        severity=Severity.WARNING,
        finds="policies whose newest version no operator has looked at",
        remedy="look at the operator: kubectl -n taintwarden-system logs deploy/taintwarden",
        needs=(Source.POLICIES,),
        run=_not_observed,
    ),
    Check(
        id="policy-hindered",
        severity=Severity.ERROR,
        finds="valid policies whose evictions are refused, fail or come too late, as their status says",
        remedy="taintwarden status NAME says which pods and why; docs/troubleshooting.md#a-limit-holds-them",
        needs=(Source.POLICIES,),
        run=_hindered,
    ),
    Check(
        id="policy-paused",
        severity=Severity.WARNING,
        finds="policies that are paused, perhaps forgotten",
        remedy="taintwarden resume NAME",
        needs=(Source.POLICIES,),
        run=_paused,
    ),
    Check(
        id="policy-rehearses",
        severity=Severity.INFO,
        finds="policies in mode DryRun for more than a week",
        remedy="look at what they would do (taintwarden plan --enforce NAME), then set spec.mode to Enforce",
        needs=(Source.POLICIES,),
        run=_long_dry_run,
    ),
    Check(
        id="policy-static-marker",
        severity=Severity.WARNING,
        finds="policies that act on a taint which only tells the class of a node, such as spot",
        remedy="act on the signal instead: deploy/samples has the taints that clouds set before they reclaim a node",
        needs=(Source.POLICIES,),
        uses=(Source.NODES,),
        run=_static_markers,
    ),
    Check(
        id="policy-acts-on-cordons",
        severity=Severity.WARNING,
        finds="policies for * or node.kubernetes.io/* with NoSchedule, which also act on cordoned nodes",
        remedy="list the keys that you mean, or leave NoSchedule out; kubectl drain evicts the pods of a cordoned node",
        needs=(Source.POLICIES,),
        run=_acts_on_cordons,
    ),
    Check(
        id="policy-selects-no-node",
        severity=Severity.WARNING,
        finds="policies whose nodeSelector selects no node",
        remedy="compare it with: kubectl get nodes --show-labels",
        needs=(Source.POLICIES, Source.NODES),
        run=_no_node,
    ),
    Check(
        id="node-opted-out",
        severity=Severity.INFO,
        finds="nodes with the annotation taintwarden.io/do-not-evict, perhaps forgotten",
        remedy="kubectl annotate node NAME taintwarden.io/do-not-evict-",
        needs=(Source.POLICIES, Source.NODES),
        run=_opted_out,
    ),
    Check(
        id="policy-shielded",
        severity=Severity.WARNING,
        finds="policies that never act, since others come first for the same taints, nodes and pods",
        remedy="remove one, or let it select closer: an exact key goes before a prefix, the older before the newer",
        needs=(Source.POLICIES,),
        run=_shielded,
    ),
)

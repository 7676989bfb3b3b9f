"""Checks of nodes: taints whose values cannot be compared, that stayed after recovery, and that come and go."""

import re
from collections.abc import Iterable, Iterator, Mapping

from taintwarden.controller.decoding.times import moment, time_of
from taintwarden.controller.words.wording import duration, invalid_taint, pods
from taintwarden.engine.history import TaintHistory
from taintwarden.engine.machine import NodeView
from taintwarden.engine.model import Taint, Toleration
from taintwarden.engine.operators import Match, is_comparison, match
from taintwarden.engine.policy import Policy
from taintwarden_cli.doctor.check import Finding, Severity, check
from taintwarden_cli.doctor.checks.evictions import named_subjects
from taintwarden_cli.doctor.context import Context
from taintwarden_cli.doctor.inventory import PodGroup
from taintwarden_cli.rehearsal.sources import TEMPLATES, Source, Subject

_REMOVAL_SECONDS = 300.0
"""Seconds that a controller may take to remove a taint of a node that is Ready again."""
_CONDITION_KEYS = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")
_CANCELLED = re.compile(r"Stays on (?P<node>\S+): taint (?P<key>[^\s=:]+)")
"""The note of an Event about an eviction that was cancelled."""
_OFTEN = 3
"""Cancellations for one pod in an hour that show a flapping taint, not a node that has recovered."""


@check(
    "taint-value-invalid",
    Severity.WARNING,
    "taints of nodes whose values cannot be compared as valueType or tolerations require",
    "set the last value that can be compared: kubectl taint node NODE KEY=VALUE:EFFECT --overwrite",
    needs=(Source.NODES, Source.PODS, Source.POLICIES, Source.PROFILES),
    uses=TEMPLATES,
)
def value_invalid(context: Context) -> Iterator[Finding]:
    """With ``Hold`` pods are judged by the last valid value, whatever the state of the node."""
    comparisons = _comparisons(context)
    for name, seen in context.nodes.items():
        subject = Subject("Node", name)
        for taint, history in (*seen.taints, *seen.device_taints):
            typed = ((one, by.value_type) for one in seen.policies if (by := one.selector_for(taint)) and by.value_type)
            wrong = next(((one, kind, why) for one, kind in typed if (why := invalid_taint(taint, one, ()))), None)
            if wrong is not None:
                policy, kind, why = wrong
                text = f"{taint}: policy {policy.name} expects {kind}; {why}"
                yield Finding(subject, text, _restoring_command(name, taint, history, policy, ()))
            elif who := [group.subject for group in _wrongly_comparing(context, seen, taint, comparisons)]:
                text = f"{taint} cannot be compared by the tolerations of {named_subjects(who)}"
                yield Finding(subject, text, _restoring_command(name, taint, history, None, comparisons))


def _restoring_command(
    node: str, taint: Taint, history: TaintHistory, policy: Policy | None, comparisons: Iterable[Toleration]
) -> str:
    """The command that sets the last comparable value, or a form for it; words for derived taints and devices."""
    relevant = [toleration for toleration in comparisons if toleration.key == taint.key]
    values = (Taint(taint.key, value, taint.effect) for value in history.values)
    if taint.source:
        return f"its value is read from {taint.source}: choose a valueType, or operators, that can compare it"
    good = next((value for value in values if not invalid_taint(value, policy, relevant)), None)
    fault = invalid_taint(taint, policy, relevant)
    if taint.origin is not None:
        return f"set a value that can be compared: {fault}"
    if good is None:
        return f"kubectl taint node {node} {taint.key}=VALUE:{taint.effect} --overwrite, with another VALUE: {fault}"
    return f"kubectl taint node {node} {good} --overwrite"


def _wrongly_comparing(
    context: Context, node: NodeView, taint: Taint, comparisons: Mapping[Toleration, list[PodGroup]]
) -> Iterator[PodGroup]:
    """Groups whose comparisons cannot read the value of a taint, if a policy for them acts on it, or no policy does."""
    acting = [policy for policy in context.policies if policy.selector_for(taint)]
    for toleration, groups in comparisons.items():
        for group in groups if match(toleration, taint) is Match.INVALID_TAINT else ():
            own = context.view.policies_for(group.pod_class)
            if not acting or any(policy in own and policy in node.policies for policy in acting):
                yield group


def _comparisons(context: Context) -> dict[Toleration, list[PodGroup]]:
    """Every comparison that counts, with the groups that have it."""
    found: dict[Toleration, list[PodGroup]] = {}
    for group in context.groups:
        every = context.view.tolerations_of(group.pod_class)
        for toleration in (*every.native, *every.extended):
            if is_comparison(toleration) and toleration in every.relevant_to(toleration.key):
                found.setdefault(toleration, []).append(group)
    return found


@check(
    "taint-left",
    Severity.WARNING,
    "nodes that are Ready and still have the taint unreachable or not-ready",
    "kubectl taint node NODE KEY:EFFECT-; look at the kube-controller-manager, which should have removed it",
    needs=(Source.NODES,),
)
def taint_left(context: Context) -> Iterator[Finding]:
    """The node lifecycle controller removes these taints within seconds, if it runs and nothing else writes them."""
    for node in context.snapshot.nodes:
        ready = node.status.condition("Ready")
        for taint in node.spec.taints if ready is not None and ready.status == "True" else ():
            added_at, now = time_of(taint.time_added, moment), context.snapshot.now
            if taint.key in _CONDITION_KEYS and (added_at is None or now - added_at > _REMOVAL_SECONDS):
                since = "" if added_at is None else f" for {duration(now - added_at)}"
                text = f"is Ready, and has the taint {taint.key}:{taint.effect}{since}"
                remedy = f"kubectl taint node {node.metadata.name} {taint.key}:{taint.effect}-"
                yield Finding(Subject("Node", node.metadata.name), text, remedy)


@check(
    "grace-restarted",
    Severity.WARNING,
    "nodes whose taint comes and goes, or changes its value back and forth, within the grace of the pods",
    "correct what writes the taint, or lower violationGraceSeconds and timing.stabilizationWindowSeconds",
    needs=(Source.EVENTS, Source.NODES),
)
def grace_restarted(context: Context) -> Iterator[Finding]:
    """Evictions are cancelled repeatedly: each time the grace begins again, and no pod ever leaves."""
    found: dict[tuple[str, str], dict[tuple[str, str], int]] = {}
    for event in context.snapshot.cancelled:
        if (noted := _CANCELLED.match(event.note)) and noted["node"] in context.nodes:
            counts = found.setdefault((noted["node"], noted["key"]), {})
            counts[event.namespace, event.name] = counts.get((event.namespace, event.name), 0) + event.count
    for (node, key), counts in found.items():
        if often := [number for number in counts.values() if number >= _OFTEN]:
            text = f"evictions of {pods(len(often))} because of {key} were cancelled up to {max(often)} times in an "
            text += "hour: their grace begins again each time"
            yield Finding(Subject("Node", node), text, pods=len(often))

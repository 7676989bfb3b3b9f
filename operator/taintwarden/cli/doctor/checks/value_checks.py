"""Faults of taint values: those that cannot be compared, and those for which no toleration ever holds."""

from collections import Counter
from collections.abc import Iterable, Iterator

from taintwarden.cli.doctor.check import Check, Found, Severity, about
from taintwarden.cli.doctor.checks.device_checks import unreadable_values
from taintwarden.cli.doctor.checks.usage import comparisons
from taintwarden.cli.doctor.context import Context
from taintwarden.cli.doctor.inventory import PodGroup
from taintwarden.controller.wording import invalid_taint
from taintwarden.engine.evaluate import Kind, TaintVerdict
from taintwarden.engine.history import TaintHistory
from taintwarden.engine.model import Gates, Policy, Taint, Toleration
from taintwarden.engine.operators import Match, applies, caution, match, opposite
from taintwarden.placement.admission.annotated_objects import check_object
from taintwarden.rehearsal.sources import TEMPLATES, Source, Subject

_NAMED = 3
"""The number of owners that are named."""


def _unreadable(context: Context) -> Iterator[Found]:
    asking = _asking(context)
    for name, seen in context.nodes.items():
        for taint, history in seen.taints:
            chosen = {policy.name: policy.selector_for(taint) for policy in seen.policies}
            typed = [one for one in seen.policies if (by := chosen[one.name]) and by.value_type is not None]
            node = {"spec": {"taints": [{"key": taint.key, "value": taint.value, "effect": taint.effect}]}}
            faults = [str(fault.remedy or fault.reason) for _, fault in check_object(node, "", "Node", typed)]
            if typed and faults:
                by = chosen[typed[0].name]
                wanted = by.value_type if by else ""
                told = f"{taint}: policy {typed[0].name} expects {wanted}; {faults[0]}"
                yield Found(Subject("Node", name), told, _restored(name, taint, history, typed[0], ()))
            elif asked := _who_cannot(taint, asking):
                told = f"{taint} cannot be compared, which {asked} ask for"
                yield Found(Subject("Node", name), told, _restored(name, taint, history, None, asking))
    yield from unreadable_values(context, asking)


def _restored(
    node: str, taint: Taint, history: TaintHistory, policy: Policy | None, asking: Iterable[Toleration]
) -> str:
    """The command that sets the last value that can be compared; without such a value, what it has to look like."""
    relevant = [one for one in asking if one.key == taint.key]
    values = (Taint(taint.key, span.value, taint.effect) for span in reversed(history.spans))
    if taint.source:
        return f"its value is read from {taint.source}: choose a valueType, or operators, that can compare it"
    good = next((one for one in values if not invalid_taint(one, policy, relevant)), None)
    if good is None:
        return f"set a value that can be compared: {invalid_taint(taint, policy, relevant)}"
    return f"kubectl taint node {node} {good} --overwrite"


def _asking(context: Context) -> dict[Toleration, dict[Subject, None]]:
    """Every comparison that counts, with the owners of its pods."""
    found: dict[Toleration, dict[Subject, None]] = {}
    for group in context.groups:
        every = context.view.tolerations_of(group.pod_class)
        for one in comparisons((*every.native, *every.extended)):
            if one in every.relevant_to(one.key):
                found.setdefault(one, {})[group.subject] = None
    return found


def _who_cannot(taint: Taint, asking: dict[Toleration, dict[Subject, None]]) -> str:
    subjects = {
        subject: None
        for toleration, subjects in asking.items()
        if match(toleration, taint) is Match.INVALID_TAINT
        for subject in subjects
    }
    named = [str(one) for one in list(subjects)[:_NAMED]]
    more = len(subjects) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def _held(context: Context) -> Iterator[Found]:
    found: dict[tuple[str, str, bool], int] = Counter()
    for group in context.running:
        for name, count, verdicts in context.evaluated(group):
            for verdict in verdicts:
                if verdict.invalid:
                    evicts = verdict.evicts and verdict.judged_value is None
                    found[name, _how(verdict), evicts] += count
    for (node, told, evicts), pods in found.items():
        yield Found(Subject("Node", node), told, severity=Severity.ERROR if evicts else None, pods=pods)


def _how(verdict: TaintVerdict) -> str:
    taint, policy = verdict.taint, verdict.policy.name
    if verdict.judged_value is not None:
        return f"{taint}: policy {policy} judges pods by the last valid value, {verdict.judged_value}"
    if verdict.kind is Kind.HELD:
        return f"{taint}: policy {policy} evicts no pod, since the value never was valid"
    return f"{taint}: policy {policy} has onInvalidValue Evict, so pods are evicted because of an invalid value"


def _nowhere(context: Context) -> Iterator[Found]:
    for group, toleration, taints in _never(context):
        if not _reversed(toleration, taints, context.gates):
            yield about(group, f"{toleration} holds for none of {_values(taints)}")


def _probably_reversed(context: Context) -> Iterator[Found]:
    for group, toleration, taints in _never(context):
        if reverse := _reversed(toleration, taints, context.gates):
            message = f"{toleration} holds for none of {_values(taints)}, but {reverse.operator} would"
            yield about(group, message)


def _by_text(context: Context) -> Iterator[Found]:
    for group in context.groups:
        every = context.view.tolerations_of(group.pod_class)
        for one in comparisons((*every.native, *every.extended)):
            taints = [taint for taint in context.taints if applies(one, taint) and one in every.relevant_to(taint.key)]
            found = [(taint, caution(one, taint.value)) for taint in taints]
            doubtful = [(taint, reason, remedy) for taint, (reason, remedy) in found if reason]
            if doubtful:
                _, reason, remedy = doubtful[0]
                yield about(group, f"{one} with {_values(taint for taint, *_ in doubtful)}: {reason}", remedy)


def _never(context: Context) -> Iterator[tuple[PodGroup, Toleration, list[Taint]]]:
    """Comparisons that hold for no taint on any node, where no other toleration of the pod does.

    Values that were good until recently, and those of an incident, are no fault of a toleration.
    """
    past = list(_past(context))
    incident = [policy for policy in context.policies if policy.name in context.halted]
    for group in context.groups:
        every = context.view.tolerations_of(group.pod_class)
        for key in dict.fromkeys(one.key for one in comparisons((*every.native, *every.extended))):
            relevant = every.relevant_to(key)
            taints = [taint for taint in context.taints if taint.key == key]
            if any(policy.selector_for(taint) for policy in incident for taint in taints):
                continue
            known = [*taints, *(taint for taint in past if taint.key == key)]
            if any(match(one, taint, context.gates) is Match.HOLDS for one in relevant for taint in known):
                continue
            for one in comparisons(relevant):
                answers = {taint: match(one, taint, context.gates) for taint in taints if applies(one, taint)}
                compared = [taint for taint, answer in answers.items() if answer is Match.DIFFERS]
                if compared:
                    yield group, one, compared


def _past(context: Context) -> Iterator[Taint]:
    """Earlier values on nodes, as far as the taint histories reach."""
    found = {
        Taint(taint.key, span.value, taint.effect): None
        for node in context.nodes.values()
        for taint, history in node.taints
        for span in history.spans[:-1]
    }
    yield from found


def _reversed(toleration: Toleration, taints: Iterable[Taint], gates: Gates) -> Toleration | None:
    operator = opposite(toleration.operator)
    if operator is None:
        return None
    other = Toleration(toleration.key, operator, toleration.value, toleration.effect)
    return other if any(match(other, taint, gates) is Match.HOLDS for taint in taints) else None


def _values(taints: Iterable[Taint]) -> str:
    values = sorted({taint.value for taint in taints}, key=lambda value: (len(value), value))
    more = f" and {len(values) - _NAMED} more values" if len(values) > _NAMED else ""
    return ", ".join(values[:_NAMED]) + more


CHECKS = (
    Check(
        id="taint-value-invalid",
        severity=Severity.WARNING,
        finds="taints of nodes and devices whose values cannot be parsed as valueType or tolerations ask",
        remedy="set the last value that can be compared: kubectl taint node NODE KEY=VALUE:EFFECT --overwrite",
        needs=(Source.NODES, Source.PODS, Source.POLICIES, Source.PROFILES),
        uses=TEMPLATES,
        run=_unreadable,
    ),
    Check(
        id="taint-value-held",
        severity=Severity.WARNING,
        finds="pods that stay, or leave, by a rule for values that cannot be compared (onInvalidValue)",
        remedy="set a value that can be compared; until then changes of this taint have no effect",
        needs=(Source.NODES, Source.PODS, Source.NAMESPACES, Source.POLICIES, Source.PROFILES),
        run=_held,
    ),
    Check(
        id="toleration-reversed",
        severity=Severity.WARNING,
        finds="Gt, Lt, SemverGt, SemverLt, VersionGt or VersionLt that holds on no node, while the opposite would",
        remedy="the taint is on the left: Gt 950 keeps the pod where the taint's value is above 950",
        needs=(Source.NODES, Source.PODS, Source.PROFILES),
        uses=TEMPLATES,
        run=_probably_reversed,
    ),
    Check(
        id="semver-compares-text",
        severity=Severity.WARNING,
        finds="a semantic comparison whose result depends on text: a vendor's suffix, or numbers within text",
        remedy="use VersionGt, VersionLt or VersionEq, and valueType Version in the policy",
        needs=(Source.NODES, Source.PODS, Source.PROFILES),
        uses=TEMPLATES,
        run=_by_text,
    ),
    Check(
        id="toleration-holds-nowhere",
        severity=Severity.WARNING,
        finds="a comparison that holds on no node which carries the taint",
        remedy="check the value; comparisons are strict: 950 is not above 950",
        needs=(Source.NODES, Source.PODS, Source.PROFILES),
        uses=TEMPLATES,
        run=_nowhere,
    ),
)

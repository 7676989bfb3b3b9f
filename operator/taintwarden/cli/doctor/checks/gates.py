"""Feature gates that do not match: the API server's, and the operator's own."""

from collections.abc import Iterator

from taintwarden.cli.doctor.check import Check, Found, Severity, about
from taintwarden.cli.doctor.checks.usage import comparisons, texts
from taintwarden.cli.doctor.context import Context
from taintwarden.engine.operators import ROWS, of_family
from taintwarden.rehearsal.sources import TEMPLATES, Source, Subject


def _state(context: Context) -> Iterator[Found]:
    for trial in context.snapshot.trials:
        family = ", ".join(of_family(ROWS[trial.operator].family))
        told = f"the API server {'accepts' if trial.accepted else 'refuses'} {family} in spec.tolerations"
        yield Found(Subject("Cluster", context.snapshot.server), told)


def _skew(context: Context) -> Iterator[Found]:
    refused = [
        one for trial in context.snapshot.trials if not trial.accepted for one in of_family(ROWS[trial.operator].family)
    ]
    for group in context.groups:
        stored = [one for one in comparisons(group.pod_class.tolerations.native) if one.operator in refused]
        if stored:
            yield about(group, f"{texts(stored)}: the API server refuses it by now, so lost pods are not replaced")


def _operator_off(context: Context) -> Iterator[Found]:
    off = [operator for operator, row in ROWS.items() if not row.family.is_on(context.gates)]
    for group in context.groups:
        every = context.view.tolerations_of(group.pod_class)
        using = [
            one
            for one in comparisons((*every.native, *every.extended))
            if one.operator in off and one in every.relevant_to(one.key)
        ]
        if using:
            message = f"{texts(using)}: the operator runs with this operator switched off, so it never holds"
            yield about(group, message)


CHECKS = (
    Check(
        id="gate-state",
        severity=Severity.INFO,
        finds="whether the API server takes Gt, Lt and Semver* in spec.tolerations (tried without storing anything)",
        remedy="nothing to do; the annotation and profiles work either way",
        needs=(Source.TRIAL,),
        run=_state,
    ),
    Check(
        id="gate-skew",
        severity=Severity.ERROR,
        finds="pods and templates with operators that the API server refuses by now",
        remedy="switch the gate on again, or move them into the annotation, beside a native Exists",
        needs=(Source.TRIAL, Source.PODS),
        uses=TEMPLATES,
        run=_skew,
    ),
    Check(
        id="gate-operator-off",
        severity=Severity.ERROR,
        finds="tolerations whose operator is switched off in the operator's own settings",
        remedy="run it with --numeric-operators and --semver-operators, or use other operators",
        needs=(Source.OPERATOR, Source.PODS, Source.PROFILES),
        uses=TEMPLATES,
        run=_operator_off,
    ),
)

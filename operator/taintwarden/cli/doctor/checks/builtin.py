"""The built-in controller, if it runs too: it supports neither extended tolerations nor a policy's grace."""

from collections.abc import Iterator

from taintwarden.cli.doctor.check import Check, Found, Severity, about
from taintwarden.cli.doctor.checks.usage import comparisons
from taintwarden.cli.doctor.context import Context
from taintwarden.cli.doctor.doctor_snapshot import BuiltIn
from taintwarden.engine.evaluate import Kind, TaintVerdict, judge
from taintwarden.engine.model import Effect, Gates, Mode, Policy, Taint, TolerationSecondsMode
from taintwarden.engine.operators import applies
from taintwarden.rehearsal.sources import EVALUATION, OWNERS, TEMPLATES, Source

_SWITCH = "--controllers=*,-taint-eviction-controller"


def _runs(context: Context) -> bool:
    return context.snapshot.built_in is not BuiltIn.ABSENT


def _evicts(context: Context) -> Iterator[Found]:
    if not _runs(context):
        return
    for group in context.running:
        found: dict[tuple[str, str], int] = {}
        for _, count, verdicts in context.evaluated(group):
            for verdict in verdicts:
                if _lets_stay(verdict) and not _is_tolerated_natively(verdict, context.gates):
                    key = (str(verdict.taint), verdict.policy.name)
                    found[key] = found.get(key, 0) + count
        for (taint, policy), pods in found.items():
            sure = context.snapshot.built_in is BuiltIn.RUNS
            fate = "they are evicted" if sure else "they are evicted if the built-in controller is on"
            message = f"policy {policy} lets them stay with {taint}, and no native toleration does: {fate}"
            yield Found(group.subject, message, pods=pods)


def _lets_stay(verdict: TaintVerdict) -> bool:
    if verdict.taint.source:  # the built-in controller does not know it
        return False
    is_enforced = verdict.policy.mode is Mode.ENFORCE and verdict.taint.effect == Effect.NO_EXECUTE
    return is_enforced and verdict.kind in (Kind.TOLERATED, Kind.HELD)


def _is_tolerated_natively(verdict: TaintVerdict, gates: Gates) -> bool:
    native = verdict.tolerations.native
    return judge(native, verdict.taint, TolerationSecondsMode.KUBERNETES, gates=gates).tolerated


def _reads_otherwise(context: Context) -> Iterator[Found]:
    if not _runs(context):
        return
    for group in context.groups:
        policies = context.view.policies_for(group.pod_class)
        every = context.view.tolerations_of(group.pod_class)
        for one in comparisons(every.native):
            if one.toleration_seconds is None or one not in every.relevant_to(one.key):
                continue
            written = [taint for taint in context.taints if taint.effect == Effect.NO_EXECUTE and not taint.source]
            taints = [taint for taint in written if applies(one, taint)]
            if policy := _after_violation(policies, taints):
                message = (
                    f"{one}: for policy {policy} these seconds are the grace once it no longer holds; the built-in "
                    "controller evicts after them from a good node, and at once from a bad one"
                )
                yield about(group, message)


def _after_violation(policies: tuple[Policy, ...], taints: list[Taint]) -> str:
    for policy in policies:
        if policy.timing.toleration_seconds_mode is TolerationSecondsMode.AFTER_VIOLATION and any(
            policy.selector_for(taint) for taint in taints
        ):
            return policy.name
    return ""


CHECKS = (
    Check(
        id="builtin-evicts",
        severity=Severity.ERROR,
        finds="pods that an enforcing policy lets stay with a NoExecute taint, and the built-in controller does not",
        remedy=f"add a native Exists for the key; or run kube-controller-manager with {_SWITCH}",
        needs=EVALUATION,
        uses=(*OWNERS, Source.BUILT_IN, Source.OPERATOR),
        run=_evicts,
    ),
    Check(
        id="builtin-seconds",
        severity=Severity.WARNING,
        finds="native comparisons with tolerationSeconds, which the policy and the built-in controller read otherwise",
        remedy="write violationGraceSeconds in the annotation, or tolerationSecondsMode: Kubernetes in the policy",
        needs=EVALUATION,
        uses=(*TEMPLATES, Source.BUILT_IN),
        run=_reads_otherwise,
    ),
)

"""The operator itself: whether it runs, evicts pods, and has the shipped rights."""

from collections.abc import Iterator

from taintwarden.cli.doctor.check import Check, Found, Severity
from taintwarden.cli.doctor.context import Context
from taintwarden.engine.model import Method
from taintwarden.rehearsal.sources import Source, Subject

_ONLY_FOR_DELETING = ("pods", "delete"), ("pods/status", "patch")
"""Rights that are bound only if policies delete pods."""
_OF_DEVICES = ".resource.k8s.io"
_REMEDY_OF_DEVICES = "add deploy/components/devices to your overlay, or set rbac.devices=true in the chart"


def _rehearses(context: Context) -> Iterator[Found]:
    operator = context.snapshot.operator
    if operator is not None and operator.dry_run:
        yield Found(_deployment(context), "runs with --dry-run: no policy evicts pods, whatever its mode")


def _stopped(context: Context) -> Iterator[Found]:
    operator = context.snapshot.operator
    if operator is not None and operator.replicas == 0:
        yield Found(_deployment(context), "is scaled to no replicas: no policy acts")


def _deployment(context: Context) -> Subject:
    name = context.snapshot.operator.name if context.snapshot.operator else ""
    return Subject("Deployment", name, context.snapshot.namespace)


def _rights(context: Context) -> Iterator[Found]:
    rights = context.snapshot.rights
    if rights is None:
        return
    namespace, _, name = rights.account.rpartition("/")
    subject = Subject("ServiceAccount", name, namespace)
    if rights.missing and rights.missed == rights.asked:
        yield Found(subject, f"has none of the {rights.asked} rights that the shipped role lists")
        return
    deletes = any(policy.eviction.method is not Method.EVICT for policy in context.policies)
    for one in rights.missing:
        if one.resource.endswith(_OF_DEVICES):
            if any(policy.devices for policy in context.policies):
                yield Found(subject, f"may not {', '.join(one.verbs)} {one.resource}", _REMEDY_OF_DEVICES)
            continue
        verbs = [verb for verb in one.verbs if deletes or (one.resource, verb) not in _ONLY_FOR_DELETING]
        if verbs:
            yield Found(subject, f"may not {', '.join(verbs)} {one.resource}{one.place}")


def _limits(context: Context) -> Iterator[Found]:
    rights = context.snapshot.rights
    if rights is not None and rights.unlimited:
        namespace, _, name = rights.account.rpartition("/")
        told = f"may change any label, taint and field of nodes: {rights.unlimited}"
        yield Found(Subject("ServiceAccount", name, namespace), told)


CHECKS = (
    Check(
        id="operator-stopped",
        severity=Severity.WARNING,
        finds="an operator's Deployment without replicas",
        remedy="kubectl -n taintwarden-system scale deployment taintwarden --replicas=2",
        needs=(Source.OPERATOR,),
        run=_stopped,
    ),
    Check(
        id="operator-rehearses",
        severity=Severity.INFO,
        finds="an operator that runs with --dry-run",
        remedy="remove --dry-run, or TAINTWARDEN_DRY_RUN, when policies are to act",
        needs=(Source.OPERATOR,),
        run=_rehearses,
    ),
    Check(
        id="rights-missing",
        severity=Severity.ERROR,
        finds="rights of deploy/base/rbac.yaml that the operator's service account does not have",
        remedy="kubectl apply -k deploy/base; for methods that delete also deploy/components/allow-delete",
        needs=(Source.POLICIES, Source.RIGHTS),
        run=_rights,
    ),
    Check(
        id="account-unlimited",
        severity=Severity.WARNING,
        finds="an operator's account that no ValidatingAdmissionPolicy limits",
        remedy="kubectl apply -k deploy/base, or admissionPolicy.enabled=true in the chart",
        needs=(Source.RIGHTS,),
        run=_limits,
    ),
)

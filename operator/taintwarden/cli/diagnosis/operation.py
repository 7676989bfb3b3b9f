"""The operator itself: whether it acts, as it should, with the rights that it was shipped with."""

from collections.abc import Iterator

from taintwarden.cli.diagnosis.check import Check, Found, Severity
from taintwarden.cli.diagnosis.context import Context
from taintwarden.cli.output import duration
from taintwarden.controller.times import moment
from taintwarden.engine.model import Method
from taintwarden.kube.lease import LEASE_NAME, LEASE_SECONDS
from taintwarden.rehearsal.sources import Source, Subject

CLOCKS_APART_SECONDS = 60.0
"""How far the clock here may run ahead of the operator's before its lease seems to have expired."""
_ONLY_FOR_DELETING = ("pods", "delete"), ("pods/status", "patch")
"""Rights that are bound only where policies delete."""


def _not_running(context: Context) -> Iterator[Found]:
    if context.snapshot.policies and (why := _why_idle(context)):
        yield Found(Subject("Lease", LEASE_NAME, context.snapshot.namespace), why)


def _why_idle(context: Context) -> str:
    lease = context.snapshot.lease
    if lease is None:
        return "does not exist: no operator has ever run in this namespace, so no policy acts"
    spec = lease.spec
    if spec is None or not spec.holder_identity or not spec.renew_time:
        return "nobody holds it: no operator runs, so no policy acts"
    try:
        age = context.snapshot.now - moment(spec.renew_time)
    except ValueError:
        return f"its renewTime is no time: {spec.renew_time}"
    if age <= (spec.lease_duration_seconds or LEASE_SECONDS) + CLOCKS_APART_SECONDS:
        return ""
    return f"{spec.holder_identity} has not renewed it for {duration(age)}: no operator runs, so no policy acts"


def _rehearses(context: Context) -> Iterator[Found]:
    operator = context.snapshot.operator
    if operator is not None and operator.dry_run:
        yield Found(_deployment(context), "runs with --dry-run: no policy evicts anybody, whatever its mode")


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
        verbs = [verb for verb in one.verbs if deletes or (one.resource, verb) not in _ONLY_FOR_DELETING]
        if verbs:
            yield Found(subject, f"may not {', '.join(verbs)} {one.resource}{one.place}")


CHECKS = (
    Check(
        id="operator-not-running",
        severity=Severity.ERROR,
        finds="policies while no operator renews its lease",
        remedy="kubectl -n taintwarden-system get pods; or name its namespace by --namespace",
        needs=(Source.POLICIES, Source.LEASE),
        run=_not_running,
    ),
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
)

"""The operator itself: whether it acts, as it should, with the rights that it was shipped with."""

from collections.abc import Iterator

from taintwarden.cli.diagnosis.checks import Check
from taintwarden.cli.diagnosis.finding import Found, Severity
from taintwarden.cli.diagnosis.ground import Look
from taintwarden.cli.diagnosis.injection import CONFIGURATION
from taintwarden.cli.diagnosis.sources import Source
from taintwarden.cli.diagnosis.subjects import Subject
from taintwarden.cli.output import duration
from taintwarden.controller.times import moment
from taintwarden.engine.model import Method
from taintwarden.kube.lease import LEASE_NAME, LEASE_SECONDS

CLOCKS_APART_SECONDS = 60.0
"""How far the clock here may run ahead of the operator's before its lease seems to have expired."""
_ONLY_FOR_DELETING = ("pods", "delete"), ("pods/status", "patch")
"""Rights that may be dropped where no policy deletes, as docs/operating.md says."""


def _not_running(look: Look) -> Iterator[Found]:
    if look.snapshot.policies and (why := _why_idle(look)):
        yield Found(Subject("Lease", LEASE_NAME, look.snapshot.namespace), why)


def _why_idle(look: Look) -> str:
    lease = look.snapshot.lease
    if lease is None:
        return "does not exist: no operator has ever run in this namespace, so no policy acts"
    spec = lease.spec
    if spec is None or not spec.holder_identity or not spec.renew_time:
        return "nobody holds it: no operator runs, so no policy acts"
    try:
        age = look.snapshot.now - moment(spec.renew_time)
    except ValueError:
        return f"its renewTime is no time: {spec.renew_time}"
    if age <= (spec.lease_duration_seconds or LEASE_SECONDS) + CLOCKS_APART_SECONDS:
        return ""
    return f"{spec.holder_identity} has not renewed it for {duration(age)}: no operator runs, so no policy acts"


def _rehearses(look: Look) -> Iterator[Found]:
    operator = look.snapshot.operator
    if operator is not None and operator.dry_run:
        yield Found(_deployment(look), "runs with --dry-run: no policy evicts anybody, whatever its mode")


def _stopped(look: Look) -> Iterator[Found]:
    operator = look.snapshot.operator
    if operator is not None and operator.replicas == 0:
        yield Found(_deployment(look), "is scaled to no replicas: no policy acts")


def _deployment(look: Look) -> Subject:
    name = look.snapshot.operator.name if look.snapshot.operator else ""
    return Subject("Deployment", name, look.snapshot.namespace)


def _rights(look: Look) -> Iterator[Found]:
    rights = look.snapshot.rights
    if rights is None:
        return
    namespace, _, name = rights.account.rpartition("/")
    subject = Subject("ServiceAccount", name, namespace)
    if rights.missing and rights.missed == rights.asked:
        yield Found(subject, f"has none of the {rights.asked} rights that the shipped role lists")
        return
    deletes = any(policy.eviction.method is not Method.EVICT for policy in look.policies)
    for one in rights.missing:
        if _is_for_webhooks(one.resource) and not _has_webhooks(look):
            continue
        verbs = [verb for verb in one.verbs if deletes or (one.resource, verb) not in _ONLY_FOR_DELETING]
        if verbs:
            yield Found(subject, f"may not {', '.join(verbs)} {one.resource}{one.place}")


def _is_for_webhooks(resource: str) -> bool:
    """The chart leaves these rights out where it installs no webhooks."""
    return resource == "secrets" or resource.endswith(".admissionregistration.k8s.io")


def _has_webhooks(look: Look) -> bool:
    return any(one.metadata.name == CONFIGURATION for one in (*look.snapshot.mutating, *look.snapshot.validating))


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
        remedy="kubectl apply -k deploy/base",
        needs=(Source.POLICIES, Source.RIGHTS),
        uses=(Source.MUTATING, Source.VALIDATING),
        run=_rights,
    ),
)

"""Conditions that stop every eviction, or would release too many: they are reported before all other findings."""

from collections.abc import Iterator

from taintwarden.cli.doctor.check import Check, Found, Severity
from taintwarden.cli.doctor.context import Context
from taintwarden.kube.calls.lease import LEASE_NAME
from taintwarden.rehearsal.liveness import liveness
from taintwarden.rehearsal.sources import Source, Subject


def _undefined(context: Context) -> Iterator[Found]:
    for source in context.snapshot.undefined:
        yield Found(Subject("CustomResourceDefinition", f"{source}.taintwarden.io"), "does not exist")


def _not_running(context: Context) -> Iterator[Found]:
    snapshot = context.snapshot
    if not snapshot.policies:
        return
    subject = Subject("Lease", LEASE_NAME, snapshot.namespace)
    known = liveness(snapshot.policies, snapshot.lease, snapshot.now, is_late=snapshot.lease_is_late)
    if known.problem:
        yield Found(subject, known.problem)
    elif snapshot.lease is None and known.reported_at is None:
        yield Found(subject, "does not exist: no operator has ever run in this namespace, so no policy acts")


def _guard_tripped(context: Context) -> Iterator[Found]:
    for one in context.summaries:
        if one.guard is not None and one.guard.is_tripped:
            cause = one.guard.cause or "the cause is not known yet"
            yield Found(Subject(POLICY, one.name), one.guard.message or f"its guard has tripped: {cause}")


def _zones_full(context: Context) -> Iterator[Found]:
    for one in context.summaries:
        if one.guard is not None and one.guard.zones_full:
            yield Found(Subject(POLICY, one.name), one.guard.message)


POLICY = "TaintEvictionPolicy"
CHECKS = (
    Check(
        id="definitions-missing",
        severity=Severity.ERROR,
        finds="a cluster that does not know TaintEvictionPolicies or TolerationProfiles, so nothing of them acts",
        remedy="kubectl apply -k crds, or install the chart; then start the operator again",
        needs=(),
        uses=(Source.POLICIES, Source.PROFILES),
        run=_undefined,
    ),
    Check(
        id="operator-not-running",
        severity=Severity.ERROR,
        finds="policies while no operator renews its lease or reports",
        remedy="kubectl -n taintwarden-system get pods; or name its namespace by --operator-namespace",
        needs=(Source.POLICIES, Source.LEASE),
        run=_not_running,
    ),
    Check(
        id="policy-guard-open",
        severity=Severity.ERROR,
        finds="policies whose guard has tripped: too many pods would be evicted",
        remedy="taintwarden pause NAME; taintwarden repair NAME; taintwarden plan --enforce NAME; "
        "taintwarden resume NAME",
        needs=(Source.POLICIES,),
        run=_guard_tripped,
    ),
    Check(
        id="policy-zones-full",
        severity=Severity.ERROR,
        finds="policies whose zones are all Full, so nothing is evicted",
        remedy="look at the monitoring; check with taintwarden plan; if all is right: taintwarden guard reset NAME",
        needs=(Source.POLICIES,),
        run=_zones_full,
    ),
)

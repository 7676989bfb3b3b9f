"""The operator and its webhooks: whether they run, and are able to do what policies ask for."""

from collections.abc import Iterator

from taintwarden.engine.model import Method
from taintwarden.kube.calls.lease import LEASE_NAME
from taintwarden_cli.doctor.check import Found, Severity, check
from taintwarden_cli.doctor.context import Context, is_ours
from taintwarden_cli.doctor.doctor_snapshot import DELETING, OF_DEVICES
from taintwarden_cli.rehearsal.liveness import liveness
from taintwarden_cli.rehearsal.sources import Source, Subject
from taintwarden_cli.status.policy_status import long_stuck, why_halted
from taintwarden_placement.admission.own_objects import INJECT

POLICY = "TaintEvictionPolicy"
_MUTATING, _VALIDATING = "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"


@check(
    "operator-not-running",
    Severity.ERROR,
    "policies without an operator: no definitions, no replicas, or no renewal of its lease or of statuses",
    "kubectl -n taintwarden-system get pods; or name its namespace by --operator-namespace",
    uses=(Source.POLICIES, Source.PROFILES, Source.LEASE, Source.OPERATOR),
)
def not_running(context: Context) -> Iterator[Found]:
    """What has to exist before any policy acts."""
    snapshot = context.snapshot
    for source in snapshot.undefined:
        subject = Subject("CustomResourceDefinition", f"{source}.taintwarden.io")
        yield Found(subject, "does not exist", "kubectl apply -k crds, or install the chart; then restart the operator")
    operator = snapshot.operator
    if operator is not None and operator.replicas == 0:
        remedy = f"kubectl -n {snapshot.namespace} scale deployment {operator.name} --replicas=2"
        subject = Subject("Deployment", operator.name, snapshot.namespace)
        yield Found(subject, "is scaled to no replicas: no policy acts", remedy)
    elif snapshot.policies:
        subject = Subject("Lease", LEASE_NAME, snapshot.namespace)
        known = liveness(snapshot.policies, snapshot.lease, snapshot.now, is_late=snapshot.lease_is_late)
        if known.problem:
            yield Found(subject, known.problem)
        elif snapshot.lease is None and known.reported_at is None and snapshot.knows(Source.LEASE):
            yield Found(subject, "does not exist: no operator has ever run in this namespace, so no policy acts")


@check(
    "policy-problem",
    Severity.ERROR,
    "policies that are not accepted, or cannot evict what they have to, as their status says",
    "taintwarden status NAME; docs/troubleshooting.md#a-limit-holds-them",
    needs=(Source.POLICIES,),
)
def policy_problem(context: Context) -> Iterator[Found]:
    """What ``status`` says, with the next command."""
    known = {one.name: one for one in context.summaries if not context.waits_in_vain(one)}
    for name in sorted({*known, *context.policy_problems}):
        one, invalid = known.get(name), context.policy_problems.get(name)
        page = "troubleshooting.md#a-limit-holds-them"
        if one is not None and one.problem == long_stuck(one.status, context.snapshot.now):
            page = "runbooks/pods-stuck.md"
        remedy = f"taintwarden status {name}; docs/{page}"
        if invalid or (one is not None and one.accepted == "False"):
            remedy = f"correct it: kubectl edit taintevictionpolicy {name}"
        elif one is not None and one.problem == why_halted(one) != "":
            remedy = (
                f"taintwarden pause {name}; correct the cause; taintwarden plan --enforce {name}; then taintwarden "
                f"resume {name}"
            )
            if any(policy.name == name and policy.limits.guard.is_limit for policy in context.policies):
                remedy += f". If all these pods are to be evicted: taintwarden guard reset {name}"
        if problem := invalid or (one.problem if one is not None else ""):
            yield Found(Subject(POLICY, name), problem, remedy)


@check(
    "rights-missing",
    Severity.ERROR,
    "rights to evict, or those that policies with devices or with a method that deletes need, which the operator lacks",
    "kubectl apply -k deploy/base",
    needs=(Source.POLICIES, Source.RIGHTS),
)
def rights_missing(context: Context) -> Iterator[Found]:
    """Before the first eviction that needs them fails."""
    rights = context.snapshot.rights
    namespace, _, name = rights.account.rpartition("/") if rights is not None else ("", "", "")
    deletes = any(policy.eviction.method is not Method.EVICT for policy in context.policies)
    devices = any(policy.devices for policy in context.policies)
    for right in rights.missing if rights is not None else ():
        remedy = ""
        if right in DELETING:
            remedy = "add deploy/components/allow-delete to your overlay, or set rbac.allowDelete=true in the chart"
        elif right in OF_DEVICES:
            remedy = "add deploy/components/devices to your overlay, or set rbac.devices=true in the chart"
        if (deletes or right not in DELETING) and (devices or right not in OF_DEVICES):
            yield Found(Subject("ServiceAccount", name, namespace), f"may not {right}", remedy)


@check(
    "webhook-not-answering",
    Severity.ERROR,
    "webhooks that are missing, not trusted or without a ready replica, so that pods get no placement and no native "
    "tolerations; or whose failurePolicy is Fail, so that no pod starts while they are away",
    "kubectl -n taintwarden-system get pods",
    needs=(Source.NAMESPACES, Source.MUTATING, Source.VALIDATING),
    uses=(Source.OPERATOR,),
)
def webhook_not_answering(context: Context) -> Iterator[Found]:
    """Whether a pod that is created now is completed."""
    snapshot = context.snapshot
    if context.mutating is None:
        for name in context.opted_in:
            message = f"asks for native tolerations by {INJECT}=true, and there is no {_MUTATING} of Taintwarden"
            remedy = f"kubectl apply -k deploy/base; or: kubectl label namespace {name} {INJECT}-"
            yield Found(Subject("Namespace", name), message, remedy, Severity.WARNING)
    for kind, listed in ((_MUTATING, snapshot.mutating), (_VALIDATING, snapshot.validating)):
        for one in filter(is_ours, listed):
            subject = Subject(kind, one.metadata.name)
            for webhook in one.webhooks:
                if not webhook.client_config.ca_bundle:
                    message = f"webhook {webhook.name} has no caBundle, so the API server cannot trust it"
                    yield Found(subject, message, "taintwarden webhook-trust; or install again with kubectl or helm")
                if webhook.failure_policy == "Fail":
                    message = f"webhook {webhook.name} has failurePolicy Fail: without it nothing is created"
                    yield Found(subject, message, "set failurePolicy to Ignore, as shipped")
    if snapshot.webhook_problem and context.mutating is not None:
        yield Found(Subject(_MUTATING, context.mutating.metadata.name), snapshot.webhook_problem)

"""Checks that the operator and its webhooks run, and have the rights that policies need."""

from collections.abc import Iterator

from taintwarden.engine.policy import Method, has_replace_first
from taintwarden.kube.calls.lease import LEASE_NAME
from taintwarden_cli.doctor.check import Finding, Severity, check
from taintwarden_cli.doctor.context import Context, is_of_taintwarden
from taintwarden_cli.doctor.doctor_snapshot import DELETE_RIGHTS, DEVICE_RIGHTS, NODE_RIGHTS, REPLACE_RIGHTS, Right
from taintwarden_cli.rehearsal.liveness import LIST_PODS, liveness
from taintwarden_cli.rehearsal.sources import Source, Subject
from taintwarden_cli.status.problems import ProblemKind
from taintwarden_placement.admission.own_objects import INJECT

POLICY = "TaintEvictionPolicy"
_MUTATING, _VALIDATING = "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"


@check(
    "operator-not-running",
    Severity.ERROR,
    "policies without an operator: no definitions, no replicas, or no renewal of its lease or of statuses",
    f"{LIST_PODS}; name its namespace by --operator-namespace",
    uses=(Source.POLICIES, Source.PROFILES, Source.LEASE, Source.OPERATOR),
)
def not_running(context: Context) -> Iterator[Finding]:
    """Reasons why no policy acts at all."""
    snapshot = context.snapshot
    for source in snapshot.undefined:
        subject = Subject("CustomResourceDefinition", f"{source}.taintwarden.io")
        remedy = "install the CRDs of the version that runs (docs/installing.md), then restart the operator"
        yield Finding(subject, "does not exist", remedy)
    operator = snapshot.operator
    if operator is not None and operator.replicas == 0:
        remedy = f"kubectl -n {snapshot.namespace} scale deployment {operator.name} --replicas=2"
        subject = Subject("Deployment", operator.name, snapshot.namespace)
        yield Finding(subject, "is scaled to no replicas: no policy acts", remedy)
    elif snapshot.policies:
        subject = Subject("Lease", LEASE_NAME, snapshot.namespace)
        known = liveness(snapshot.policies, snapshot.lease, snapshot.now, is_late=snapshot.lease_is_late)
        if known.problem:
            yield Finding(subject, known.problem)
        elif snapshot.lease is None and known.reported_at is None and snapshot.has_read(Source.LEASE):
            yield Finding(subject, "does not exist: no operator has ever run in this namespace, so no policy acts")


@check(
    "policy-problem",
    Severity.ERROR,
    "policies that are not accepted, or cannot evict what they have to, as `taintwarden status` says",
    "see each line",
    needs=(Source.POLICIES,),
    uses=(Source.INSPECTION,),
)
def policy_problem(context: Context) -> Iterator[Finding]:
    """Problems that ``status`` shows, with their remedies."""
    invalid = context.policy_problems
    for name, why in sorted(invalid.items()):
        yield Finding(Subject(POLICY, name), why, f"kubectl edit taintevictionpolicy {name}")
    for policy in context.summaries:
        for problem in policy.problems:
            is_shown = policy.name in invalid and problem.kind in (ProblemKind.NOT_ACCEPTED, ProblemKind.NOT_OBSERVED)
            if not is_shown and not context.has_check_of_its_own(policy, problem):
                yield Finding(Subject(POLICY, policy.name), str(problem), problem.remedy)


@check(
    "rights-missing",
    Severity.ERROR,
    "rights that the operator lacks: to evict; or, if used, for devices, replaceFirst, a method that deletes, or the "
    "condition Drained",
    "grant them to its ServiceAccount",
    needs=(Source.POLICIES, Source.RIGHTS),
    uses=(Source.OPERATOR,),
)
def rights_missing(context: Context) -> Iterator[Finding]:
    """Missing rights, before the first eviction that needs them fails."""
    rights = context.snapshot.rights
    namespace, _, name = rights.account.rpartition("/") if rights is not None else ("", "", "")
    policies, operator = context.policies, context.snapshot.operator
    deletes = any(policy.eviction.method is not Method.EVICT for policy in policies)
    optional = (
        (DELETE_RIGHTS, deletes, "allow-delete", "rbac.allowDelete"),
        (DEVICE_RIGHTS, any(policy.devices for policy in policies), "devices", "rbac.devices"),
        (REPLACE_RIGHTS, has_replace_first(policies), "replace-first", "rbac.replaceFirst"),
        (NODE_RIGHTS, operator is not None and operator.drained_condition, "drained-condition", "drainedCondition"),
    )
    for right in rights.missing if rights is not None else ():
        is_needed, remedy = True, _granting_command(right, namespace, name)
        for group, is_used, component, value in optional:
            if right in group:
                is_needed = is_used
                remedy = f"add deploy/components/{component} to your overlay, or set {value}=true in the chart"
        if is_needed:
            yield Finding(Subject("ServiceAccount", name, namespace), f"may not {right}", remedy)


def _granting_command(right: Right, namespace: str, account: str) -> str:
    """The commands that grant a right, and change nothing else of an installation."""
    role = f"{account}-{right.verb}-{right.resource.replace('/', '-')}"
    rule = f"--verb={right.verb} --resource={right.resource}" + f".{right.group}" * bool(right.group)
    bound = f"--clusterrole={role} --serviceaccount={namespace}:{account}"
    return f"kubectl create clusterrole {role} {rule} && kubectl create clusterrolebinding {role} {bound}"


@check(
    "webhook-not-answering",
    Severity.ERROR,
    "webhooks that are missing, not trusted or without a ready replica, so that pods get no placement and no native "
    "tolerations; or whose failurePolicy is Fail, so that no pod starts while they are away",
    LIST_PODS,
    needs=(Source.NAMESPACES, Source.MUTATING, Source.VALIDATING),
    uses=(Source.OPERATOR,),
)
def webhook_not_answering(context: Context) -> Iterator[Finding]:
    """Reasons why webhooks do not complete new pods, or would block them."""
    snapshot = context.snapshot
    if context.mutating is None:
        for name in context.opted_in:
            message = f"asks for native tolerations by {INJECT}=true, and there is no {_MUTATING} of Taintwarden"
            remedy = f"install the webhook (docs/admission.md), or: kubectl label namespace {name} {INJECT}-"
            yield Finding(Subject("Namespace", name), message, remedy, Severity.WARNING)
    for kind, listed in ((_MUTATING, snapshot.mutating), (_VALIDATING, snapshot.validating)):
        for configuration in filter(is_of_taintwarden, listed):
            subject = Subject(kind, configuration.metadata.name)
            for webhook in configuration.webhooks:
                if not webhook.client_config.ca_bundle:
                    message = f"webhook {webhook.name} has no caBundle, so the API server cannot trust it"
                    trust = f"taintwarden webhook-trust --namespace {snapshot.namespace}"
                    yield Finding(subject, message, f"{trust}; or install again with kubectl or helm")
                if webhook.failure_policy == "Fail":
                    message = f"webhook {webhook.name} has failurePolicy Fail: nothing that it reviews is created"
                    message += " while it is away"
                    yield Finding(subject, message, f"set it to Ignore: kubectl edit {kind.lower()} {subject.name}")
    if snapshot.webhook_problem and context.mutating is not None:
        yield Finding(Subject(_MUTATING, context.mutating.metadata.name), snapshot.webhook_problem)

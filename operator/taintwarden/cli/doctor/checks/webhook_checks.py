"""The admission webhooks: present if they are required, reachable, and never an obstacle to writes."""

from collections.abc import Iterator

from taintwarden.cli.doctor.check import Check, Found, Severity, about
from taintwarden.cli.doctor.checks.pending_pods import of_kind
from taintwarden.cli.doctor.checks.toleration_checks import missing_native
from taintwarden.cli.doctor.context import Context
from taintwarden.cli.doctor.doctor_snapshot import WebhookConfiguration
from taintwarden.cli.doctor.injected_namespaces import injects, is_ours, mutating, opted_in
from taintwarden.placement.admission.own_objects import INJECT
from taintwarden.rehearsal.obstacles import ObstacleKind
from taintwarden.rehearsal.sources import OWNERS, Source, Subject

_MUTATING, _VALIDATING = "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"


def _ours(context: Context) -> Iterator[tuple[Subject, WebhookConfiguration]]:
    for kind, listed in ((_MUTATING, context.snapshot.mutating), (_VALIDATING, context.snapshot.validating)):
        for one in filter(is_ours, listed):
            yield Subject(kind, one.metadata.name), one


def _missing(context: Context) -> Iterator[Found]:
    if mutating(context) is None:
        for name in opted_in(context):
            message = f"asks for native tolerations by {INJECT}=true, and there is no {_MUTATING} of Taintwarden"
            yield Found(Subject("Namespace", name), message)


def _without_authority(context: Context) -> Iterator[Found]:
    for subject, configuration in _ours(context):
        for webhook in configuration.webhooks:
            if not webhook.client_config.ca_bundle:
                yield Found(subject, f"webhook {webhook.name} has no caBundle, so the API server cannot trust it")


def _unanswered(context: Context) -> Iterator[Found]:
    if context.snapshot.webhooks_answer is not False:
        return
    for one in filter(is_ours, context.snapshot.validating):
        message = "the API server admits a pod in the namespace default whose annotation the webhooks reject"
        yield Found(Subject(_VALIDATING, one.metadata.name), message)


def _fails_closed(context: Context) -> Iterator[Found]:
    for subject, configuration in _ours(context):
        for webhook in configuration.webhooks:
            if webhook.failure_policy == "Fail":
                yield Found(subject, f"webhook {webhook.name} has failurePolicy Fail: without it nothing is created")


def _skipped(context: Context) -> Iterator[Found]:
    for group in context.running:
        if injects(context, group):
            for fault in missing_native(context, group):
                message = f"{fault.value}: pods have no native toleration, although their namespace asks for it"
                yield about(group, message)
    yield from of_kind(context, ObstacleKind.NATIVE)


CHECKS = (
    Check(
        id="webhook-missing",
        severity=Severity.WARNING,
        finds="namespaces that ask for injection while there is no webhook",
        remedy="kubectl apply -k deploy/base; or: kubectl label namespace NAME taintwarden.io/inject-",
        needs=(Source.NAMESPACES, Source.MUTATING),
        run=_missing,
    ),
    Check(
        id="webhook-untrusted",
        severity=Severity.ERROR,
        finds="webhooks without caBundle: the API server skips them",
        remedy="taintwarden webhook-trust; or install again with kubectl or helm",
        needs=(Source.MUTATING, Source.VALIDATING),
        run=_without_authority,
    ),
    Check(
        id="webhook-unanswered",
        severity=Severity.WARNING,
        finds="webhooks that do not reject an invalid annotation (tried without storing anything): their caBundle is "
        "of another certificate, no replica answers, or their selectors leave the namespace default out",
        remedy="taintwarden webhook-trust; look at the log of the webhook for webhook-untrusted",
        needs=(Source.VALIDATING, Source.TRIAL),
        run=_unanswered,
    ),
    Check(
        id="webhook-fails-closed",
        severity=Severity.ERROR,
        finds="webhooks whose failurePolicy is Fail: nothing starts while the operator is away",
        remedy="set failurePolicy to Ignore, as shipped",
        needs=(Source.MUTATING, Source.VALIDATING),
        run=_fails_closed,
    ),
    Check(
        id="injection-skipped",
        severity=Severity.WARNING,
        finds="pods without their native toleration in a namespace that asks for injection",
        remedy="they are older than the webhook, or it was away: restart them, for example by kubectl rollout restart",
        needs=(Source.NAMESPACES, Source.MUTATING, Source.PODS, Source.PROFILES),
        uses=(*OWNERS, Source.PENDING, Source.NODES, Source.POLICIES),
        run=_skipped,
    ),
)

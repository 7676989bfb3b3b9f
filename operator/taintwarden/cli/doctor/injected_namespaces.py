"""Which namespaces have injection enabled, and whether the webhook runs that injects."""

from taintwarden.cli.doctor.context import Context
from taintwarden.cli.doctor.doctor_snapshot import WebhookConfiguration
from taintwarden.cli.doctor.inventory import PodGroup
from taintwarden.placement.admission.own_objects import INJECT

OURS = "taintwarden.io"
"""How the names of our webhooks end, whatever their configurations are called."""


def is_ours(configuration: WebhookConfiguration) -> bool:
    """Whether it is a configuration of ours."""
    return any(webhook.name.endswith(f".{OURS}") for webhook in configuration.webhooks)


def mutating(context: Context) -> WebhookConfiguration | None:
    """Our MutatingWebhookConfiguration, if it exists."""
    return next(filter(is_ours, context.snapshot.mutating), None)


def opted_in(context: Context) -> list[str]:
    """The namespaces that have injection enabled."""
    return [one.metadata.name for one in context.snapshot.namespaces if one.metadata.labels.get(INJECT) == "true"]


def injects(context: Context, group: PodGroup) -> bool:
    """Whether new pods of the group get missing native tolerations."""
    declined = group.pod_class.labels.get(INJECT) == "false"
    return not declined and mutating(context) is not None and group.pod_class.namespace in opted_in(context)

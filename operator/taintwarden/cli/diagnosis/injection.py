"""Which namespaces have injection enabled, and whether the webhook runs that injects."""

from taintwarden.cli.diagnosis.context import Context
from taintwarden.cli.diagnosis.inventory import Group
from taintwarden.cli.diagnosis.snapshot import WebhookConfiguration

CONFIGURATION = "taintwarden"
INJECT_LABEL = "taintwarden.io/inject"


def mutating(context: Context) -> WebhookConfiguration | None:
    """Our MutatingWebhookConfiguration, if it exists."""
    return next((one for one in context.snapshot.mutating if one.metadata.name == CONFIGURATION), None)


def opted_in(context: Context) -> list[str]:
    """The namespaces that have injection enabled."""
    return [one.metadata.name for one in context.snapshot.namespaces if one.metadata.labels.get(INJECT_LABEL) == "true"]


def injects(context: Context, group: Group) -> bool:
    """Whether new pods of the group get missing native tolerations."""
    declined = group.pod_class.labels.get(INJECT_LABEL) == "false"
    return not declined and mutating(context) is not None and group.pod_class.namespace in opted_in(context)

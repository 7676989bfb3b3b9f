"""Which namespaces ask for native tolerations to be added, and whether anything adds them."""

from taintwarden.cli.diagnosis.census import Group
from taintwarden.cli.diagnosis.ground import Look
from taintwarden.cli.diagnosis.snapshot import WebhookConfiguration

CONFIGURATION = "taintwarden"
INJECT_LABEL = "taintwarden.io/inject"


def mutating(look: Look) -> WebhookConfiguration | None:
    """Our MutatingWebhookConfiguration, if it is there."""
    return next((one for one in look.snapshot.mutating if one.metadata.name == CONFIGURATION), None)


def opted_in(look: Look) -> list[str]:
    """The namespaces that ask for it."""
    return [one.metadata.name for one in look.snapshot.namespaces if one.metadata.labels.get(INJECT_LABEL) == "true"]


def injects(look: Look, group: Group) -> bool:
    """Whether new pods of the group get what they lack."""
    declined = group.pod_class.labels.get(INJECT_LABEL) == "false"
    return not declined and mutating(look) is not None and group.pod_class.namespace in opted_in(look)

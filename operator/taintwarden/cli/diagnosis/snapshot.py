"""What the checks know beyond the snapshot that a machine is taught from."""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from taintwarden.cli.diagnosis.inventory import Group, Inventory
from taintwarden.engine.model import Gates
from taintwarden.kube.lease import LeaseObject
from taintwarden.kube.objects import BudgetMeta, BudgetObject, BudgetSpec, BudgetStatus
from taintwarden.rehearsal.snapshot import Snapshot


class FullBudgetSpec(BudgetSpec, rename="camel"):
    """What the operator need not know: whether it can allow anything at all."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class FullBudgetStatus(BudgetStatus, rename="camel"):
    """With the pods that its controller expects."""

    expected_pods: int = 0


class FullBudget(BudgetObject):
    """A PodDisruptionBudget."""

    metadata: BudgetMeta = msgspec.field(default_factory=BudgetMeta)
    spec: FullBudgetSpec = msgspec.field(default_factory=FullBudgetSpec)
    status: FullBudgetStatus | None = None


class ClientConfig(msgspec.Struct, rename="camel"):
    """``clientConfig`` of a webhook."""

    ca_bundle: str = ""


class Webhook(msgspec.Struct, rename="camel"):
    """``webhooks[]``."""

    name: str = ""
    client_config: ClientConfig = msgspec.field(default_factory=ClientConfig)
    failure_policy: str = ""


class WebhookMeta(msgspec.Struct):
    """``metadata`` of a webhook configuration."""

    name: str = ""


class WebhookConfiguration(msgspec.Struct):
    """A MutatingWebhookConfiguration or a ValidatingWebhookConfiguration."""

    metadata: WebhookMeta = msgspec.field(default_factory=WebhookMeta)
    webhooks: list[Webhook] = []


class OperatorSettings(msgspec.Struct):
    """What the operator's Deployment runs it with."""

    name: str
    gates: Gates = Gates()
    dry_run: bool = False
    replicas: int = 1
    account: str = ""
    """Its service account."""


class BuiltIn(StrEnum):
    """What is known of the built-in taint eviction controller."""

    ABSENT = "absent"
    """It does not run, or is switched off."""
    RUNS = "runs"
    PERHAPS = "perhaps"
    """A kube-controller-manager runs, and nobody can see with which controllers."""


class Trial(msgspec.Struct, frozen=True):
    """Whether the API server takes a pod whose native toleration has this operator."""

    operator: str
    accepted: bool


class Missing(msgspec.Struct, frozen=True):
    """Verbs that the operator's service account lacks on a resource, and where."""

    resource: str
    verbs: tuple[str, ...]
    place: str = ""


class Rights(msgspec.Struct):
    """What the service account may not do of what the shipped role lists; ``asked``: how many rights were looked at."""

    account: str
    asked: int = 0
    missing: tuple[Missing, ...] = ()
    missed: int = 0


class DoctorSnapshot(Snapshot):
    """What checks look at. Pods are kept in groups only."""

    namespace: str = ""
    """Where the operator is looked for."""
    groups: Sequence[Group] = ()
    pod_count: int = 0
    template_count: int = 0
    mutating: Sequence[WebhookConfiguration] = ()
    validating: Sequence[WebhookConfiguration] = ()
    lease: LeaseObject | None = None
    operator: OperatorSettings | None = None
    built_in: BuiltIn = BuiltIn.PERHAPS
    trials: Sequence[Trial] = ()
    rights: Rights | None = None

    def take(self, inventory: Inventory) -> None:
        """All pods and templates are read."""
        inventory.close()
        self.groups, self.pod_count, self.template_count = inventory.groups, inventory.pods, inventory.templates
        self.unreadable = [*self.unreadable, *inventory.unreadable]

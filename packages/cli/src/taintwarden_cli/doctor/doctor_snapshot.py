"""What the checks read in addition to the snapshot for a machine."""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from taintwarden.engine.model import Gates
from taintwarden.kube.calls.lease import LeaseObject
from taintwarden.kube.wire.kinds import BudgetMeta, BudgetObject, BudgetSpec, BudgetStatus
from taintwarden_cli.doctor.inventory import Inventory, PendingPods, PodGroup
from taintwarden_cli.rehearsal.snapshot import Snapshot
from taintwarden_cli.status.event_timeline import Happening


class FullBudgetSpec(BudgetSpec, rename="camel"):
    """Fields that the operator does not need: whether it can allow a disruption at all."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class FullBudgetStatus(BudgetStatus, rename="camel"):
    """With the number of pods that its controller expects."""

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
    """The settings in the operator's Deployment."""

    name: str
    gates: Gates = Gates()
    replicas: int = 1
    account: str = ""
    """Its service account."""


class BuiltIn(StrEnum):
    """What is known about the built-in controller for taints of nodes, or the one for taints of devices."""

    ABSENT = "absent"
    """It does not run, or is switched off."""
    RUNS = "runs"
    PERHAPS = "perhaps"
    """A kube-controller-manager runs, and its list of controllers cannot be read."""


class Missing(msgspec.Struct, frozen=True):
    """Verbs that the operator's service account lacks on a resource, and where."""

    resource: str
    verbs: tuple[str, ...]
    place: str = ""


class Rights(msgspec.Struct):
    """The rights of the shipped role that the service account lacks; ``asked``: how many rights were checked."""

    account: str
    asked: int = 0
    missing: tuple[Missing, ...] = ()
    missed: int = 0


class DoctorSnapshot(Snapshot):
    """The input of the checks. Pods are kept in groups only."""

    namespace: str = ""
    """The namespace in which the operator is searched."""
    groups: Sequence[PodGroup] = ()
    pending: Sequence[PendingPods] = ()
    """Pods for which the scheduler found no node."""
    pod_count: int = 0
    template_count: int = 0
    mutating: Sequence[WebhookConfiguration] = ()
    validating: Sequence[WebhookConfiguration] = ()
    lease: LeaseObject | None = None
    lease_is_late: bool = False
    """It was not renewed while one looked at it."""
    operator: OperatorSettings | None = None
    built_in: BuiltIn = BuiltIn.PERHAPS
    built_in_for_devices: BuiltIn = BuiltIn.PERHAPS
    cancelled: Sequence[Happening] = ()
    """The operator's Events about evictions that were cancelled in the last hour."""
    webhooks_answer: bool | None = None
    """Whether the API server rejects what only the webhooks reject; None if that is not known."""
    rights: Rights | None = None

    def take(self, inventory: Inventory) -> None:
        """All pods and templates are read."""
        inventory.close()
        self.groups, self.pod_count, self.template_count = inventory.groups, inventory.pods, inventory.templates
        self.pending = inventory.pending
        self.unreadable = [*self.unreadable, *inventory.unreadable]

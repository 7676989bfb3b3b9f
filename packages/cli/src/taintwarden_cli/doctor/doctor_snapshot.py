"""The snapshot for ``doctor``: that of a rehearsal, and the other objects that checks read."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec

from taintwarden.engine.model import Gates
from taintwarden.kube.calls.lease import LeaseObject
from taintwarden_cli.doctor.inventory import Inventory, PodGroup
from taintwarden_cli.rehearsal.snapshot import Snapshot
from taintwarden_cli.rehearsal.sources import Named
from taintwarden_cli.status.event_timeline import Happening
from taintwarden_cli.status.findings import PolicyFindings


class ClientConfig(msgspec.Struct, rename="camel"):
    """``clientConfig`` of a webhook."""

    ca_bundle: str = ""


class Webhook(msgspec.Struct, rename="camel"):
    """An item of ``webhooks``."""

    name: str = ""
    client_config: ClientConfig = msgspec.field(default_factory=ClientConfig)
    failure_policy: str = ""


class WebhookConfiguration(Named):
    """A MutatingWebhookConfiguration or a ValidatingWebhookConfiguration."""

    webhooks: Sequence[Webhook] = ()


class OperatorSettings(msgspec.Struct):
    """The settings in the operator's Deployment."""

    name: str
    gates: Gates = Gates()
    replicas: int = 1
    account: str = ""
    """Its service account."""
    drained_condition: bool = False
    """True if it writes the condition of nodes that says whether they are drained."""


class BuiltIn(StrEnum):
    """The state of the built-in controller for taints of nodes, or of the one for taints of devices."""

    ABSENT = "absent"
    """The controller does not run, or is switched off."""
    RUNS = "runs"
    PERHAPS = "perhaps"
    """A kube-controller-manager runs, and its list of controllers cannot be read."""


class Right(msgspec.Struct, frozen=True):
    """One verb on one resource, or on a subresource such as ``pods/eviction``."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}" + (f".{self.group}" if self.group else "")


DELETE_RIGHTS = (Right("", "pods", "delete"), Right("", "pods/status", "patch"))
DEVICE_RIGHTS = tuple(
    Right("resource.k8s.io", one, "list") for one in ("resourceclaims", "resourceslices", "devicetaintrules")
)
REPLACE_RIGHTS = tuple(Right("apps", "deployments", verb) for verb in ("list", "patch"))
NODE_RIGHTS = (Right("", "nodes/status", "patch"),)
RIGHTS = (Right("", "pods/eviction", "create"), *DELETE_RIGHTS, *DEVICE_RIGHTS, *REPLACE_RIGHTS, *NODE_RIGHTS)
"""Rights without which the operator becomes ready all the same, so that their absence has to be reported.

It does not become ready without the other rights in ``deploy/base/rbac.yaml``, so they need no check.
"""


class MissingRights(msgspec.Struct):
    """The rights that the operator's service account lacks."""

    account: str
    missing: tuple[Right, ...] = ()


class DoctorSnapshot(Snapshot):
    """The input of the checks. Pods are kept in groups only."""

    namespace: str = ""
    """The namespace of the operator."""
    groups: Sequence[PodGroup] = ()
    mutating: Sequence[WebhookConfiguration] = ()
    validating: Sequence[WebhookConfiguration] = ()
    lease: LeaseObject | None = None
    lease_is_late: bool = False
    """True if the Lease was not renewed while it was watched."""
    operator: OperatorSettings | None = None
    built_in: BuiltIn = BuiltIn.PERHAPS
    built_in_for_devices: BuiltIn = BuiltIn.PERHAPS
    cancelled: Sequence[Happening] = ()
    """The operator's Events about evictions that were cancelled in the last hour."""
    webhook_problem: str = ""
    """Why no webhook answers, if that is known."""
    rights: MissingRights | None = None
    findings: Mapping[str, PolicyFindings] = {}
    """The findings of the inspection, by policy."""

    def add_inventory(self, inventory: Inventory) -> None:
        """Take the groups of an inventory that has all pods and templates."""
        inventory.close()
        self.groups = inventory.groups
        self.unreadable = [*self.unreadable, *inventory.unreadable]

"""The objects of a cluster at one moment, read from its API server or from files."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from taintwarden.api.status import PolicyStatus
from taintwarden.kube.wire.kinds import (
    BudgetObject,
    BudgetSpec,
    BudgetStatus,
    DeploymentObject,
    NamespaceObject,
    NodeObject,
    WorkloadObject,
)
from taintwarden_cli.rehearsal.node_requirements import FullPod
from taintwarden_cli.rehearsal.sources import DEVICES, Source, Subject
from taintwarden_devices.objects import DeviceClaimObject, SliceObject, TaintRuleObject


class _BudgetSpec(BudgetSpec, rename="camel"):
    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class _BudgetStatus(BudgetStatus, rename="camel"):
    expected_pods: int = 0


class FullBudget(BudgetObject):
    """A PodDisruptionBudget, with the fields that say if it can allow a disruption at all."""

    spec: _BudgetSpec = msgspec.field(default_factory=_BudgetSpec)
    status: _BudgetStatus | None = None


class Snapshot(msgspec.Struct):
    """Objects by kind; policies and profiles as they are stored, since they may be invalid.

    ``now`` is the time of the snapshot, in seconds since the epoch. ``problems`` states why sources cannot be read:
    their fields are empty.
    """

    now: float = 0.0
    server: str = ""
    problems: Mapping[Source, str] = {}
    unreadable: Sequence[tuple[Subject, str]] = ()
    """Objects that cannot be decoded, with the reason."""
    policies: Sequence[Mapping[str, Any]] = ()
    profiles: Sequence[Mapping[str, Any]] = ()
    undefined: Sequence[Source] = ()
    """Kinds of Taintwarden's API group that the cluster does not serve."""
    has_extender: bool = False
    """True if the scheduler extender is installed."""
    operator_problem: str = ""
    """Why the operator is not running, if it is not."""
    nodes: Sequence[NodeObject] = ()
    pods: Sequence[FullPod] = ()
    namespaces: Sequence[NamespaceObject] = ()
    workloads: Mapping[str, Sequence[WorkloadObject]] = {}
    """Controllers of pods by the plural of their kind."""
    budgets: Sequence[FullBudget] = ()
    slices: Sequence[SliceObject] = ()
    device_claims: Sequence[DeviceClaimObject] = ()
    taint_rules: Sequence[TaintRuleObject] = ()
    deployments: Sequence[DeploymentObject] = ()
    """The Deployments, which are read only if a stored policy asks for replacements."""
    devices_unserved: str = ""
    """Kinds about devices that the cluster does not serve, although a policy needs them."""

    def has_read(self, source: Source) -> bool:
        """True unless reading the source failed."""
        return source not in self.problems

    @property
    def devices_problem(self) -> str:
        """Why devices are not known, although a policy selects their taints, which then evict no pod."""
        return self.devices_unserved or next((self.problems[one] for one in DEVICES if one in self.problems), "")

    @property
    def selects_devices(self) -> bool:
        """True if a stored policy selects taints of devices."""
        return any(spec.get("devices") for spec in self._specs)

    @property
    def asks_replacements(self) -> bool:
        """True if a stored policy asks Deployments for replacements."""
        given = (spec.get("eviction") for spec in self._specs)
        return any(isinstance(one, Mapping) and "replaceFirst" in one for one in given)

    @property
    def _specs(self) -> list[Mapping[str, Any]]:
        return [spec for policy in self.policies if isinstance(spec := policy.get("spec"), Mapping)]


def status_of(stored: Mapping[str, Any]) -> PolicyStatus:
    """The status of a stored policy; an empty one if it cannot be read."""
    try:
        return msgspec.convert(stored.get("status") or {}, PolicyStatus)
    except msgspec.ValidationError:
        return PolicyStatus()


def is_kept_from_enforcing(stored: Mapping[str, Any]) -> bool:
    """True if this version of a policy in mode Enforce evicts no pods because the operator runs with --dry-run."""
    spec, metadata = stored.get("spec"), stored.get("metadata")
    if not isinstance(spec, Mapping) or not isinstance(metadata, Mapping) or spec.get("mode", "Enforce") != "Enforce":
        return False
    enforcing = status_of(stored).condition("Enforcing")
    return (
        enforcing is not None
        and (enforcing.status, enforcing.reason) == ("False", "DryRun")
        and enforcing.observed_generation == metadata.get("generation")
    )

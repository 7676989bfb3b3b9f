"""Policies as immutable values: which taints evict which pods, when, how, and within which limits."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from taintwarden.engine.limit_settings import Limits
from taintwarden.engine.model import DeviceEffect, Effect, Taint, ValueSource
from taintwarden.engine.selectors import EVERYTHING, LabelSelector
from taintwarden.fields import names
from taintwarden.fields.spec import (
    MAX_INT32,
    Seconds,
    Spec,
    checked,
    no_duplicates,
)


class Mode(StrEnum):
    """Action of a policy on a pod that is due."""

    ENFORCE = "Enforce"
    DRY_RUN = "DryRun"
    PAUSED = "Paused"


class ValueType(StrEnum):
    """The type that values of a selected taint must have; without one, the tolerations determine it.

    ``VERSION`` admits each version that the natural order can place. A semantic comparison requires a semantic version.
    """

    INTEGER = "Integer"
    VERSION = "Version"
    STRING = "String"


class TolerationSecondsMode(StrEnum):
    """Meaning of ``tolerationSeconds``: grace when a comparison no longer holds, or time for which it tolerates."""

    AFTER_VIOLATION = "AfterViolation"
    KUBERNETES = "Kubernetes"


class OnInvalidValue(StrEnum):
    """Effect of a taint value that cannot be compared: the last valid value decides, or the value evicts."""

    HOLD = "Hold"
    EVICT = "Evict"


class Method(StrEnum):
    """The API call that evicts a pod."""

    EVICT = "Evict"
    EVICT_THEN_DELETE = "EvictThenDelete"
    DELETE = "Delete"


class TaintSelector(msgspec.Struct, frozen=True):
    """Taints on which a policy acts. ``key`` is exact, ``prefix/*`` or ``*``. Only taints with ``effects`` evict."""

    key: str
    effects: tuple[str, ...] = (Effect.NO_EXECUTE,)
    value_type: ValueType | None = None
    placement: bool = False
    """True if labels of nodes repeat taints with the key, of any effect, so that the scheduler avoids these nodes."""
    source: ValueSource | None = None
    """Value of nodes from which taints with the key and ``effects`` are derived. None: nodes have these taints."""

    def specificity(self, taint: Taint) -> int:
        """Return how specific the selection of ``taint`` is: 0 none, 1 by ``*``, 2 and up by prefix, 1000 by exact key.

        Only an exact key selects a derived taint: a policy for all taints does not evict for what another one derives.
        """
        if taint.effect not in self.effects:
            return 0
        if taint.source:
            return 1_000 if self.key == taint.key else 0
        if self.key == "*":
            return 1
        if self.key.endswith("/*"):
            return 1 + len(self.key) if taint.key.startswith(self.key[:-1]) else 0
        return 1_000 if self.key == taint.key else 0


class DeviceTaintSelector(Spec, frozen=True):
    """Taints of devices on which a policy acts.

    ``key`` is as in :class:`TaintSelector`; ``driver`` is exact, None for every driver.
    """

    key: Annotated[str, checked(names.check_key_selector, max_length=names.MAX_KEY_LENGTH)]
    driver: Annotated[str, checked(names.check_driver, max_length=names.MAX_NAME_LENGTH)] | None = None
    effects: Annotated[tuple[DeviceEffect, ...], checked(no_duplicates, min_length=1, max_length=3)] = (
        DeviceEffect.NO_EXECUTE,
    )
    value_type: ValueType | None = None

    def specificity(self, taint: Taint) -> int:
        """Return how specific the selection of ``taint`` is: twice that of its key, and 1 more by driver."""
        origin = taint.origin
        if origin is None or self.driver not in (None, origin.device.driver):
            return 0
        of_key = TaintSelector(self.key, self.effects).specificity(Taint(taint.key, effect=taint.effect))
        return of_key and 2 * of_key + (self.driver is not None)


AnySelector = TaintSelector | DeviceTaintSelector


class Exclude(Spec, frozen=True):
    """Pods that a policy never evicts."""

    namespaces: Annotated[
        tuple[Annotated[str, checked(names.check_namespace, max_length=63)], ...],
        checked(no_duplicates, max_length=256),
    ] = ("kube-system",)
    priority_at_least: Annotated[int, Meta(ge=-(2**31), le=MAX_INT32)] | None = 2_000_000_000
    daemon_sets: bool = True
    respect_do_not_disrupt: bool = True
    respect_do_not_evict: bool = True
    bare: bool = False
    local_storage: bool = False


class Timing(Spec, frozen=True):
    """Settings of the time for which a pod may stay after a taint is no longer tolerated."""

    violation_grace_seconds: Seconds = 0
    stabilization_window_seconds: Seconds = 0
    toleration_seconds_mode: TolerationSecondsMode = TolerationSecondsMode.AFTER_VIOLATION
    on_invalid_value: OnInvalidValue = OnInvalidValue.HOLD


class OrderBy(StrEnum):
    """A criterion that orders due pods with deadlines in the same minute."""

    PRIORITY = "Priority"
    TOPOLOGY_SPREAD = "TopologySpread"


class ReplaceFirst(Spec, frozen=True):
    """Maximum seconds that a pod waits for a replacement from its Deployment. Then it is evicted as any other."""

    timeout_seconds: Annotated[int, Meta(ge=1, le=86_400)] = 300


class EvictionSettings(Spec, frozen=True):
    """Settings of evictions. ``grace_period_seconds`` None keeps that of the pod; ``replace_first`` None: off."""

    method: Method = Method.EVICT
    pdb_timeout_seconds: Seconds = 600
    grace_period_seconds: Seconds | None = None
    order: Annotated[tuple[OrderBy, ...], checked(no_duplicates, max_length=2)] = (
        OrderBy.PRIORITY,
        OrderBy.TOPOLOGY_SPREAD,
    )
    replace_first: ReplaceFirst | None = None


class Window(msgspec.Struct, frozen=True):
    """A period in which a policy may evict. It begins at each time of ``schedule`` (cron, in ``time_zone``)."""

    schedule: str
    duration_seconds: int
    time_zone: str = "UTC"


class Reclaim(Spec, frozen=True):
    """The nodes of a policy are removed ``deadline_seconds`` after the taint was added, regardless of limits."""

    deadline_seconds: Annotated[int, Meta(ge=1, le=86_400)]


class Policy(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """A validated TaintEvictionPolicy with its defaults filled in."""

    name: str
    uid: str = ""
    generation: int = 1
    created_at: float = 0.0
    mode: Mode = Mode.ENFORCE
    taints: tuple[TaintSelector, ...] = ()
    devices: tuple[DeviceTaintSelector, ...] = ()
    version_labels: tuple[str, ...] = ()
    """Keys of node labels with versions, which are repeated as numbers that node affinity can compare."""
    node_selector: LabelSelector = EVERYTHING
    pod_selector: LabelSelector = EVERYTHING
    namespace_selector: LabelSelector = EVERYTHING
    exclude: Exclude = Exclude()
    timing: Timing = Timing()
    eviction: EvictionSettings = EvictionSettings()
    limits: Limits = Limits()
    windows: tuple[Window, ...] = ()
    reclaim: Reclaim | None = None
    quarantine: bool = False
    """True if no toleration of a pod counts."""
    rehearses: bool = False
    """True in DryRun, even while paused. Such a policy has no placement; a paused one in Enforce keeps its own."""

    @property
    def replacement_seconds(self) -> float:
        """Seconds that a pod waits for a replacement that its Deployment was asked for."""
        settings = self.eviction.replace_first
        return 0.0 if settings is None else float(settings.timeout_seconds)

    def selector_for(self, taint: Taint) -> AnySelector | None:
        """Return the most specific selector of the policy that selects ``taint``; None if none does.

        A quarantine does not act on derived taints: it evicts for any value, and every node has one.
        """
        if self.quarantine and taint.source:
            return None
        selectors: tuple[AnySelector, ...] = self.taints if taint.origin is None else self.devices
        best = max(selectors, key=lambda selector: selector.specificity(taint), default=None)
        return best if best is not None and best.specificity(taint) else None


def labels_of(policies: Iterable[Policy]) -> tuple[str, ...]:
    """Return the keys in ``perWorkload.label`` of the policies, in order."""
    return tuple(sorted({key for policy in policies if (key := policy.limits.per_workload.label) is not None}))


def has_replace_first(policies: Iterable[Policy]) -> bool:
    """Return True if one of the policies asks Deployments for replacements of pods."""
    return any(policy.eviction.replace_first is not None for policy in policies)

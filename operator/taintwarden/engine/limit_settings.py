"""Limits of a policy as immutable values. Field names are those of ``spec.limits``."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from taintwarden.engine.model import Toleration
from taintwarden.engine.numeric import explain_integer
from taintwarden.fields import names
from taintwarden.fields.field_errors import FieldError
from taintwarden.fields.spec import (
    MAX_INT32,
    LabelKey,
    LabelValue,
    Rate,
    Spec,
    checked,
)

ALL_PERCENT = 100
MAX_PLACES = 500
"""Maximum nodes that may have a place, since the status names each of them."""


def share_of(most: int | str, number: int) -> int:
    """Return ``most``, or that percentage of ``number``: rounded down, and at least 1."""
    return max(1, most if isinstance(most, int) else number * int(most.removesuffix("%")) // ALL_PERCENT)


class PerNode(Spec, frozen=True):
    """Maximum number of pods of one node that may be evicted or terminating at once. None: no limit."""

    max_concurrent: Annotated[int, Meta(ge=1, le=10_000)] | None = None


class RateLimit(Spec, frozen=True):
    """Maximum rate at which each namespace or zone may lose pods. None: no limit. The burst is one second's worth."""

    evictions_per_second: Rate | None = None


DEFAULT_UNAVAILABLE = "25%"


class PerWorkload(Spec, frozen=True):
    """Maximum number, or percentage, of its pods that a workload may lack. None: 25 %.

    ``label``: one of the pods of a namespace with the same value of this label may be missing, whatever their owners.
    """

    max_unavailable: (
        Annotated[int, Meta(ge=1, le=1_000_000)] | Annotated[str, checked(names.check_percentage)] | None
    ) = None
    label: Annotated[str, checked(names.check_label_key, max_length=names.MAX_KEY_LENGTH)] | None = None

    @property
    def is_limit(self) -> bool:
        """True if there may be a workload that must keep some of its pods."""
        return self.label is not None or self.max_unavailable != f"{ALL_PERCENT}%"

    def of(self, pods: int) -> int:
        """Return the number of pods that a workload of ``pods`` may lack: at least 1, percentages are rounded down."""
        return share_of(self.max_unavailable or DEFAULT_UNAVAILABLE, pods)

    def __str__(self) -> str:
        return str(self.max_unavailable or DEFAULT_UNAVAILABLE)


ALL_PODS = PerWorkload(f"{ALL_PERCENT}%")


class UnhealthyOperator(StrEnum):
    """Comparison of the value of a taint, on the left, as in a toleration."""

    EXISTS = "Exists"
    EQUAL = "Equal"
    GT = "Gt"
    LT = "Lt"


class UnhealthyTaint(Spec, frozen=True):
    """A taint of an unhealthy node: one that a toleration with these fields would tolerate."""

    key: LabelKey
    operator: UnhealthyOperator = UnhealthyOperator.EXISTS
    value: LabelValue = ""


def check_unhealthy(taint: UnhealthyTaint) -> Iterator[FieldError]:
    """Require no value for Exists, and an integer for Gt and Lt, as in a toleration."""
    if taint.operator is UnhealthyOperator.EXISTS and taint.value:
        yield FieldError(
            "value", taint.value, "must be empty when operator is Exists", "remove it, or use another operator"
        )
    elif taint.operator in (UnhealthyOperator.GT, UnhealthyOperator.LT) and (fault := explain_integer(taint.value)):
        yield FieldError("value", taint.value, fault)


class ZoneHealth(Spec, frozen=True):
    """The taints of unhealthy nodes, and the rate of evictions in zones with many of these nodes.

    The rate ``evictions_per_second`` applies to a zone if the share of its unhealthy nodes is at least ``threshold``.
    """

    unhealthy: Annotated[
        tuple[Annotated[UnhealthyTaint, checked(check_unhealthy)], ...], Meta(min_length=1, max_length=16)
    ]
    threshold: Annotated[float, Meta(ge=0.00001, le=1)] = 0.55
    evictions_per_second: Rate = 1.0

    @property
    def tolerations(self) -> tuple[Toleration, ...]:
        """Tolerations for taints of unhealthy nodes. A node is unhealthy if one of them tolerates one of its taints."""
        return tuple(Toleration(taint.key, taint.operator, taint.value) for taint in self.unhealthy)


class GuardAction(StrEnum):
    """Effect of a tripped guard: hold all evictions, let its allowance leave in each window, or only report."""

    HALT = "Halt"
    PACE = "Pace"
    REPORT = "Report"


MIN_PODS = 50
ALWAYS_ALLOWED_PODS = 5
"""Minimum allowance of a small cluster without ``minPods``, so that a single small node does not trip the guard."""


class GuardSettings(Spec, frozen=True):
    """The mass-eviction guard: the maximum number of pods that may be evicted in a window of time.

    A window below a minute would write the status continuously.
    """

    max_percent: Annotated[int, Meta(ge=1, le=100)] = 20
    min_pods: Annotated[int, Meta(ge=0, le=MAX_INT32)] | None = None
    """Number of pods that may be evicted in any case, up to ``max_pods``. None: 50, at most half of all, at least 5."""
    max_pods: Annotated[int, Meta(ge=1, le=MAX_INT32)] | None = None
    """Maximum number of pods, whatever the percentage. None: the percentage alone limits."""
    window_seconds: Annotated[int, Meta(ge=60, le=86_400)] = 600
    settle_seconds: Annotated[int, Meta(ge=0, le=300)] = 2
    action: GuardAction = GuardAction.HALT

    @property
    def is_limit(self) -> bool:
        """True if the guard may trip: at 100 % there is none."""
        return self.max_percent < ALL_PERCENT

    def limit(self, population: int) -> int:
        """Return the allowance: the number of ``population`` pods that may be evicted in one window.

        Without ``min_pods`` it is at most half of a small cluster, which would have no guard otherwise, but at least
        ``ALWAYS_ALLOWED_PODS``. It is never more than ``max_pods``.
        """
        return self._capped(max(self.at_least(population), population * self.max_percent // 100))

    def at_least(self, population: int) -> int:
        """Return the number of pods that may be evicted even if they are more than the percentage."""
        if self.min_pods is not None:
            return self._capped(self.min_pods)
        return self._capped(min(MIN_PODS, max(ALWAYS_ALLOWED_PODS, population // 2)))

    def _capped(self, pods: int) -> int:
        return pods if self.max_pods is None else min(pods, self.max_pods)


FIRST_BACKOFF_SECONDS = 60.0
"""Seconds of the first delay of a workload that bounces, unless the maximum of the policy is shorter."""
BOUNCING_EVICTIONS, BOUNCING_SECONDS = 3, 600.0
"""Evictions in a row from one node that make a workload bounce, and seconds after a delay until the row ends."""


class BounceSettings(Spec, frozen=True):
    """Maximum delay, in seconds, of evictions of a workload that bounces on a node. 0: evictions have no delay."""

    max_backoff_seconds: Annotated[int, Meta(ge=0, le=86_400)] = 3600

    @property
    def is_limit(self) -> bool:
        """True if evictions are delayed."""
        return self.max_backoff_seconds > 0

    def backoff(self, evictions: int) -> float:
        """Return the seconds between the last of ``evictions`` in a row and the next one. It doubles each time."""
        if evictions < BOUNCING_EVICTIONS:
            return 0.0
        doubled = FIRST_BACKOFF_SECONDS * 2.0 ** min(evictions - BOUNCING_EVICTIONS, 16)
        return min(float(self.max_backoff_seconds), doubled)


NO_BACKOFF = BounceSettings(0)


def check_guard(guard: GuardSettings) -> Iterator[FieldError]:
    """Reject a maximum below the minimum."""
    if guard.max_pods is not None and guard.min_pods is not None and guard.max_pods < guard.min_pods:
        yield FieldError("maxPods", guard.max_pods, f"must be greater than or equal to minPods ({guard.min_pods})")


class Limits(Spec, frozen=True):
    """Limits on the evictions of a policy. Each of them is switched off by a value of its own."""

    evictions_per_second: Rate = 10.0
    """Maximum rate of the policy. ``MAX_RATE``: no limit."""
    burst: Annotated[int, Meta(ge=1, le=1_000_000)] = 20
    concurrent_nodes: (
        Annotated[int, Meta(ge=1, le=MAX_PLACES)] | Annotated[str, checked(names.check_percentage)] | None
    ) = None
    """Maximum number of nodes that may lose pods at once, or percentage of the selected nodes. None: no limit."""
    per_node: PerNode = PerNode()
    per_namespace: RateLimit = RateLimit()
    per_zone: RateLimit = RateLimit()
    per_workload: PerWorkload = PerWorkload()
    zone_health: ZoneHealth | None = None
    guard: Annotated[GuardSettings, checked(check_guard)] = GuardSettings()
    bounce: BounceSettings = BounceSettings()

"""The data types of the engine: taints, tolerations, pods, nodes, policies and profiles as immutable values.

Times are seconds since the Unix epoch as floats; names follow those of Kubernetes fields.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Annotated, NamedTuple, NewType, TypeVar

import msgspec
from msgspec import Meta

from taintwarden.engine.affinity import NodeAffinity
from taintwarden.engine.numeric import explain_integer
from taintwarden.engine.selectors import EVERYTHING, LabelSelector
from taintwarden.fields import names
from taintwarden.fields.field_errors import FieldError
from taintwarden.fields.spec import (
    MAX_INT32,
    LabelKey,
    LabelValue,
    Rate,
    Seconds,
    Spec,
    checked,
    no_duplicates,
)

WallTime = NewType("WallTime", float)
"""Seconds since the Unix epoch. Only deadlines that come from objects are wall time: the clock may be stepped."""
MonotonicTime = NewType("MonotonicTime", float)
"""Seconds on a clock that is never stepped. Back-off, settling, rates and time-outs run on it."""
Time = TypeVar("Time", WallTime, MonotonicTime, float)


def later(at: Time, seconds: float) -> Time:
    """The time ``seconds`` after ``at``, on the same clock."""
    return at + seconds  # type: ignore[return-value] # the sum of a time and seconds is one on the same clock


class Instant(msgspec.Struct, frozen=True, gc=False):
    """One reading of both clocks: the only place that converts between them."""

    wall: WallTime
    monotonic: MonotonicTime

    def monotonic_at(self, wall: float) -> MonotonicTime:
        """The monotonic time at ``wall``, if the wall clock is not stepped until then."""
        return MonotonicTime(self.monotonic + wall - self.wall)

    def wall_at(self, monotonic: MonotonicTime) -> WallTime:
        """The wall time at ``monotonic``, if the wall clock is not stepped until then."""
        return WallTime(self.wall + monotonic - self.monotonic)


class Effect(StrEnum):
    """What a taint does to pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class DeviceEffect(StrEnum):
    """The effects of a device's taint. Kubernetes evicts because of ``NoExecute`` alone."""

    NO_EXECUTE = "NoExecute"
    NO_SCHEDULE = "NoSchedule"
    NONE = "None"


class DeviceId(NamedTuple):
    """The name of a device: unique in its pool, which is unique for its driver. The pool may have slashes."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return "/".join(self)


class DeviceOrigin(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """Which device has a taint, and from where.

    Attributes:
        device: its name.
        rule: the DeviceTaintRule that adds the taint; empty: the driver wrote it into its ResourceSlice.
        number: among the taints with the same key and effect from there.

    """

    device: DeviceId
    rule: str = ""
    number: int = 0

    @property
    def name(self) -> str:
        """What distinguishes it from other origins."""
        rule = f" by {self.rule}" if self.rule else ""
        return f"{self.device}{rule} #{self.number}" if self.number else f"{self.device}{rule}"


class Taint(msgspec.Struct, frozen=True, gc=False):
    """A taint without its time: equal taints of different nodes are equal."""

    key: str
    value: str = ""
    effect: str = Effect.NO_EXECUTE
    source: str = ""
    """What of the node it is derived from; empty: it is a taint of the node's spec, which Kubernetes knows as well."""
    origin: DeviceOrigin | None = None
    """The device that has it; None: the node has it."""

    def __str__(self) -> str:
        text = f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"
        return text if self.origin is None else f"{text} of device {self.origin.device}"


Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""A whole number as the API of Kubernetes has it. JSON may have 400 digits, which no float can hold."""


class Toleration(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """One entry of ``spec.tolerations``, or of an extended list, which adds ``violationGraceSeconds``."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None
    violation_grace_seconds: Int64 | None = None
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        subject = self.key or "*"
        operator = self.operator or "Equal"  # as Kubernetes takes none
        wanted = f"({', '.join(map(repr, self.values))})" if self.values else repr(self.value)
        comparison = f"{subject} {operator}" if operator == "Exists" else f"{subject} {operator} {wanted}"
        text = f"{comparison}:{self.effect}" if self.effect else comparison
        return text if self.toleration_seconds is None else f"{text} for {self.toleration_seconds}s"


class Gates(msgspec.Struct, frozen=True):
    """Which families of operators are enabled (process settings)."""

    numeric_operators: bool = True
    semver_operators: bool = True


class Mode(StrEnum):
    """What a policy does with a pod that is due."""

    ENFORCE = "Enforce"
    DRY_RUN = "DryRun"
    PAUSED = "Paused"


class ValueType(StrEnum):
    """The type that values of a selected taint must have; without one, the tolerations determine it.

    A version is any that has a place in the natural order. To pods that compare semantic versions it has to be one.
    """

    INTEGER = "Integer"
    VERSION = "Version"
    STRING = "String"


class NodeInfo(StrEnum):
    """The fields of ``status.nodeInfo`` of a node that say what runs on it, rather than which node it is."""

    ARCHITECTURE = "architecture"
    CONTAINER_RUNTIME_VERSION = "containerRuntimeVersion"
    KERNEL_VERSION = "kernelVersion"
    KUBE_PROXY_VERSION = "kubeProxyVersion"
    KUBELET_VERSION = "kubeletVersion"
    OPERATING_SYSTEM = "operatingSystem"
    OS_IMAGE = "osImage"


class SourceKind(StrEnum):
    """Where a node carries a value."""

    NODE_INFO = "nodeInfo"
    CONDITION = "condition"
    LABEL = "label"
    ANNOTATION = "annotation"


class ValueSource(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """A value that a node carries anyway: a field, or a condition, label or annotation of this name."""

    kind: SourceKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind.value} {self.name}"


class SourceValue(msgspec.Struct, frozen=True, gc=False):
    """The value of a source on a node. ``since``: when its writer says that it began, if it does."""

    text: str
    since: float | None = None


class TolerationSecondsMode(StrEnum):
    """``tolerationSeconds`` of a comparison: the grace once it no longer holds, or how long it tolerates the taint."""

    AFTER_VIOLATION = "AfterViolation"
    KUBERNETES = "Kubernetes"


class OnInvalidValue(StrEnum):
    """Whether a taint value that cannot be compared keeps the last valid verdict or evicts."""

    HOLD = "Hold"
    EVICT = "Evict"


class Method(StrEnum):
    """Which API call evicts a pod."""

    EVICT = "Evict"
    EVICT_THEN_DELETE = "EvictThenDelete"
    DELETE = "Delete"


class TaintSelector(msgspec.Struct, frozen=True):
    """Which taints a policy acts on: ``key`` is exact, ``prefix/*`` or ``*``. Only those with ``effects`` evict."""

    key: str
    effects: tuple[str, ...] = (Effect.NO_EXECUTE,)
    value_type: ValueType | None = None
    placement: bool = False
    """Whether labels of nodes repeat taints with the key, of any effect, so that the scheduler avoids these nodes."""
    source: ValueSource | None = None
    """The taints with the key and ``effects`` are derived from this."""

    def specificity(self, taint: Taint) -> int:
        """How specifically this selects ``taint``: 0 not at all, 1 by ``*``, 2 and up by prefix, 1000 by exact key.

        Only an exact key selects a derived taint: a policy for all taints does not evict for what another one derives.
        """
        if taint.effect not in self.effects or taint.origin is not None:
            return 0
        if taint.source:
            return 1_000 if self.key == taint.key else 0
        if self.key == "*":
            return 1
        if self.key.endswith("/*"):
            return 1 + len(self.key) if taint.key.startswith(self.key[:-1]) else 0
        return 1_000 if self.key == taint.key else 0


class DeviceTaintSelector(Spec, frozen=True):
    """Which taints of devices a policy acts on.

    ``key`` is as in :class:`TaintSelector`; ``driver`` is exact, None for every driver.
    """

    key: Annotated[str, checked(names.check_key_selector, max_length=names.MAX_KEY_LENGTH)]
    driver: Annotated[str, checked(names.check_driver, max_length=names.MAX_NAME_LENGTH)] | None = None
    effects: Annotated[tuple[DeviceEffect, ...], checked(no_duplicates, min_length=1, max_length=3)] = (
        DeviceEffect.NO_EXECUTE,
    )
    value_type: ValueType | None = None

    def specificity(self, taint: Taint) -> int:
        """How specifically this selects ``taint``, as in :class:`TaintSelector`; a driver makes it more specific."""
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
    """How long a pod may stay once a taint is no longer tolerated."""

    violation_grace_seconds: Seconds = 0
    stabilization_window_seconds: Seconds = 0
    toleration_seconds_mode: TolerationSecondsMode = TolerationSecondsMode.AFTER_VIOLATION
    on_invalid_value: OnInvalidValue = OnInvalidValue.HOLD


class OrderBy(StrEnum):
    """A criterion that orders due pods of the same urgency."""

    PRIORITY = "Priority"
    TOPOLOGY_SPREAD = "TopologySpread"


class ReplaceFirst(Spec, frozen=True):
    """How long a pod waits for a replacement that its Deployment starts before it is evicted as any other."""

    timeout_seconds: Annotated[int, Meta(ge=1, le=86_400)] = 300


class EvictionSettings(Spec, frozen=True):
    """How a pod is evicted. ``grace_period_seconds`` None keeps the pod's own; ``replace_first`` None asks for none."""

    method: Method = Method.EVICT
    pdb_timeout_seconds: Seconds = 600
    grace_period_seconds: Seconds | None = None
    order: Annotated[tuple[OrderBy, ...], checked(no_duplicates, max_length=2)] = (
        OrderBy.PRIORITY,
        OrderBy.TOPOLOGY_SPREAD,
    )
    replace_first: ReplaceFirst | None = None


ALL_PERCENT = 100
MAX_PLACES = 500
"""Maximum nodes that may have a place, since the status names each of them."""


def share_of(most: int | str, number: int) -> int:
    """``most``, or that percentage of ``number``: rounded down, and at least 1."""
    return max(1, most if isinstance(most, int) else number * int(most.removesuffix("%")) // ALL_PERCENT)


class PerNode(Spec, frozen=True):
    """How many pods of one node may be evicted or terminating at once. None: no limit."""

    max_concurrent: Annotated[int, Meta(ge=1, le=10_000)] | None = None


class RateLimit(Spec, frozen=True):
    """How fast each namespace, or each zone, may lose pods. None: no limit. The burst is one second's worth."""

    evictions_per_second: Rate | None = None


DEFAULT_UNAVAILABLE = "25%"


class PerWorkload(Spec, frozen=True):
    """How many of its pods a workload may lack: a number, or a percentage of them. None: 25 %.

    ``label``: the pods of a namespace with the same value of this label may lack one, whatever their controllers.
    """

    max_unavailable: (
        Annotated[int, Meta(ge=1, le=1_000_000)] | Annotated[str, checked(names.check_percentage)] | None
    ) = None
    label: Annotated[str, checked(names.check_label_key, max_length=names.MAX_KEY_LENGTH)] | None = None

    @property
    def is_limit(self) -> bool:
        """True if some workload may lack fewer than all."""
        return self.label is not None or self.max_unavailable != f"{ALL_PERCENT}%"

    def of(self, pods: int) -> int:
        """The number of pods out of ``pods``: percentages are rounded down, and the result is at least 1."""
        return share_of(self.max_unavailable or DEFAULT_UNAVAILABLE, pods)

    def __str__(self) -> str:
        return str(self.max_unavailable or DEFAULT_UNAVAILABLE)


ALL_PODS = PerWorkload(f"{ALL_PERCENT}%")


class UnhealthyOperator(StrEnum):
    """How the value of a taint is compared, as in a toleration: the taint is on the left."""

    EXISTS = "Exists"
    EQUAL = "Equal"
    GT = "Gt"
    LT = "Lt"


class UnhealthyTaint(Spec, frozen=True):
    """A taint that means that its node is unhealthy: what a toleration with these fields would tolerate."""

    key: LabelKey
    operator: UnhealthyOperator = UnhealthyOperator.EXISTS
    value: LabelValue = ""


def check_unhealthy(taint: UnhealthyTaint) -> Iterator[FieldError]:
    """As in a toleration: Exists takes no value, and Gt and Lt compare integers."""
    if taint.operator is UnhealthyOperator.EXISTS and taint.value:
        yield FieldError(
            "value", taint.value, "must be empty when operator is Exists", "remove it, or use another operator"
        )
    elif taint.operator in (UnhealthyOperator.GT, UnhealthyOperator.LT) and (fault := explain_integer(taint.value)):
        yield FieldError("value", taint.value, fault)


class ZoneHealth(Spec, frozen=True):
    """Which taints mean that a node is unhealthy, and the rate in zones with many such nodes.

    From the ``threshold`` on, a share of the nodes, pods leave a zone at ``evictions_per_second``.
    """

    unhealthy: Annotated[
        tuple[Annotated[UnhealthyTaint, checked(check_unhealthy)], ...], Meta(min_length=1, max_length=16)
    ]
    threshold: Annotated[float, Meta(ge=0.00001, le=1)] = 0.55
    evictions_per_second: Rate = 1.0

    @property
    def tolerations(self) -> tuple[Toleration, ...]:
        """A node is unhealthy if one of these would tolerate one of its taints."""
        return tuple(Toleration(one.key, one.operator, one.value) for one in self.unhealthy)


class GuardAction(StrEnum):
    """What a tripped guard does: hold all evictions, let its allowance leave in each window, or only report."""

    HALT = "Halt"
    PACE = "Pace"
    REPORT = "Report"


ROUNDING_SECONDS = 1.0
"""Times in objects have whole seconds, and are taken as the end of that second."""
MIN_PODS = 50
ALWAYS_ALLOWED_PODS = 5
"""The lower bound of half of a small cluster, so that a single small node does not trip the guard."""


class GuardSettings(Spec, frozen=True):
    """The mass-eviction guard: how many pods may be evicted in a window of time.

    A window below a minute would write the status continuously.
    """

    max_percent: Annotated[int, Meta(ge=1, le=100)] = 20
    min_pods: Annotated[int, Meta(ge=0, le=MAX_INT32)] | None = None
    """None: 50, but no more than half of the population."""
    max_pods: Annotated[int, Meta(ge=1, le=MAX_INT32)] | None = None
    """None: the percentage alone limits."""
    window_seconds: Annotated[int, Meta(ge=60, le=86_400)] = 600
    settle_seconds: Annotated[int, Meta(ge=0, le=300)] = 2
    action: GuardAction = GuardAction.HALT

    @property
    def is_limit(self) -> bool:
        """Whether it may trip: at 100 % there is no guard."""
        return self.max_percent < ALL_PERCENT

    def limit(self, population: int) -> int:
        """How many of ``population`` pods may be evicted in one window.

        Without ``min_pods`` at most half of a small cluster, which would otherwise have no guard; but at least
        ``ALWAYS_ALLOWED_PODS``. Never more than ``max_pods``.
        """
        return self._capped(max(self.at_least(population), population * self.max_percent // 100))

    def at_least(self, population: int) -> int:
        """How many pods may be evicted even if they are more than the percentage."""
        if self.min_pods is not None:
            return self._capped(self.min_pods)
        return self._capped(min(MIN_PODS, max(ALWAYS_ALLOWED_PODS, population // 2)))

    def _capped(self, pods: int) -> int:
        return pods if self.max_pods is None else min(pods, self.max_pods)


FIRST_BACKOFF_SECONDS = 60.0
"""The first delay of a workload that bounces, unless the policy's maximum is shorter."""


BOUNCING_EVICTIONS, BOUNCING_SECONDS = 3, 600.0
"""A workload bounces that was evicted from a node so often in a row, each time within so long of the time before."""


class BounceSettings(Spec, frozen=True):
    """How long the next evictions of a workload that bounces on a node are delayed at most. 0: not at all."""

    max_backoff_seconds: Annotated[int, Meta(ge=0, le=86_400)] = 3600

    @property
    def is_limit(self) -> bool:
        """Whether they are delayed."""
        return self.max_backoff_seconds > 0

    def backoff(self, evictions: int) -> float:
        """Seconds from the last of ``evictions`` in a row to the next: doubling, 0 while there are too few."""
        if evictions < BOUNCING_EVICTIONS:
            return 0.0
        doubled = FIRST_BACKOFF_SECONDS * 2.0 ** min(evictions - BOUNCING_EVICTIONS, 16)
        return min(float(self.max_backoff_seconds), doubled)


NO_BACKOFF = BounceSettings(0)


def check_guard(guard: GuardSettings) -> Iterator[FieldError]:
    """A ceiling below the floor."""
    if guard.max_pods is not None and guard.min_pods is not None and guard.max_pods < guard.min_pods:
        yield FieldError("maxPods", guard.max_pods, f"must be greater than or equal to minPods ({guard.min_pods})")


class Limits(Spec, frozen=True):
    """How fast a policy may evict. A limit is switched off by its own value."""

    evictions_per_second: Rate = 10.0
    """``MAX_RATE``: no limit."""
    burst: Annotated[int, Meta(ge=1, le=1_000_000)] = 20
    concurrent_nodes: (
        Annotated[int, Meta(ge=1, le=MAX_PLACES)] | Annotated[str, checked(names.check_percentage)] | None
    ) = None
    """How many nodes may lose pods at once: a number, or a percentage of the selected nodes. None: no limit."""
    per_node: PerNode = PerNode()
    per_namespace: RateLimit = RateLimit()
    per_zone: RateLimit = RateLimit()
    per_workload: PerWorkload = PerWorkload()
    zone_health: ZoneHealth | None = None
    guard: Annotated[GuardSettings, checked(check_guard)] = GuardSettings()
    bounce: BounceSettings = BounceSettings()


class Window(msgspec.Struct, frozen=True):
    """When a policy may evict: from each time that ``schedule`` (cron, in ``time_zone``) names, for ``duration``."""

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
    """Labels of nodes whose values are versions: repeated as numbers, which node affinity can compare."""
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
    """No toleration of a pod counts, of whatever source."""
    rehearses: bool = False
    """It is in DryRun, also while it is paused: then it places no pods. Who is placed during another pause stays."""

    @property
    def replacement_seconds(self) -> float:
        """Seconds that a pod waits for a replacement that its Deployment was asked for."""
        settings = self.eviction.replace_first
        return 0.0 if settings is None else float(settings.timeout_seconds)

    def selector_for(self, taint: Taint) -> AnySelector | None:
        """The most specific of this policy's selectors for ``taint``, if any selects it.

        A quarantine acts on no derived taint: it evicts whatever the value is, and every node has one.
        """
        if self.quarantine and taint.source:
            return None
        selectors: tuple[AnySelector, ...] = self.taints if taint.origin is None else self.devices
        best = max(selectors, key=lambda selector: selector.specificity(taint), default=None)
        return best if best is not None and best.specificity(taint) else None


def labels_of(policies: Iterable[Policy]) -> tuple[str, ...]:
    """The keys in ``perWorkload.label`` of these policies, in order."""
    return tuple(sorted({key for one in policies if (key := one.limits.per_workload.label) is not None}))


def ask_replacements(policies: Iterable[Policy]) -> bool:
    """Return True if one of these policies asks Deployments for replacements of pods."""
    return any(one.eviction.replace_first is not None for one in policies)


class SharedTolerations(msgspec.Struct, frozen=True, cache_hash=True, weakref=True):
    """The tolerations of profiles, by the names of the profiles: one object for all pods that these select."""

    entries: tuple[Toleration, ...] = ()


NOTHING_SHARED = SharedTolerations()


class Tolerations(msgspec.Struct, frozen=True, cache_hash=True, weakref=True):
    """All tolerations of a pod: its own, then the extended ones of its annotation, then those of its profiles by name.

    Extended tolerations *narrow*: for a taint key that they name, only they count. So a native ``Exists`` satisfies the
    scheduler, the kubelet and the built-in controller, while ``Gt 950`` in the annotation decides.
    """

    native: tuple[Toleration, ...] = ()
    annotated: tuple[Toleration, ...] = ()
    shared: SharedTolerations = NOTHING_SHARED

    @property
    def extended(self) -> tuple[Toleration, ...]:
        """The tolerations of the annotation, then those of profiles."""
        return self.annotated + self.shared.entries

    def relevant_to(self, taint_key: str) -> tuple[Toleration, ...]:
        """The tolerations that count for a taint with this key, in the order they are tried."""
        extended = speaking_of(taint_key, self.extended)
        return extended if names_key(taint_key, extended) else self.native + extended


def speaking_of(taint_key: str, entries: tuple[Toleration, ...]) -> tuple[Toleration, ...]:
    """The tolerations among these for a taint with this key, or with any key."""
    return tuple(entry for entry in entries if entry.key in ("", taint_key))


def names_key(taint_key: str, entries: tuple[Toleration, ...]) -> bool:
    """Whether one of these names the key."""
    return any(entry.key == taint_key for entry in entries)


class Profile(msgspec.Struct, frozen=True, cache_hash=True):
    """A validated TolerationProfile: what is added to the pods of its namespace that ``selector`` selects."""

    namespace: str
    name: str
    selector: LabelSelector
    tolerations: tuple[Toleration, ...]
    affinity: NodeAffinity | None = None

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Owner(msgspec.Struct, frozen=True):
    """The controlling owner of a pod, which replaces it. ``kind`` includes the group unless Kubernetes defines it."""

    kind: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class SpreadConstraint(msgspec.Struct, frozen=True):
    """A topology spread constraint of a pod: which pods are counted together, and by which label of nodes.

    ``selector`` is ``labelSelector`` merged with the pod's values of ``matchLabelKeys`` (KEP-3243).
    """

    topology_key: str
    selector: LabelSelector


WorkloadKey = tuple[str, str]
"""Namespace and UID of the controlling owner of pods."""


class DeviceUse(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """A device that is allocated to a pod by a claim, and what that claim tolerates of its taints."""

    device: DeviceId
    tolerations: tuple[Toleration, ...] = ()


class SchedulingGroup(msgspec.Struct, frozen=True):
    """The PodGroup of pods. ``claims``: the names of those that the pods use, of which some may be the group's."""

    name: str
    claims: tuple[str, ...]


class PodClass(msgspec.Struct, frozen=True, weakref=True, eq=False):
    """The fields that pods of one workload revision have in common. They share one object, from the interner."""

    namespace: str
    labels: dict[str, str]
    tolerations: Tolerations
    priority: int = 0
    daemon_set: bool = False
    do_not_evict: bool = False
    """``taintwarden.io/do-not-evict``: the pod opts out of evictions."""
    do_not_disrupt: bool = False
    """Karpenter's or the cluster autoscaler's annotation: a policy may choose to ignore it."""
    owner: Owner | None = None
    spread: tuple[SpreadConstraint, ...] = ()
    grace_seconds: int = 30
    """``terminationGracePeriodSeconds``."""
    protected_seconds: float = 0.0
    """For so long after its binding the pod opts out of disruptions, as with ``do_not_disrupt``."""
    local_storage: bool = False
    """It has data on its node: a volume ``hostPath``, or an ``emptyDir`` that is not in memory."""
    group: SchedulingGroup | None = None
    """Of pods with claims."""
    devices: tuple[DeviceUse, ...] = ()
    """The devices that its claims have, as far as a policy selects taints of devices."""

    @property
    def workload(self) -> WorkloadKey | None:
        """The workload whose pods count together; None without a controlling owner.

        An owner is in the namespace of its pods, but the API server does not check that: a pod of another namespace
        can name the same UID, and does not belong to the workload.
        """
        return None if self.owner is None else (self.namespace, self.owner.uid)


class Pod(msgspec.Struct, frozen=True, gc=False, eq=False):
    """A running pod that is bound to a node. Finished, terminating and mirror pods are not represented."""

    uid: str
    name: str
    node: str
    shared: PodClass
    bound_at: float
    resource_version: int
    ready: bool = False
    running: bool = True
    """False while its containers have not started (phase Pending): the API server then checks no budget for it."""

    @property
    def namespace(self) -> str:
        """The namespace, which all pods of the class share."""
        return self.shared.namespace

    def __str__(self) -> str:
        return f"{self.shared.namespace}/{self.name}"


class Revision(NamedTuple):
    """The Deployment that controls a ReplicaSet, by UID, and ``restartedAt`` in the ReplicaSet's pod template."""

    deployment: str
    restarted_at: str


class Deployment(msgspec.Struct, frozen=True):
    """A Deployment as ``eviction.replaceFirst`` needs it."""

    namespace: str
    name: str
    uid: str
    version: str = ""
    """Its resourceVersion."""
    can_replace: bool = False
    """True if a restart starts its only pod's replacement before it removes the pod, and none is in progress."""
    restarted_at: str = ""
    """The annotation ``kubectl.kubernetes.io/restartedAt`` of its pod template."""


class Budget(msgspec.Struct, frozen=True):
    """A PodDisruptionBudget with the status from its controller.

    ``selector`` None: it cannot be read, so it may select every pod of the namespace. ``observed``: the status is of
    the newest version. ``healthy_enough``: pods that are not Ready may be evicted although ``allowed`` is 0.
    """

    namespace: str
    name: str
    selector: LabelSelector | None
    allowed: int
    observed: bool = True
    healthy_enough: bool = False
    problem: str = ""
    """Why its controller cannot compute it, if it cannot: then it allows nothing."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def why_none(self) -> str:
        """Why it allows no disruption, if it allows none: what follows its name in a sentence."""
        if self.selector is None:
            return "has a selector that cannot be parsed"
        if self.problem:
            return cannot_compute(self.problem)
        return "allows no disruption now" if self.observed else "was not looked at by its controller yet"


def cannot_compute(problem: str) -> str:
    """The same of a budget whose controller fails."""
    return f"allows no disruption, as its controller cannot compute it ({problem})"


def several_budgets(names: Iterable[str]) -> str:
    """Why a pod is not evicted that several budgets select."""
    return f"the API server refuses a pod with more than one PodDisruptionBudget ({', '.join(names)})"


class NodeCondition(msgspec.Struct, frozen=True, gc=False):
    """A condition of a node, without its times."""

    status: str
    reason: str
    message: str

    @property
    def is_true(self) -> bool:
        """True if it holds."""
        return self.status == "True"


class Node(msgspec.Struct, frozen=True, gc=False):
    """A node as in its last event. ``taints`` has each taint with its ``timeAdded``, if that is set."""

    name: str
    uid: str
    labels: dict[str, str]
    taints: tuple[tuple[Taint, float | None], ...]
    resource_version: int
    history: str = ""
    """The text of the ``taint-history`` annotation."""
    do_not_evict: bool = False
    """``taintwarden.io/do-not-evict``: no pod is evicted from the node."""
    values: dict[ValueSource, SourceValue] = {}
    """Of the sources that policies name, those that have a value here."""
    drained: NodeCondition | None = None
    """The condition ``taintwarden.io/Drained``, if the operator writes it."""

    @property
    def is_drained(self) -> bool:
        """True if the condition says so."""
        return self.drained is not None and self.drained.is_true

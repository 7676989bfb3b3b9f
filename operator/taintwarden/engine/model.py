"""Objects of the cluster as immutable values: taints, tolerations, profiles, pods, controllers, budgets and nodes.

Times are seconds since the Unix epoch as floats; names follow those of Kubernetes fields.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, NamedTuple, NewType, TypeVar

import msgspec

from taintwarden.engine.affinity import NodeAffinity
from taintwarden.engine.selectors import LabelSelector

WallTime = NewType("WallTime", float)
"""Seconds since the Unix epoch. Used only for deadlines from objects, since the clock may be stepped."""
MonotonicTime = NewType("MonotonicTime", float)
"""Seconds on a clock that is never stepped. Used for delays, rates and timeouts."""
Time = TypeVar("Time", WallTime, MonotonicTime, float)


def later(at: Time, seconds: float) -> Time:
    """Return the time ``seconds`` after ``at``, on the same clock."""
    return at + seconds  # type: ignore[return-value] # the sum of a time and seconds is one on the same clock


class Instant(msgspec.Struct, frozen=True, gc=False):
    """One reading of both clocks. Only its methods convert between them."""

    wall: WallTime
    monotonic: MonotonicTime

    def monotonic_at(self, wall: float) -> MonotonicTime:
        """Return the monotonic time at ``wall``, provided that the wall clock is not stepped until then."""
        return MonotonicTime(self.monotonic + wall - self.wall)

    def wall_at(self, monotonic: MonotonicTime) -> WallTime:
        """Return the wall time at ``monotonic``, provided that the wall clock is not stepped until then."""
        return WallTime(self.wall + monotonic - self.monotonic)


class Effect(StrEnum):
    """Effect of a taint on pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class DeviceEffect(StrEnum):
    """Effect of a taint of a device. Kubernetes evicts because of ``NoExecute`` alone."""

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
    """The device that has a taint, and the object that adds the taint.

    Attributes:
        device: the name of the device.
        rule: the DeviceTaintRule that adds the taint; empty: the driver wrote it into its ResourceSlice.
        number: index among the taints of that object with the same key and effect.

    """

    device: DeviceId
    rule: str = ""
    number: int = 0

    @property
    def name(self) -> str:
        """Text that distinguishes the origin from all others."""
        rule = f" by {self.rule}" if self.rule else ""
        return f"{self.device}{rule} #{self.number}" if self.number else f"{self.device}{rule}"


class Taint(msgspec.Struct, frozen=True, gc=False):
    """A taint without its ``timeAdded``, so that the same taint on two nodes is one value."""

    key: str
    value: str = ""
    effect: str = Effect.NO_EXECUTE
    source: str = ""
    """Text of the :class:`ValueSource` from which the taint is derived; empty if it is not derived."""
    origin: DeviceOrigin | None = None
    """The device that has the taint; None: the node has it."""

    def __str__(self) -> str:
        text = f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"
        return text if self.origin is None else f"{text} of device {self.origin.device}"


Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""An integer of the Kubernetes API. Numbers in JSON may have 400 digits, which no float can hold."""


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
        operator = self.operator or "Equal"  # the default of Kubernetes
        wanted = f"({', '.join(map(repr, self.values))})" if self.values else repr(self.value)
        comparison = f"{subject} {operator}" if operator == "Exists" else f"{subject} {operator} {wanted}"
        text = f"{comparison}:{self.effect}" if self.effect else comparison
        return text if self.toleration_seconds is None else f"{text} for {self.toleration_seconds}s"


class Gates(msgspec.Struct, frozen=True):
    """The families of operators that are enabled, from the settings of the process."""

    numeric_operators: bool = True
    semver_operators: bool = True


class NodeInfo(StrEnum):
    """Fields of ``status.nodeInfo`` of a node that describe its software. Fields that identify the node are absent."""

    ARCHITECTURE = "architecture"
    CONTAINER_RUNTIME_VERSION = "containerRuntimeVersion"
    KERNEL_VERSION = "kernelVersion"
    KUBE_PROXY_VERSION = "kubeProxyVersion"
    KUBELET_VERSION = "kubeletVersion"
    OPERATING_SYSTEM = "operatingSystem"
    OS_IMAGE = "osImage"


class SourceKind(StrEnum):
    """Part of a node from which the value of a taint can be derived."""

    NODE_INFO = "nodeInfo"
    CONDITION = "condition"
    LABEL = "label"
    ANNOTATION = "annotation"


class ValueSource(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """A value of a node: a field of its ``nodeInfo``, or the condition, label or annotation with this name."""

    kind: SourceKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind.value} {self.name}"


class SourceValue(msgspec.Struct, frozen=True, gc=False):
    """The value of a source on a node. ``since``: when it began, as the source states; None if it states no time."""

    text: str
    since: float | None = None


ROUNDING_SECONDS = 1.0
"""Precision of times in objects, in seconds. Each time is taken as the end of its second."""


class SharedTolerations(msgspec.Struct, frozen=True, cache_hash=True, weakref=True):
    """Tolerations of profiles, in order of profile name. All pods that the same profiles select share one object."""

    entries: tuple[Toleration, ...] = ()


NOTHING_SHARED = SharedTolerations()


class Tolerations(msgspec.Struct, frozen=True, cache_hash=True, weakref=True):
    """All tolerations of a pod: its own, then the extended ones of its annotation, then those of its profiles by name.

    Extended tolerations *narrow*: for a taint key that they name, only they count. A native ``Exists`` then satisfies
    the scheduler, the kubelet and the built-in controller, while ``Gt 950`` in the annotation decides.
    """

    native: tuple[Toleration, ...] = ()
    annotated: tuple[Toleration, ...] = ()
    shared: SharedTolerations = NOTHING_SHARED

    @property
    def extended(self) -> tuple[Toleration, ...]:
        """The tolerations of the annotation, then those of profiles."""
        return self.annotated + self.shared.entries

    def relevant_to(self, taint_key: str) -> tuple[Toleration, ...]:
        """Return the tolerations that count for a taint with this key, in order of evaluation."""
        extended = matching_key(taint_key, self.extended)
        return extended if names_key(taint_key, extended) else self.native + extended


def matching_key(taint_key: str, entries: tuple[Toleration, ...]) -> tuple[Toleration, ...]:
    """Return the tolerations for a taint with this key, and those for any key."""
    return tuple(entry for entry in entries if entry.key in ("", taint_key))


def names_key(taint_key: str, entries: tuple[Toleration, ...]) -> bool:
    """Return True if one of the tolerations names the key."""
    return any(entry.key == taint_key for entry in entries)


class Profile(msgspec.Struct, frozen=True, cache_hash=True):
    """A validated TolerationProfile, which adds tolerations to the pods of its namespace that ``selector`` selects."""

    namespace: str
    name: str
    selector: LabelSelector
    tolerations: tuple[Toleration, ...]
    affinity: NodeAffinity | None = None

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Owner(msgspec.Struct, frozen=True):
    """The controlling owner of a pod, which replaces it. The ``kind`` of a custom resource includes its API group."""

    kind: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class SpreadConstraint(msgspec.Struct, frozen=True):
    """A topology spread constraint. The pods that ``selector`` selects are counted by the node label ``topology_key``.

    ``selector`` is ``labelSelector`` merged with the pod's values of ``matchLabelKeys`` (KEP-3243).
    """

    topology_key: str
    selector: LabelSelector


WorkloadKey = tuple[str, str]
"""Namespace and UID of the controlling owner of pods."""


class DeviceUse(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """A device that a ResourceClaim allocates to a pod, and the tolerations of that claim for taints of the device."""

    device: DeviceId
    tolerations: tuple[Toleration, ...] = ()


class SchedulingGroup(msgspec.Struct, frozen=True):
    """The PodGroup of a pod. ``claims``: ResourceClaims that the pod uses, by name; some may belong to the group."""

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
    """``taintwarden.io/do-not-evict``: the pod opts out of evictions. A policy may ignore it."""
    do_not_disrupt: bool = False
    """An annotation of Karpenter or of the cluster autoscaler forbids disruptions. A policy may ignore it."""
    owner: Owner | None = None
    spread: tuple[SpreadConstraint, ...] = ()
    grace_seconds: int = 30
    """``terminationGracePeriodSeconds``."""
    protected_seconds: float = 0.0
    """Seconds from the binding of a pod during which it opts out of disruptions, as with ``do_not_disrupt``."""
    local_storage: bool = False
    """True if a pod has data on its node: a ``hostPath`` volume, or an ``emptyDir`` that is not in memory."""
    group: SchedulingGroup | None = None
    """The PodGroup of pods with ResourceClaims; None for other pods."""
    devices: tuple[DeviceUse, ...] = ()
    """Devices that ResourceClaims allocate; empty if no policy selects taints of devices."""

    @property
    def workload(self) -> WorkloadKey | None:
        """The workload whose pods count together; None without a controlling owner.

        The namespace is part of the key, since the API server does not check that an owner is in the namespace of its
        pods: a pod of another namespace that names the same UID does not belong to the workload.
        """
        return None if self.owner is None else (self.namespace, self.owner.uid)


class Pod(msgspec.Struct, frozen=True, gc=False, eq=False):
    """A pod that is bound to a node. Finished and mirror pods are never represented, terminating ones as departures."""

    uid: str
    name: str
    node: str
    shared: PodClass
    bound_at: float
    resource_version: int
    ready: bool = False
    running: bool = True
    """False while the containers have not started (phase Pending). The API server checks no budget for the pod then."""

    @property
    def namespace(self) -> str:
        """The namespace of the pod."""
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
    """The resourceVersion."""
    can_replace: bool = False
    """True if a restart starts a new pod before it removes the only one, and no rollout is in progress."""
    restarted_at: str = ""
    """The annotation ``kubectl.kubernetes.io/restartedAt`` of the pod template."""


class Budget(msgspec.Struct, frozen=True):
    """A PodDisruptionBudget with the status from its controller.

    ``selector`` None: the selector cannot be read, so it may select every pod of the namespace. ``observed``: True if
    the status is up to date with the spec. ``healthy_enough``: True if pods that are not Ready may be evicted although
    ``allowed`` is 0.
    """

    namespace: str
    name: str
    selector: LabelSelector | None
    allowed: int
    observed: bool = True
    healthy_enough: bool = False
    problem: str = ""
    """Reason why its controller cannot compute the budget, which then allows nothing; empty if it can."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def why_no_disruption(self) -> str:
        """Reason why the budget allows no disruption: a predicate, with the budget as its subject."""
        if self.selector is None:
            return "has a selector that cannot be parsed"
        if self.problem:
            return cannot_compute(self.problem)
        return "allows no disruption now" if self.observed else "has not been evaluated by its controller yet"


def cannot_compute(problem: str) -> str:
    """Return the predicate of a sentence about a budget whose controller cannot compute it."""
    return f"allows no disruption, as its controller cannot compute it ({problem})"


def several_budgets(names: Iterable[str]) -> str:
    """Return the reason why a pod that several budgets select is not evicted."""
    return f"the API server refuses a pod with more than one PodDisruptionBudget ({', '.join(names)})"


class NodeCondition(msgspec.Struct, frozen=True, gc=False):
    """A condition of a node, without times."""

    status: str
    reason: str
    message: str

    @property
    def is_true(self) -> bool:
        """True if the condition holds."""
        return self.status == "True"


class Node(msgspec.Struct, frozen=True, gc=False):
    """A node as in its last event. ``taints`` has each taint with its ``timeAdded``; None if that is not set."""

    name: str
    uid: str
    labels: dict[str, str]
    taints: tuple[tuple[Taint, float | None], ...]
    resource_version: int
    history: str = ""
    """The text of the ``taint-history`` annotation."""
    do_not_evict: bool = False
    """``taintwarden.io/do-not-evict``: the node opts out of evictions. A policy may ignore it."""
    values: dict[ValueSource, SourceValue] = {}
    """Values on the node, by the sources that policies name."""
    drained: NodeCondition | None = None
    """The condition ``taintwarden.io/Drained``, if the operator writes it."""
    sources: frozenset[ValueSource] = frozenset()
    """Sources that were read from the node. One without a value is not in ``values``."""

    @property
    def is_drained(self) -> bool:
        """True if the condition ``taintwarden.io/Drained`` holds."""
        return self.drained is not None and self.drained.is_true


class StoredPod(msgspec.Struct, frozen=True, gc=False):
    """An unfinished pod of a node, as read from the API server."""

    uid: str
    version: int
    terminates: bool = False

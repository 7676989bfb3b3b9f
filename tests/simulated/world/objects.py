"""The objects of a cluster, as plain frozen values. Times are seconds since 1970, by the clock of their writer.

``version`` is the resourceVersion: a restored etcd gives it a second time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
NOTHING: Mapping[str, str] = {}
ZONE = "topology.kubernetes.io/zone"


@dataclass(frozen=True, slots=True)
class Taint:
    """``added`` is ``timeAdded``, in whole seconds as the API server stores it; None where the writer set none."""

    key: str
    value: str = ""
    effect: str = "NoExecute"
    added: float | None = None
    rule: str = ""
    """The DeviceTaintRule that adds it."""


@dataclass(frozen=True, slots=True)
class Toleration:
    """``grace`` is ``violationGraceSeconds``, which only extended tolerations have."""

    key: str = ""
    operator: str = "Exists"
    value: str = ""
    effect: str = ""
    seconds: int | None = None
    grace: int | None = None
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    uid: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    history: str = ""
    """The annotation ``taintwarden.io/taint-history``."""
    drained: tuple[str, str, str] | None = None
    """Status, reason and message of the condition ``taintwarden.io/Drained``."""
    version: int = 0


@dataclass(frozen=True, slots=True)
class Owner:
    api_version: str
    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Pod:
    uid: str
    name: str
    namespace: str
    node: str
    labels: Mapping[str, str] = field(default_factory=dict)
    native: tuple[Toleration, ...] = ()
    extended: tuple[Toleration, ...] | None = None
    """The annotation ``taintwarden.io/tolerations``."""
    marks: Mapping[str, str] = field(default_factory=dict)
    """Annotations by which pods opt out."""
    claim: tuple[Toleration, ...] | None = None
    """Tolerations of the claim for a device; None: the pod has no claim."""
    owner: Owner | None = None
    priority: int = 0
    grace: int = 30
    created_at: float = 0.0
    bound_at: float = 0.0
    ready: bool = True
    running: bool = True
    stopping_until: float | None = None
    """``deletionTimestamp``, which includes the grace period."""
    version: int = 0


@dataclass(frozen=True, slots=True)
class Namespace:
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    version: int = 0


@dataclass(frozen=True, slots=True)
class Workload:
    """A controller of pods. ``placing``: where its pods go (``good`` nodes, ``any`` node, or the node of that name)."""

    uid: str
    namespace: str
    name: str
    kind: str
    replicas: int
    template: Pod
    api_version: str = "apps/v1"
    placing: str = "good"
    exists: bool = True
    """False: only its pods name it, as an owner that no API server has."""
    version: int = 0


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget over the pods with the label ``app``. ``counts``: how soon its controller counts."""

    namespace: str
    name: str
    app: str
    max_unavailable: int
    counts: str = "soon"
    always_allow: bool = False
    allowed: int = 0
    healthy: int = 0
    desired: int = 0
    generation: int = 1
    observed: int = 0
    version: int = 0


@dataclass(frozen=True, slots=True)
class Policy:
    """``spec`` as a user wrote it. ``reset``, ``guard`` and ``places``: the annotation, and parts of the status."""

    name: str
    uid: str
    spec: Json
    created_at: float = 0.0
    generation: int = 1
    reset: str | None = None
    guard: Json | None = None
    places: Json | None = None
    version: int = 0


@dataclass(frozen=True, slots=True)
class Profile:
    namespace: str
    name: str
    uid: str
    selector: Mapping[str, str]
    tolerations: tuple[Toleration, ...]
    generation: int = 1
    created_at: float = 0.0
    version: int = 0


@dataclass(frozen=True, slots=True)
class DeviceSlice:
    """A ResourceSlice: some devices of a pool, which has ``slices`` of them in each generation."""

    name: str
    pool: str
    devices: Mapping[str, tuple[Taint, ...]]
    generation: int = 1
    slices: int = 1
    version: int = 0


@dataclass(frozen=True, slots=True)
class DeviceClaim:
    """A ResourceClaim that is allocated and reserved for pods (UIDs). ``devices``: ``pool/device``."""

    namespace: str
    name: str
    devices: tuple[str, ...]
    tolerations: tuple[Toleration, ...]
    pods: tuple[str, ...]
    version: int = 0


@dataclass(frozen=True, slots=True)
class TaintRule:
    """A DeviceTaintRule. What it does not name selects every device."""

    name: str
    taint: Taint
    pool: str | None = None
    device: str | None = None
    version: int = 0

    def selects(self, pool: str, device: str) -> bool:
        """True if the rule adds its taint to a device."""
        return self.pool in (None, pool) and self.device in (None, device)

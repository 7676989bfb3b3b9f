"""The used fields of the API server's objects. Fields that are not named here are skipped."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Generic, Protocol, TypeVar

import msgspec

from taintwarden.engine.model import Int64, Toleration
from taintwarden.engine.selectors import Requirement

Made = TypeVar("Made")
EARLIEST, LATEST = -62_135_596_800, 253_402_300_799
"""The years 1 to 9999, in seconds since the epoch."""
Timestamp = str | Annotated[int, msgspec.Meta(ge=EARLIEST, le=LATEST)]
"""RFC 3339 text in JSON, or whole seconds since the epoch in protobuf."""

MAX_POD_ENTRIES = 250
"""Maximum number of labels, tolerations, values of selectors and claims of one pod together, which stay in memory."""
MAX_TAINTS = 250
"""Maximum number of taints of one node that count. Each is compared for each class of pods on the node."""
MAX_NODE_LABELS = 2_000
"""Maximum number of labels of a node. A node with more is not read: its kubelet may write any number, at any rate."""
MAX_SPREAD_CONSTRAINTS = 32
"""Maximum number of topology spread constraints of one pod that count."""


class Metadata(msgspec.Struct, rename="camel"):
    """The fields of ``metadata`` that are read for most kinds."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    labels: dict[str, str] = {}


class OwnerReference(msgspec.Struct, gc=False):
    """``metadata.ownerReferences[]``."""

    api_version: str = msgspec.field(default="", name="apiVersion")
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class PodAnnotations(msgspec.Struct, gc=False):
    """The annotations of a pod that are read."""

    tolerations: str | None = msgspec.field(default=None, name="taintwarden.io/tolerations")
    node_affinity: str | None = msgspec.field(default=None, name="taintwarden.io/node-affinity")
    do_not_evict: str = msgspec.field(default="", name="taintwarden.io/do-not-evict")
    do_not_disrupt: str = msgspec.field(default="", name="karpenter.sh/do-not-disrupt")
    safe_to_evict: str = msgspec.field(default="", name="cluster-autoscaler.kubernetes.io/safe-to-evict")
    mirror: str | None = msgspec.field(default=None, name="kubernetes.io/config.mirror")


class PodMeta(msgspec.Struct, gc=False, rename="camel"):
    """``metadata`` of a pod."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: Timestamp | None = None
    deletion_timestamp: Timestamp | None = None
    labels: dict[str, str] = {}
    annotations: PodAnnotations | None = None
    owner_references: list[OwnerReference] = []


class SelectorObject(msgspec.Struct, rename="camel"):
    """A label selector. Without requirements it selects everything; an absent one selects nothing."""

    match_labels: dict[str, str] = {}
    match_expressions: list[Requirement] = []


class SpreadObject(msgspec.Struct, rename="camel"):
    """``spec.topologySpreadConstraints[]``."""

    topology_key: str = ""
    label_selector: SelectorObject | None = None
    match_label_keys: list[str] = []


class EmptyDir(msgspec.Struct, gc=False):
    """``spec.volumes[].emptyDir``."""

    medium: str = ""


class PodVolume(msgspec.Struct, rename="camel"):
    """``spec.volumes[]``."""

    empty_dir: EmptyDir | None = None
    host_path: dict[str, Any] | None = None

    @property
    def is_local(self) -> bool:
        """True if its data stay on the node's disk, by the rule of the cluster autoscaler."""
        return self.host_path is not None or (self.empty_dir is not None and self.empty_dir.medium != "Memory")


class PodClaim(msgspec.Struct, gc=False, rename="camel"):
    """``spec.resourceClaims[]`` or ``status.resourceClaimStatuses[]``."""

    resource_claim_name: str | None = None


class SchedulingGroupObject(msgspec.Struct, gc=False, rename="camel"):
    """``spec.schedulingGroup``."""

    pod_group_name: str | None = None


class PodSpec(msgspec.Struct, gc=False, rename="camel"):
    """``spec`` of a pod.

    From protobuf, ``volumes`` only shows whether one is local, and ``resource_claims`` is only set for a pod in a
    group, and includes the claims in its status.
    """

    node_name: str = ""
    tolerations: list[Toleration] = []
    priority: Int64 | None = None
    termination_grace_period_seconds: Int64 = 30
    topology_spread_constraints: list[SpreadObject] = []
    volumes: list[PodVolume] = []
    scheduling_group: SchedulingGroupObject | None = None
    resource_claims: tuple[PodClaim, ...] = ()

    @property
    def has_local_storage(self) -> bool:
        """True if a volume is local."""
        return any(volume.is_local for volume in self.volumes)


class ObjectCondition(msgspec.Struct, gc=False, rename="camel"):
    """``status.conditions[]``."""

    type: str = ""
    status: str = ""
    last_transition_time: Timestamp | None = None


FINISHED = ("Succeeded", "Failed")
"""Phases of pods whose containers have ended for good."""


class PodStatus(msgspec.Struct, gc=False, rename="camel"):
    """``status`` of a pod."""

    phase: str = ""
    conditions: list[ObjectCondition] = []
    resource_claim_statuses: tuple[PodClaim, ...] = ()


class PodObject(msgspec.Struct, gc=False):
    """A v1 Pod."""

    metadata: PodMeta = msgspec.field(default_factory=PodMeta)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def is_mirror(self) -> bool:
        """True if it mirrors a static pod, which only its kubelet can remove."""
        return self.metadata.annotations is not None and self.metadata.annotations.mirror is not None


def _nothing() -> None:
    pass


class Shape(msgspec.Struct, Generic[Made], eq=False, weakref=True):
    """The common part of pods that differ at most in name, UID, node, version, times and status.

    The decoder recognizes it while a pod, or a value made from one, refers to it.

    Attributes:
        memo: returns the value that the receiver of the pods made from it, while that is in use; otherwise None.

    """

    memo: Callable[[], Made | None] = _nothing


class ShapedPod(PodObject, gc=False):
    """A v1 Pod with a known shape."""

    shape: Shape[Any] = msgspec.field(default_factory=Shape)


class AnnotatedMeta(Metadata, rename="camel"):
    """``metadata`` with its annotations."""

    annotations: Mapping[str, str] = {}


class NodeMeta(AnnotatedMeta, rename="camel"):
    """``metadata`` of a node."""

    labels: Annotated[dict[str, str], msgspec.Meta(max_length=MAX_NODE_LABELS)] = {}

    def annotation(self, name: str) -> str | None:
        """Return the text of an annotation; None if there is none."""
        return self.annotations.get(name)


class TaintObject(msgspec.Struct, rename="camel"):
    """``spec.taints[]``."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: Timestamp | None = None


class NodeSpec(msgspec.Struct):
    """``spec`` of a node."""

    taints: list[TaintObject] = []


class NodeInfoObject(msgspec.Struct, gc=False, rename="camel"):
    """``status.nodeInfo`` of a node."""

    architecture: str = ""
    container_runtime_version: str = ""
    kernel_version: str = ""
    kube_proxy_version: str = ""
    kubelet_version: str = ""
    operating_system: str = ""
    os_image: str = ""


class NodeConditionObject(ObjectCondition, gc=False):
    """``status.conditions[]`` of a node."""

    reason: str = ""
    message: str = ""


class NodeStatus(msgspec.Struct, rename="camel"):
    """``status`` of a node."""

    conditions: list[NodeConditionObject] = []
    node_info: NodeInfoObject | None = None

    def condition(self, kind: str) -> NodeConditionObject | None:
        """Return the condition of this type; None if there is none."""
        return next((condition for condition in self.conditions if condition.type == kind), None)

    def info(self, field: str) -> str:
        """Return a field of ``nodeInfo`` by its name there; empty if it is not set."""
        return "" if self.node_info is None else str(getattr(self.node_info, NODE_INFO[field]))


NODE_INFO = {field.encode_name: field.name for field in msgspec.structs.fields(NodeInfoObject)}


class NodeObject(msgspec.Struct):
    """A v1 Node."""

    metadata: NodeMeta = msgspec.field(default_factory=NodeMeta)
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class NamespaceObject(msgspec.Struct):
    """A v1 Namespace."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)


class WorkloadMeta(msgspec.Struct, gc=False, rename="camel"):
    """``metadata`` of a controller of pods."""

    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    owner_references: list[OwnerReference] = []


class TemplateObject(msgspec.Struct, gc=False):
    """``spec.template`` of a controller of pods."""

    metadata: AnnotatedMeta = msgspec.field(default_factory=AnnotatedMeta)


class WorkloadSpec(msgspec.Struct, gc=False, rename="camel"):
    """``spec`` of a controller of pods; ``parallelism``, ``completions`` and ``suspend`` are a Job's."""

    replicas: Int64 = 1
    parallelism: Int64 = 1
    completions: Int64 | None = None
    suspend: bool = False
    template: TemplateObject | None = None


class WorkloadStatus(msgspec.Struct, gc=False, rename="camel"):
    """``status`` of a DaemonSet or a Job."""

    desired_number_scheduled: Int64 = 0
    active: Int64 = 0
    succeeded: Int64 = 0
    failed_indexes: str = ""
    """Indexes that failed for good (``backoffLimitPerIndex``), such as ``1,3-5``."""


class WorkloadObject(msgspec.Struct, gc=False):
    """A ReplicaSet, StatefulSet, DaemonSet, ReplicationController or Job: how many pods it wants.

    One class for all, with few fields: every Deployment keeps ten old ReplicaSets.
    """

    metadata: WorkloadMeta = msgspec.field(default_factory=WorkloadMeta)
    spec: WorkloadSpec = msgspec.field(default_factory=WorkloadSpec)
    status: WorkloadStatus = msgspec.field(default_factory=WorkloadStatus)

    def template_label(self, key: str) -> str:
        """Return the value of a label of its pods; empty if they have none."""
        return "" if self.spec.template is None else self.spec.template.metadata.labels.get(key, "")

    def template_annotation(self, key: str) -> str:
        """Return the value of an annotation of its pods; empty if they have none."""
        return "" if self.spec.template is None else self.spec.template.metadata.annotations.get(key, "")

    def controller(self) -> OwnerReference | None:
        """Return the object that controls it; None if there is none."""
        return next((owner for owner in self.metadata.owner_references if owner.controller), None)


class RollingUpdate(msgspec.Struct, rename="camel"):
    """``spec.strategy.rollingUpdate`` of a Deployment."""

    max_surge: Int64 | str | None = None
    max_unavailable: Int64 | str | None = None


class StrategyObject(msgspec.Struct, rename="camel"):
    """``spec.strategy`` of a Deployment."""

    type: str = ""
    rolling_update: RollingUpdate = msgspec.field(default_factory=RollingUpdate)


class DeploymentSpec(msgspec.Struct):
    """``spec`` of a Deployment."""

    replicas: Int64 = 1
    paused: bool = False
    strategy: StrategyObject = msgspec.field(default_factory=StrategyObject)
    template: TemplateObject = msgspec.field(default_factory=TemplateObject)


class DeploymentStatus(msgspec.Struct, rename="camel"):
    """``status`` of a Deployment."""

    observed_generation: Int64 = 0
    replicas: Int64 = 0
    updated_replicas: Int64 = 0
    available_replicas: Int64 = 0


class DeploymentObject(msgspec.Struct):
    """A Deployment: how it replaces its pods, and whether it does so now."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: DeploymentSpec = msgspec.field(default_factory=DeploymentSpec)
    status: DeploymentStatus = msgspec.field(default_factory=DeploymentStatus)


class BudgetSpec(msgspec.Struct, rename="camel"):
    """``spec`` of a budget."""

    selector: SelectorObject | None = None
    unhealthy_pod_eviction_policy: str = "IfHealthyBudget"


class BudgetCondition(msgspec.Struct, gc=False):
    """``status.conditions[]`` of a budget."""

    type: str = ""
    reason: str = ""
    message: str = ""


class BudgetStatus(msgspec.Struct, rename="camel"):
    """``status`` of a budget."""

    observed_generation: Int64 = 0
    disruptions_allowed: Int64 = 0
    current_healthy: Int64 = 0
    desired_healthy: Int64 = 0
    conditions: list[BudgetCondition] = []

    @property
    def problem(self) -> str:
        """Reason why its controller failed (``failSafe`` in ``disruption.go``); empty if it did not.

        The other fields are then those of its last success, and ``observedGeneration`` may be unset.
        """
        for condition in self.conditions:
            if (condition.type, condition.reason) == ("DisruptionAllowed", "SyncFailed"):
                return condition.message or condition.reason
        return ""


class BudgetObject(msgspec.Struct):
    """A policy/v1 PodDisruptionBudget."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: BudgetSpec = msgspec.field(default_factory=BudgetSpec)
    status: BudgetStatus | None = None


class CustomAnnotations(msgspec.Struct, gc=False, omit_defaults=True):
    """The annotations of a policy that are read."""

    guard_reset: str | None = msgspec.field(default=None, name="taintwarden.io/guard-reset")
    paused_by: str | None = msgspec.field(default=None, name="taintwarden.io/paused-by")


class CustomMeta(Metadata, rename="camel", omit_defaults=True):
    """``metadata`` of Taintwarden's custom resources."""

    creation_timestamp: str | None = None
    annotations: CustomAnnotations | None = None


class CustomStatus(msgspec.Struct, gc=False, omit_defaults=True):
    """The fields of ``status`` that a new process reads, after an earlier one has written them."""

    conditions: Any = None
    guard: Any = None
    places: Any = None


class CustomObject(msgspec.Struct, rename="camel"):
    """A custom resource of Taintwarden. The package ``api`` reads its ``spec`` and finds every fault in it."""

    api_version: str = ""
    kind: str = ""
    metadata: CustomMeta = msgspec.field(default_factory=CustomMeta)
    spec: msgspec.Raw = msgspec.Raw(b"null")
    """Not decoded at first, because most changes concern other fields."""
    status: CustomStatus | None = None


class Followed(Protocol):
    """An object that can be listed and watched."""

    @property
    def metadata(self) -> Any:
        """Metadata with a ``resource_version``."""


Object = TypeVar("Object", bound=Followed)


class ListMeta(msgspec.Struct, rename="camel"):
    """``metadata`` of a list."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Identity(msgspec.Struct, frozen=True):
    """Identity of an object that was deleted or cannot be decoded. Unknown fields are empty."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    node_name: str | None = ""
    """``spec.nodeName`` of a pod. Empty before the pod is bound, None if unknown."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name or "unknown"


MAX_VERSION_DIGITS = 20
"""Maximum digits of an unsigned number of 64 bits."""


def version_number(text: str, unreadable: int = 2**63) -> int:
    """Return a resourceVersion as a number (comparable: KEP-5504). By default, other text is newer than any version."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_VERSION_DIGITS else unreadable

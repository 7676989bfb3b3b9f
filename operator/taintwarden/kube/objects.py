"""The fields we use of the objects we read, and nothing else: what is not named here is never built.

Everything has a default, so that an ``ERROR`` or ``BOOKMARK`` frame decodes with the same decoder as an object.
"""

from typing import Generic, TypeVar

import msgspec

from taintwarden.engine.model import Toleration


class OwnerReference(msgspec.Struct, gc=False):
    """``metadata.ownerReferences[]``."""

    kind: str = ""
    controller: bool = False


class PodAnnotations(msgspec.Struct, gc=False):
    """The annotations that mean something to us."""

    tolerations: str | None = msgspec.field(default=None, name="taintwarden.io/tolerations")
    do_not_evict: str = msgspec.field(default="", name="taintwarden.io/do-not-evict")
    do_not_disrupt: str = msgspec.field(default="", name="karpenter.sh/do-not-disrupt")
    safe_to_evict: str = msgspec.field(default="", name="cluster-autoscaler.kubernetes.io/safe-to-evict")
    mirror: str | None = msgspec.field(default=None, name="kubernetes.io/config.mirror")


class PodMeta(msgspec.Struct, rename="camel"):
    """``metadata`` of a pod."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: PodAnnotations | None = None
    owner_references: list[OwnerReference] = []


class PodSpec(msgspec.Struct, rename="camel"):
    """``spec`` of a pod."""

    node_name: str = ""
    tolerations: list[Toleration] = []
    priority: int | None = None


class Condition(msgspec.Struct, gc=False, rename="camel"):
    """``status.conditions[]``."""

    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class PodStatus(msgspec.Struct, rename="camel"):
    """``status`` of a pod."""

    phase: str = ""
    conditions: list[Condition] = []


class PodObject(msgspec.Struct):
    """A v1 Pod."""

    metadata: PodMeta = msgspec.field(default_factory=PodMeta)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)


class NodeAnnotations(msgspec.Struct, gc=False):
    """The annotation that is ours."""

    history: str = msgspec.field(default="", name="taintwarden.io/taint-history")


class NodeMeta(msgspec.Struct, rename="camel"):
    """``metadata`` of a node."""

    name: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    annotations: NodeAnnotations | None = None


class TaintObject(msgspec.Struct, rename="camel"):
    """``spec.taints[]``."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeSpec(msgspec.Struct):
    """``spec`` of a node."""

    taints: list[TaintObject] = []


class NodeObject(msgspec.Struct):
    """A v1 Node."""

    metadata: NodeMeta = msgspec.field(default_factory=NodeMeta)
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)


class NamespaceMeta(msgspec.Struct, rename="camel"):
    """``metadata`` of a namespace."""

    name: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}


class NamespaceObject(msgspec.Struct):
    """A v1 Namespace."""

    metadata: NamespaceMeta = msgspec.field(default_factory=NamespaceMeta)


Object = TypeVar("Object", bound=PodObject | NodeObject | NamespaceObject)


class WatchFrame(msgspec.Struct, Generic[Object]):
    """One line of a watch."""

    object: Object
    type: str = ""


class ListMeta(msgspec.Struct, rename="camel"):
    """``metadata`` of a list."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct, Generic[Object]):
    """The items of one page of a list."""

    items: list[Object] = []


class RawPage(msgspec.Struct):
    """A page whose items are decoded one by one, since one of them is not what it should be."""

    items: list[msgspec.Raw] | None = []


class AnyMeta(msgspec.Struct, rename="camel"):
    """What can be told of an object that does not decode."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class AnyObject(msgspec.Struct):
    """An object of which only the name and version are read."""

    metadata: AnyMeta = msgspec.field(default_factory=AnyMeta)

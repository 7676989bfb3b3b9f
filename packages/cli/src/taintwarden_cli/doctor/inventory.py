"""Pods and pod templates grouped by their topmost owner, counted as they are read: no pod itself is kept."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from taintwarden.api.types import GROUP
from taintwarden.controller.decoding.decoding import Decoder
from taintwarden.engine.model import Instant, MonotonicTime, PodClass, WallTime
from taintwarden.kube.wire.kinds import OwnerReference
from taintwarden_cli.rehearsal.node_requirements import FullPod, NodeRequirements
from taintwarden_cli.rehearsal.sources import UNREADABLE, Listing, Subject, identity
from taintwarden_placement.admission.annotated_objects import TEMPLATES
from taintwarden_placement.admission.checking import mapping, sequence, value_at

_NOWHERE = "a template"
"""Node name of templates, which are on no node: the decoder skips pods that are not bound."""
MAX_OWNER_DEPTH = 8
"""Maximum depth of owners. Real ones are not nested deeper; the limit ends cycles of owner references."""
_FINISHED = ("Complete", "Failed")


class PodShape(msgspec.Struct, frozen=True):
    """The fields of a pod that checks read. ``annotations``: those of Taintwarden. ``tolerations``: JSON."""

    pod_class: PodClass
    node_requirements: NodeRequirements
    annotations: tuple[tuple[str, str], ...] = ()
    tolerations: bytes = b"[]"

    def as_pod(self) -> dict[str, Any]:
        """The fields of the pod that the checks of admission read."""
        own = self.pod_class
        metadata = {"namespace": own.namespace, "labels": own.labels, "annotations": dict(self.annotations)}
        return {"metadata": metadata, "spec": {"tolerations": msgspec.json.decode(self.tolerations)}}


class PodGroup(msgspec.Struct):
    """Equal pods of one owner, or the template of its future pods."""

    subject: Subject
    api_group: str
    shape: PodShape
    template: bool
    pods: Counter[str]
    """The number of pods on each node."""
    own_annotations: tuple[tuple[str, str], ...] = ()
    """Annotations of Taintwarden on the workload itself."""
    wanted: int = 1
    """Replicas in the spec of a template's workload."""

    @property
    def count(self) -> int:
        """The number of present pods."""
        return self.pods.total()

    @property
    def pod_class(self) -> PodClass:
        """The class of its pods in the engine."""
        return self.shape.pod_class


class _Owner(msgspec.Struct, frozen=True):
    uid: str
    subject: Subject
    api_group: str


class _Spec(msgspec.Struct):
    tolerations: msgspec.Raw = msgspec.Raw(b"[]")


class _Meta(msgspec.Struct, rename="camel"):
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []


class _Pod(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)


class Inventory:
    """Groups pods and workloads as they are read. ``now`` is in seconds since the epoch."""

    def __init__(self, now: float) -> None:
        self.groups: list[PodGroup] = []
        self.unreadable: list[tuple[Subject, str]] = []
        self._decoder = Decoder(lambda: Instant(WallTime(now), MonotonicTime(now)))
        self._pod_decoder = msgspec.json.Decoder(FullPod)
        self._more_decoder = msgspec.json.Decoder(_Pod)
        self._owners: dict[str, _Owner] = {}
        """The controller of a workload, by the UID of the workload."""
        self._waiting: dict[tuple[str, str, str, str, PodShape], Counter[str]] = {}
        """Pods on each node, by controller (UID, namespace, kind, name) and shape, until all owners are known."""
        self._shapes: dict[tuple[object, ...], PodShape] = {}

    def add_pods(self, page: Iterable[bytes]) -> None:
        """Add one page of pods."""
        for raw in page:
            self._try_to_add("Pod", raw, self._add_pod)

    def add_workloads(self, listing: Listing, page: Iterable[bytes]) -> None:
        """Add one page of objects that have a pod template."""
        for raw in page:
            self._try_to_add(listing.kind, raw, lambda one: self._add_workload(listing, one))

    def close(self) -> None:
        """Assign pods to their topmost owners, when everything is read."""
        found: dict[tuple[Subject, PodShape], PodGroup] = {}
        for (uid, namespace, kind, name, shape), nodes in self._waiting.items():
            subject, api_group = self._topmost(uid, Subject(kind, name, namespace))
            group = PodGroup(subject, api_group, shape, template=False, pods=Counter())
            found.setdefault((subject, shape), group).pods.update(nodes)
        self._waiting.clear()
        self.groups += found.values()
        self.groups.sort(key=lambda one: (one.subject, one.template))

    def _try_to_add(self, kind: str, raw: bytes, add: Callable[[bytes], None]) -> None:
        try:
            add(raw)
        except UNREADABLE as error:
            self.unreadable.append((identity(kind, raw), " ".join(str(error).split())))

    def _add_pod(self, raw: bytes) -> None:
        shape, more, obj = self._shape(raw)
        if shape is None:
            return
        meta = obj.metadata
        owner = next((one for one in more.metadata.owner_references if one.controller), None)
        uid, kind, name = (owner.uid, owner.kind, owner.name) if owner else (meta.uid, "Pod", meta.name)
        key = (uid, meta.namespace, kind, name, shape)
        self._waiting.setdefault(key, Counter())[obj.spec.node_name] += 1

    def _add_workload(self, listing: Listing, raw: bytes) -> None:
        obj = msgspec.json.decode(raw)
        meta, spec = mapping(value_at(obj, "metadata")), mapping(value_at(obj, "spec"))
        subject = Subject(listing.kind, str(meta.get("name", "")), str(meta.get("namespace", "")))
        controllers = [mapping(one) for one in sequence(meta.get("ownerReferences")) if value_at(one, "controller")]
        uid = str(meta.get("uid", ""))
        if controllers:
            named = Subject(str(controllers[0].get("kind", "")), str(controllers[0].get("name", "")), subject.namespace)
            api_group = str(controllers[0].get("apiVersion", "")).rpartition("/")[0]
            self._owners[uid] = _Owner(str(controllers[0].get("uid", "")), named, api_group)
        template = value_at(obj, *TEMPLATES[listing.group, listing.kind].split("."))
        if controllers or template is None or _has_finished(obj):
            return
        reference = {"apiVersion": listing.group, "kind": listing.kind, "name": subject.name, "uid": uid}
        inner = mapping(value_at(template, "metadata"))
        pod = {
            "metadata": {
                "namespace": subject.namespace,
                "labels": mapping(inner.get("labels")),
                "annotations": mapping(inner.get("annotations")),
                "ownerReferences": [{**reference, "controller": True}],
            },
            "spec": {**mapping(value_at(template, "spec")), "nodeName": _NOWHERE},
        }
        shape, _, _ = self._shape(msgspec.json.encode(pod))
        wanted = spec.get("replicas", 1)
        if shape is not None:
            group = PodGroup(subject, listing.group, shape, template=True, pods=Counter())
            group.own_annotations = _own_annotations(mapping(meta.get("annotations")))
            group.wanted = wanted if isinstance(wanted, int) else 1
            self.groups.append(group)

    def _shape(self, raw: bytes) -> tuple[PodShape | None, _Pod, FullPod]:
        obj, more = self._pod_decoder.decode(raw), self._more_decoder.decode(raw)
        pod = self._decoder.pod(obj)
        if pod is None:
            return None, more, obj
        rest = (obj.spec.node_requirements, _own_annotations(more.metadata.annotations), bytes(more.spec.tolerations))
        # Equal pods of a workload share one shape, and the group that is derived from it.
        shape = self._shapes.setdefault((id(pod.shared), *rest), PodShape(pod.shared, *rest))
        return shape, more, obj

    def _topmost(self, uid: str, subject: Subject) -> tuple[Subject, str]:
        api_group = ""
        for _ in range(MAX_OWNER_DEPTH):
            owner = self._owners.get(uid)
            if owner is None:
                break
            subject, api_group, uid = owner.subject, owner.api_group, owner.uid
        return subject, api_group


def _own_annotations(annotations: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    found = [(key, value) for key, value in annotations.items() if isinstance(value, str)]
    return tuple(sorted(one for one in found if one[0].startswith(f"{GROUP}/")))


def _has_finished(obj: object) -> bool:
    """True for a Job that creates no more pods."""
    conditions = sequence(value_at(obj, "status", "conditions"))
    return any(value_at(one, "type") in _FINISHED and value_at(one, "status") == "True" for one in conditions)

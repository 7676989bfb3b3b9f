"""Which keys nodes carry labels of placement of, and which pods, templates and volumes name these labels."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

import msgspec

from taintwarden.engine.model import Mode
from taintwarden.engine.placement import Kept, carried_by, keys_of
from taintwarden.kube.wire.kinds import NodeObject
from taintwarden.kube.wire.resources import NODES, PODS, VOLUMES
from taintwarden.placement.admission.advice import named_labels
from taintwarden.placement.admission.annotated_objects import pod_in
from taintwarden.placement.admission.checking import look, mapping
from taintwarden.rehearsal.places import PlacedPod, PlacedVolume
from taintwarden.rehearsal.reading import stored_policies
from taintwarden.rehearsal.rehearsal import named
from taintwarden.rehearsal.session import Session
from taintwarden.rehearsal.sources import WORKLOADS, Listing, Subject

MAX_EXAMPLES = 10
"""Objects that are named; the others are counted."""
NOT_FINISHED = "status.phase!=Succeeded,status.phase!=Failed"
T = TypeVar("T")


class Users(msgspec.Struct):
    """Objects of one kind that name labels of a key: how many, and the first of them."""

    count: int = 0
    examples: list[str] = []

    def add(self, name: str) -> None:
        """One more."""
        self.count += 1
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(name)


class KeyUse(msgspec.Struct, rename="camel"):
    """A key that labels of placement are about."""

    key: str
    of_label: bool
    """Whether it is the key of a label whose version is repeated; otherwise of a taint."""
    policies: list[str] = []
    """Policies that place by it, or repeat its version, each with its mode unless that is Enforce."""
    nodes: int = 0
    """Nodes that carry its labels."""
    removing: int = 0
    """Nodes whose labels say that they are being removed."""
    pods: Users = msgspec.field(default_factory=Users)
    templates: Users = msgspec.field(default_factory=Users)
    volumes: Users = msgspec.field(default_factory=Users)

    @property
    def is_placed(self) -> bool:
        """Whether a policy places by it."""
        return bool(self.policies)

    @property
    def is_named(self) -> bool:
        """Whether an object names its labels."""
        return bool(self.pods.count or self.templates.count or self.volumes.count)


class KeyUses(msgspec.Struct):
    """The keys, by name."""

    keys: list[KeyUse]


class LabelUses:
    """Collects the uses of labels as objects are read."""

    def __init__(self) -> None:
        self._found: dict[Kept, KeyUse] = {}

    def __iter__(self) -> Iterator[KeyUse]:
        return iter([use for _, use in sorted(self._found.items())])

    def of(self, kept: Kept) -> KeyUse:
        """The use of one key."""
        return self._found.setdefault(kept, KeyUse(kept.key, kept.of_label))

    def add_policy(self, stored: Mapping[str, Any]) -> None:
        """A policy as it is stored, valid or not."""
        spec, name = mapping(stored.get("spec")), named(stored)[1]
        mode = spec.get("mode", Mode.ENFORCE.value)
        shown = name if mode == Mode.ENFORCE else f"{name} ({mode})"
        taints, labels = spec.get("taints"), spec.get("versionLabels")
        for one in taints if isinstance(taints, list) else ():
            if look(one, "placement") is True:
                self.of(Kept(str(look(one, "key")))).policies.append(shown)
        for label in labels if isinstance(labels, list) else ():
            self.of(Kept(str(label), of_label=True)).policies.append(shown)

    def add_node(self, node: NodeObject) -> None:
        """A node."""
        carried = carried_by(node.metadata.labels)
        for kept in (*carried.kept, *carried.removed):
            self.of(kept).nodes += 1
        for kept in carried.removed:
            self.of(kept).removing += 1

    def add_pod(self, pod: PlacedPod) -> None:
        """A pod that has not finished."""
        for kept in keys_of(pod.spec.place.labels):
            self.of(kept).pods.add(f"{pod.metadata.namespace}/{pod.metadata.name}")

    def add_volume(self, volume: PlacedVolume) -> None:
        """A PersistentVolume."""
        for kept in keys_of(volume.place.labels):
            self.of(kept).volumes.add(volume.metadata.name)

    def add_workload(self, listing: Listing, workload: Mapping[str, Any]) -> None:
        """An object with a pod template. One that a controller manages has the template of that."""
        namespace, name = named(workload)
        owners = look(workload, "metadata", "ownerReferences")
        if any(look(one, "controller") is True for one in (owners if isinstance(owners, list) else ())):
            return
        template = pod_in(workload, listing.group, listing.kind)
        for kept in named_labels(look(template, "spec")):
            self.of(kept).templates.add(str(Subject(listing.kind, name, namespace)))


async def read_label_uses(session: Session) -> LabelUses:
    """Read all that may carry or name labels of placement.

    Raises:
        ClusterError: something of it cannot be read. What is not known may be in use.

    """
    found = LabelUses()

    async def read(path: str, kind: type[T], what: str, add: Callable[[T], None], fields: str = "") -> None:
        async for page in session.pages(path, kind, what, fields):
            for one in page:
                add(one)

    templates = (
        read(listing.path, dict, source.value, partial(found.add_workload, listing))
        for source, listing in WORKLOADS.items()
    )
    stored, *_ = await asyncio.gather(
        stored_policies(session),
        read(NODES.path, NodeObject, NODES.name, found.add_node),
        read(PODS.path, PlacedPod, PODS.name, found.add_pod, NOT_FINISHED),
        read(VOLUMES.path, PlacedVolume, VOLUMES.name, found.add_volume),
        *templates,
    )
    for policy in stored:
        found.add_policy(policy)
    return found

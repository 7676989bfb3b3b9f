"""Reads a snapshot of one pod and its related objects from files."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from taintwarden.api.types import GROUP, POLICY_KIND, PROFILE_KIND
from taintwarden.kube.wire.kinds import DeploymentObject, NamespaceObject, NodeObject, PodObject, WorkloadObject
from taintwarden_cli.rehearsal.manifests import BadInput, Document
from taintwarden_cli.rehearsal.node_requirements import FullPod
from taintwarden_cli.rehearsal.snapshot import FullBudget, Snapshot
from taintwarden_cli.rehearsal.sources import Source
from taintwarden_devices.objects import DeviceClaimObject, SliceObject, TaintRuleObject

T = TypeVar("T")
DEVICES_GROUP = "resource.k8s.io"


def snapshot_from_files(documents: Sequence[Document], namespace: str, name: str, now: float) -> Snapshot:
    """Find the pod and its related objects. If an object occurs twice, the last one is used.
    Raises BadInput if a required object is missing or invalid.
    """
    pods = [_convert(document, FullPod) for document in _of_kind(documents, "", "Pod") if document.name == name]
    pods = [pod for pod in pods if (pod.metadata.namespace or "default") == namespace]
    if not pods:
        held = ", ".join(f"{document.kind or 'no kind'} {document.name}" for document in documents[:5]) or "no object"
        more = " and more" if len(documents) > 5 else ""
        raise BadInput(f"the files contain no Pod {namespace}/{name}; they contain {held}{more}")
    pod = pods[-1]
    pod.metadata.namespace = namespace
    budgets = [_convert(document, FullBudget) for document in _of_kind(documents, "policy", "PodDisruptionBudget")]
    for budget in budgets:
        budget.metadata.namespace = budget.metadata.namespace or "default"
    namespaces, missing = _namespaces(documents, namespace), f"the files contain no Namespace {namespace}"
    return Snapshot(
        now,
        pods=[pod],
        nodes=_nodes(documents, pod),
        namespaces=namespaces,
        policies=[_named(document)[0] for document in _of_kind(documents, GROUP, POLICY_KIND)],
        budgets=budgets,
        slices=[_convert(document, SliceObject) for document in _of_kind(documents, DEVICES_GROUP, "ResourceSlice")],
        device_claims=[_convert(one, DeviceClaimObject) for one in _of_kind(documents, DEVICES_GROUP, "ResourceClaim")],
        taint_rules=[_convert(one, TaintRuleObject) for one in _of_kind(documents, DEVICES_GROUP, "DeviceTaintRule")],
        deployments=[_convert(document, DeploymentObject) for document in _of_kind(documents, "apps", "Deployment")],
        workloads={"replicasets": [_convert(one, WorkloadObject) for one in _of_kind(documents, "apps", "ReplicaSet")]},
        profiles=list(_profiles(documents, namespace)),
        problems={} if namespaces else {Source.NAMESPACES: missing},
    )


def _profiles(documents: Sequence[Document], namespace: str) -> Iterator[dict[str, Any]]:
    for document in _of_kind(documents, GROUP, PROFILE_KIND):
        profile, meta = _named(document)
        if (meta.get("namespace") or "default") == namespace:
            yield {**profile, "metadata": {**meta, "namespace": namespace}}


def _named(document: Document) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """An object of Taintwarden's API group and its metadata, in which a name is required."""
    content = _without_nulls(document.content)
    meta = content.get("metadata")
    if not isinstance(meta, Mapping) or not isinstance(meta.get("name"), str):
        raise BadInput(f"{document.location}: {document.kind}/{document.name}: has no metadata.name")
    return content, meta


def _nodes(documents: Sequence[Document], pod: PodObject) -> list[NodeObject]:
    """The node of the pod; all nodes for a pod that is not bound."""
    name = pod.spec.node_name
    named = {one.name: _convert(one, NodeObject) for one in _of_kind(documents, "", "Node") if name in ("", one.name)}
    if name and not named:
        msg = f"the files contain no Node {name}, which pod {pod.metadata.namespace}/{pod.metadata.name} is bound to"
        raise BadInput(msg)
    return list(named.values())


def _namespaces(documents: Sequence[Document], name: str) -> list[NamespaceObject]:
    found = [_convert(one, NamespaceObject) for one in _of_kind(documents, "", "Namespace") if one.name == name][-1:]
    for namespace in found:
        # The API server sets this label on every namespace.
        namespace.metadata.labels |= {"kubernetes.io/metadata.name": name}
    return found


def _of_kind(documents: Sequence[Document], group: str, kind: str) -> list[Document]:
    return [document for document in documents if (document.group, document.kind) == (group, kind)]


def _convert(document: Document, wanted: type[T]) -> T:
    try:
        return msgspec.convert(_without_nulls(document.content), wanted)
    except msgspec.ValidationError as error:
        raise BadInput(f"{document.location}: {document.kind}/{document.name}: {error}") from error


def _without_nulls(value: Any) -> Any:
    """Drop null values, as the API server does."""
    if isinstance(value, Mapping):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value

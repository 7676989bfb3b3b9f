"""What ``explain`` knows about one pod, wherever it was read from; and how to read it from files."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from taintwarden.api.types import GROUP, POLICY_KIND, PROFILE_KIND
from taintwarden.cli.manifests import BadInput, Document
from taintwarden.kube.objects import BudgetObject, NamespaceObject, NodeObject, PodObject

T = TypeVar("T", PodObject, NodeObject, NamespaceObject, BudgetObject)


class Facts(msgspec.Struct):
    """A pod, and the objects its fate depends on."""

    pod: PodObject
    now: float
    node: NodeObject | None = None
    namespace_labels: dict[str, str] | None = None
    """None: not known, so that no ``namespaceSelector`` can be asked."""
    namespace_problem: str = ""
    """Why they are not known, if so."""
    policies: Sequence[Mapping[str, Any]] = ()
    budgets: Sequence[BudgetObject] = ()
    budgets_problem: str = ""
    """Why the budgets are not known, if so."""
    profiles: Sequence[Mapping[str, Any]] = ()
    """Those of the pod's namespace."""


def facts_from_files(documents: Sequence[Document], namespace: str, name: str, now: float) -> Facts:
    """Find the pod and what belongs to it; of objects that stand twice, the last counts.

    Raises:
        BadInput: something needed is not there, or is not what it should be.

    """
    pods = [_convert(one, PodObject) for one in _of_kind(documents, "", "Pod") if one.name == name]
    pods = [pod for pod in pods if (pod.metadata.namespace or "default") == namespace]
    if not pods:
        held = ", ".join(f"{one.kind or 'no kind'} {one.name}" for one in documents[:5]) or "no object"
        more = " and more" if len(documents) > 5 else ""
        msg = f"the files hold no Pod {namespace}/{name}; they hold {held}{more}"
        raise BadInput(msg)
    pod = pods[-1]
    pod.metadata.namespace = namespace
    budgets = [_convert(one, BudgetObject) for one in _of_kind(documents, "policy", "PodDisruptionBudget")]
    for budget in budgets:
        budget.metadata.namespace = budget.metadata.namespace or "default"
    return Facts(
        pod,
        now,
        node=_node(documents, pod),
        namespace_labels=_namespace_labels(documents, namespace),
        namespace_problem=f"the files hold no Namespace {namespace}",
        policies=[_without_nulls(one.content) for one in _of_kind(documents, GROUP, POLICY_KIND)],
        budgets=budgets,
        profiles=list(_profiles(documents, namespace)),
    )


def _profiles(documents: Sequence[Document], namespace: str) -> Iterator[dict[str, Any]]:
    for document in _of_kind(documents, GROUP, PROFILE_KIND):
        profile = _without_nulls(document.content)
        meta = profile.get("metadata")
        if not isinstance(meta, Mapping) or not isinstance(meta.get("name"), str):
            msg = f"{document.place}: {PROFILE_KIND}/{document.name}: has no metadata.name"
            raise BadInput(msg)
        if (meta.get("namespace") or "default") == namespace:
            yield {**profile, "metadata": {**meta, "namespace": namespace}}


def _node(documents: Sequence[Document], pod: PodObject) -> NodeObject | None:
    name = pod.spec.node_name
    found = [_convert(one, NodeObject) for one in _of_kind(documents, "", "Node") if one.name == name]
    if name and not found:
        msg = f"the files hold no Node {name}, which pod {pod.metadata.namespace}/{pod.metadata.name} is bound to"
        raise BadInput(msg)
    return found[-1] if found else None


def _namespace_labels(documents: Sequence[Document], name: str) -> dict[str, str] | None:
    found = [_convert(one, NamespaceObject) for one in _of_kind(documents, "", "Namespace") if one.name == name]
    # The API server sees to this label on every namespace.
    return found[-1].metadata.labels | {"kubernetes.io/metadata.name": name} if found else None


def _of_kind(documents: Sequence[Document], group: str, kind: str) -> list[Document]:
    return [one for one in documents if (one.group, one.kind) == (group, kind)]


def _convert(document: Document, wanted: type[T]) -> T:
    try:
        return msgspec.convert(_without_nulls(document.content), wanted)
    except msgspec.ValidationError as error:
        msg = f"{document.place}: {document.kind}/{document.name}: {error}"
        raise BadInput(msg) from error


def _without_nulls(value: Any) -> Any:
    """As the API server reads it: null is the same as absent."""
    if isinstance(value, Mapping):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value

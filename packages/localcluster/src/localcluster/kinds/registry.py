"""The registry of served resources: the built-in ones, and those of the stored CustomResourceDefinitions.

It contains the only list of built-in resources. Forbidden here: rules of a kind.
"""

from collections.abc import Iterator
from typing import Any

from localcluster.errors import no_such_path
from localcluster.kinds import builtin_schemas as shapes
from localcluster.kinds import events, pods
from localcluster.kinds.custom import DefinitionStrategy, resource_of
from localcluster.kinds.nodes import NodeStrategy
from localcluster.kinds.resource import Resource
from localcluster.kinds.simple import BudgetStrategy, LeaseStrategy, NamespaceStrategy
from localcluster.store.entries import Change
from localcluster.store.store import Store, timestamp

_DEFINITIONS = "customresourcedefinitions"


class Registry:
    """Resources by group, version and plural. Each has a collection in the store."""

    def __init__(self, store: Store, *, comparison_operators: bool) -> None:
        self._store = store
        self._resources: dict[tuple[str, str, str], Resource] = {}
        for resource in _built_in(store, comparison_operators=comparison_operators):
            self._add(resource)
        store.subscribe(_DEFINITIONS, self._definition_changed)

    def find(self, group: str, version: str, plural: str) -> Resource:
        """Return a resource. Raises a 404."""
        resource = self._resources.get((group, version, plural))
        if resource is None:
            raise no_such_path()
        return resource

    def by_plural(self, name: str) -> Resource:
        """Return a resource by its plural. Raises a 404."""
        for resource in self:
            if name == resource.plural:
                return resource
        raise no_such_path()

    def __iter__(self) -> Iterator[Resource]:
        return iter(tuple(self._resources.values()))

    def _add(self, resource: Resource) -> None:
        if resource.plural not in self._store:
            self._store.register(
                resource.plural,
                group=resource.group,
                namespaced=resource.namespaced,
                generation=resource.generation,
                fields=resource.fields,
            )
        self._resources[resource.group, resource.version, resource.plural] = resource

    def _definition_changed(self, change: Change) -> None:
        if change.before is not None:
            old = resource_of(change.before.decoded())
            del self._resources[old.group, old.version, old.plural]
            if change.after is None:
                self._store.forget(old.plural)
        if change.after is not None:
            self._add(resource_of(change.after.decoded()))


def _built_in(store: Store, *, comparison_operators: bool) -> Iterator[Resource]:
    def core(plural: str, kind: str, schema: Any, **more: Any) -> Resource:
        return Resource("", "v1", plural, kind, schema, **more)

    def grouped(api: str, plural: str, kind: str, schema: Any, **more: Any) -> Resource:
        group, version = api.split("/")
        return Resource(group, version, plural, kind, schema, **more)

    status = ("status",)
    yield core(
        "namespaces",
        "Namespace",
        shapes.NAMESPACE,
        namespaced=False,
        short_names=("ns",),
        subresources=status,
        strategy=NamespaceStrategy(),
        fields={"status.phase": ("status", "phase")},
    )
    yield core(
        "nodes",
        "Node",
        shapes.NODE,
        namespaced=False,
        short_names=("no",),
        subresources=status,
        strategy=NodeStrategy(),
        fields={"spec.unschedulable": ("spec", "unschedulable")},
    )
    yield core(
        "pods",
        "Pod",
        shapes.POD,
        short_names=("po",),
        subresources=("status", "eviction"),
        generation=True,
        strategy=pods.PodStrategy(comparison_operators=comparison_operators),
        fields=pods.SELECTABLE,
    )
    event = {"short_names": ("ev",), "fields": events.SELECTABLE}
    yield core("events", "Event", shapes.CORE_EVENT, strategy=events.EventStrategy(strict=False), **event)
    strict = events.EventStrategy(strict=True)
    yield grouped("events.k8s.io/v1", "events", "Event", shapes.EVENT, strategy=strict, renamed=events.RENAMED, **event)
    yield grouped(
        "policy/v1",
        "poddisruptionbudgets",
        "PodDisruptionBudget",
        shapes.BUDGET,
        short_names=("pdb",),
        subresources=status,
        generation=True,
        strategy=BudgetStrategy(),
    )
    yield grouped(
        "coordination.k8s.io/v1",
        "leases",
        "Lease",
        shapes.LEASE,
        strategy=LeaseStrategy(),
    )
    for plural, kind, short in (
        ("deployments", "Deployment", "deploy"),
        ("replicasets", "ReplicaSet", "rs"),
        ("statefulsets", "StatefulSet", "sts"),
        ("daemonsets", "DaemonSet", "ds"),
    ):
        yield grouped("apps/v1", plural, kind, {}, short_names=(short,), generation=True, read_only=True)
    yield core("replicationcontrollers", "ReplicationController", {}, generation=True, read_only=True)
    yield grouped("batch/v1", "jobs", "Job", {}, generation=True, read_only=True)
    yield grouped("batch/v1", "cronjobs", "CronJob", {}, generation=True, read_only=True)
    yield core("persistentvolumes", "PersistentVolume", {}, namespaced=False, read_only=True)
    yield grouped(
        "apiextensions.k8s.io/v1",
        _DEFINITIONS,
        "CustomResourceDefinition",
        shapes.DEFINITION,
        namespaced=False,
        short_names=("crd", "crds"),
        subresources=status,
        generation=True,
        strategy=DefinitionStrategy(lambda: timestamp(store.clock())),
    )

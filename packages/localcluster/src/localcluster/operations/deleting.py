"""Deletion: preconditions, grace, finalizers, whole namespaces.

Rules: `k8s.io/apiserver/pkg/registry/rest/delete.go`. `propagationPolicy` is accepted and ignored: no garbage
collector runs here. Forbidden here: what a kubelet does.
"""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from localcluster.errors import bad_request, conflict
from localcluster.kinds import builtin_schemas as shapes
from localcluster.kinds import schema as schemas
from localcluster.kinds.pods import grace_seconds
from localcluster.kinds.resource import Object, Resource
from localcluster.operations.options import without_nulls
from localcluster.store.entries import Entry, Selection
from localcluster.store.store import Store


class DeleteOptions(NamedTuple):
    """The DeleteOptions of a request; None is "not given"."""

    uid: str | None = None
    resource_version: str | None = None
    grace_seconds: int | None = None
    dry_run: bool = False

    @classmethod
    def parse(cls, body: Any) -> "DeleteOptions":
        """The options in a body, or in the `deleteOptions` of an Eviction. Raises a 400."""
        body = without_nulls(body or {})
        problems = schemas.check(body, shapes.DELETE_OPTIONS, "DeleteOptions")
        if problems:
            raise bad_request(f"{problems[0].field}: {problems[0].message}")
        wanted = body.get("preconditions") or {}
        return cls(
            wanted.get("uid"), wanted.get("resourceVersion"), body.get("gracePeriodSeconds"), bool(body.get("dryRun"))
        )


class Deleted(NamedTuple):
    """The last state of the object as stored, and whether it is removed."""

    value: Object
    gone: bool


class Deleter:
    """Deletes one object or many."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def delete(self, resource: Resource, namespace: str, name: str, options: DeleteOptions) -> Deleted:
        """Delete one object. Raises 404, or 409 for a failed precondition."""
        entry = self._store.entry(resource.plural, name, namespace)
        self.check_preconditions(resource, entry, options)
        if options.dry_run:
            return Deleted(entry.decoded(), gone=True)
        if resource.plural == "pods":
            return self._delete_pod(resource, entry, options)
        if resource.plural == "namespaces":
            return self._delete_namespace(entry)
        value = entry.decoded()
        if value["metadata"].get("finalizers"):
            if value["metadata"].get("deletionTimestamp"):
                return Deleted(value, gone=False)
            return Deleted(self._store.mark_deleted(resource.plural, entry, grace_seconds=0), gone=False)
        return Deleted(self._store.delete(resource.plural, name, namespace), gone=True)

    def delete_many(self, resource: Resource, selection: Selection, options: DeleteOptions) -> list[Object]:
        """Delete every object of a selection. Returns their last states."""
        collection = self._store.collection(resource.plural)
        chosen = [collection.entries[key] for key in list(collection.order)]
        keys = [entry.key for entry in chosen if selection.passes(entry)]
        return [self.delete(resource, namespace, name, options).value for namespace, name in keys]

    def check_preconditions(self, resource: Resource, entry: Entry, options: DeleteOptions) -> None:
        """Raises a 409 that names the kind, as upstream."""
        for field, wanted, have in (
            ("UID", options.uid, entry.uid),
            ("ResourceVersion", options.resource_version, str(entry.revision)),
        ):
            if wanted is not None and wanted != have:
                ending = "deleted and then recreated" if field == "UID" else "modified"
                why = (
                    f"the {field} in the precondition ({wanted}) does not match the {field} in record ({have}). "
                    f"The object might have been {ending}"
                )
                raise conflict(resource.kind, resource.group, entry.key[1], why)

    def _delete_pod(self, resource: Resource, entry: Entry, options: DeleteOptions) -> Deleted:
        value = entry.decoded()
        meta = value["metadata"]
        asked = None if options.grace_seconds is None else options.grace_seconds if options.grace_seconds >= 0 else 1
        if not meta.get("deletionTimestamp"):
            grace, at = grace_seconds(value, asked), None
        else:
            pending = meta.get("deletionGracePeriodSeconds") or 0
            if pending and (asked is None or asked >= pending):
                return Deleted(value, gone=False)  # a grace can only be shortened
            grace = asked or 0 if pending else 0
            at = self._shortened(meta, grace)
            grace = 1 if grace and at <= self._store.clock() else grace
        marked = self._store.mark_deleted(resource.plural, entry, grace_seconds=grace, at=at)
        if grace or meta.get("finalizers"):
            return Deleted(marked, gone=False)
        # a watch sees both writes, as upstream
        return Deleted(self._store.delete(resource.plural, meta["name"], meta["namespace"]), gone=True)

    def _shortened(self, meta: Object, grace: int) -> datetime:
        """The time of the deletion after its grace is shortened: never in the past."""
        planned = datetime.fromisoformat(meta["deletionTimestamp"])
        moved = planned + timedelta(seconds=grace - (meta.get("deletionGracePeriodSeconds") or 0))
        return max(moved, self._store.clock())

    def _delete_namespace(self, entry: Entry) -> Deleted:
        """Set Terminating for one revision, then remove its objects and itself: there is no namespace controller."""
        name = entry.key[1]
        value = self._store.mark_deleted("namespaces", entry, grace_seconds=0)
        value["status"] = {"phase": "Terminating"}
        value = self._store.update("namespaces", value)
        self._store.purge(name)
        self._store.delete("namespaces", name)
        return Deleted(value, gone=False)

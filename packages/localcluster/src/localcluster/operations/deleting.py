"""Deletion: preconditions, and the grace period of pods.

Rules: `k8s.io/apiserver/pkg/registry/rest/delete.go`. `propagationPolicy` is accepted and ignored, since there is no
garbage collector. Forbidden here: the work of a kubelet.
"""

from typing import Any, NamedTuple

from localcluster.errors import bad_request, conflict, not_served
from localcluster.kinds import builtin_schemas as shapes
from localcluster.kinds import schema as schemas
from localcluster.kinds.pods import grace_seconds
from localcluster.kinds.resource import Object, Resource
from localcluster.operations.decoding import without_nulls
from localcluster.store.entries import Entry
from localcluster.store.store import Store


class DeleteOptions(NamedTuple):
    """The DeleteOptions of a request. None means not given."""

    uid: str | None = None
    resource_version: str | None = None
    grace_seconds: int | None = None

    @classmethod
    def parse(cls, body: Any) -> "DeleteOptions":
        """Read the options in a body, or in the `deleteOptions` of an Eviction. Raises 400 and 501."""
        body = without_nulls(body or {})
        problems = schemas.check(body, shapes.DELETE_OPTIONS, "DeleteOptions")
        if problems:
            raise bad_request(f"{problems[0].field}: {problems[0].message}")
        if body.get("dryRun") or body.get("gracePeriodSeconds", 0) < 0:
            raise not_served("deletions with dryRun, or with a negative grace period")
        wanted = body.get("preconditions") or {}
        return cls(wanted.get("uid"), wanted.get("resourceVersion"), body.get("gracePeriodSeconds"))


class Deleter:
    """Deletes objects."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def delete(self, resource: Resource, namespace: str, name: str, options: DeleteOptions) -> Object:
        """Delete an object and return its last state. Raises 404, 409 for a failed precondition, 501."""
        entry = self._store.entry(resource.plural, name, namespace)
        self.check_preconditions(resource, entry, options)
        if resource.plural == "namespaces" or entry.decoded()["metadata"].get("finalizers"):
            raise not_served("deletions of namespaces, and of objects with finalizers")
        if resource.plural == "pods":
            return self._delete_pod(entry, options.grace_seconds)
        return self._store.delete(resource.plural, name, namespace)

    def check_preconditions(self, resource: Resource, entry: Entry, options: DeleteOptions) -> None:
        """Raise a 409 if a precondition fails. It names the kind, as upstream."""
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

    def _delete_pod(self, entry: Entry, asked: int | None) -> Object:
        value = entry.decoded()
        pending = value["metadata"].get("deletionGracePeriodSeconds")
        if pending is None:
            grace = grace_seconds(value, asked)
        elif asked is None or asked >= pending:
            return value  # a grace period can only be shortened
        elif asked:
            raise not_served("deletions that shorten the grace of a pod, except to 0")
        else:
            grace = 0
        marked = self._store.mark_deleted("pods", entry, grace_seconds=grace)
        if grace:
            return marked
        # a watch sees both writes, as upstream
        return self._store.delete("pods", entry.key[1], entry.key[0])

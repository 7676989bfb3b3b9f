"""The store: state and recent history of every kind, with one revision counter.

It implements the guarantees of etcd, and of the API machinery for metadata (uid, revision, generation). Writes are
trusted and pass no admission. All methods are synchronous, so every write is atomic. Forbidden here: rules of a kind,
HTTP, waiting.
"""

import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from localcluster.errors import MODIFIED, already_exists, bad_request, conflict, no_such_path, not_found
from localcluster.store.collection import Collection, Listener
from localcluster.store.entries import Change, Entry, Key, Object, encode, selectable

Clock = Callable[[], datetime]

FIRST_REVISION = 100  # above 1, so that a client can request a revision that is too old


def utc_now() -> datetime:
    """Return the wall clock time."""
    return datetime.now(UTC)


def timestamp(moment: datetime) -> str:
    """Return a time as `metav1.Time`, in whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Store:
    """Collections by plural, such as `pods`. `history_limit` is the maximum number of changes kept of each."""

    def __init__(self, *, history_limit: int = 20_000, clock: Clock = utc_now) -> None:
        self.clock = clock
        self.revision = FIRST_REVISION
        self.history_limit = history_limit
        self._collections: dict[str, Collection] = {}

    def register(
        self,
        name: str,
        *,
        group: str = "",
        namespaced: bool = True,
        generation: bool = False,
        fields: Mapping[str, tuple[str, ...]] | None = None,
    ) -> Collection:
        """Add a kind. `fields` are its selectable fields in addition to name and namespace."""
        collection = Collection(
            name,
            revision=self.revision,
            history_limit=self.history_limit,
            group=group,
            namespaced=namespaced,
            generation=generation,
            fields=fields,
        )
        self._collections[name] = collection
        return collection

    def forget(self, name: str) -> None:
        """Remove a kind, with all its objects."""
        collection = self._collections.pop(name)
        for namespace, key in list(collection.order):
            self._remove(collection, (namespace, key))

    def collection(self, name: str) -> Collection:
        """Return a collection by its plural. Raises a 404."""
        found = self._collections.get(name)
        if found is None:
            raise no_such_path()
        return found

    def __contains__(self, name: str) -> bool:
        return name in self._collections

    # Reading

    def entry(self, resource: str, name: str, namespace: str = "") -> Entry:
        """Return the newest state, encoded. Raises a 404."""
        collection = self.collection(resource)
        entry = collection.entries.get((namespace if collection.namespaced else "", name))
        if entry is None:
            raise not_found(collection.name, collection.group, name)
        return entry

    def get(self, resource: str, name: str, namespace: str = "") -> Object:
        """Return a copy of the newest state. Raises a 404."""
        return self.entry(resource, name, namespace).decoded()

    def list(self, resource: str, namespace: str = "") -> list[Object]:
        """Return copies of all objects, ordered by namespace and name."""
        collection = self.collection(resource)
        return [collection.entries[key].decoded() for key in collection.order if not namespace or key[0] == namespace]

    def subscribe(self, resource: str, listener: Listener) -> Callable[[], None]:
        """Call `listener` synchronously on each change. It must not write. Returns a function to unsubscribe."""
        listeners = self.collection(resource).listeners
        listeners.append(listener)
        return lambda: listeners.remove(listener)

    # Writing

    def create(self, resource: str, value: Object) -> Object:
        """Add an object with uid, creationTimestamp and generation, and return it. Raises 400 and 409."""
        collection = self.collection(resource)
        value = _without_kind(value)
        meta = dict(value.get("metadata") or {})
        value["metadata"] = meta
        key = self._key(collection, meta)
        if key in collection.entries:
            raise already_exists(collection.name, collection.group, meta["name"])
        meta["uid"] = meta.get("uid") or str(uuid.uuid4())
        meta["creationTimestamp"] = meta.get("creationTimestamp") or timestamp(self.clock())
        meta.pop("resourceVersion", None)
        if collection.generation:
            meta.setdefault("generation", 1)
        return self._write(collection, None, value)

    def update(self, resource: str, value: Object) -> Object:
        """Replace an object if it differs. Raises a 404; a 409 if it has a resourceVersion other than the newest.

        The generation grows if anything except metadata and status differs.
        """
        collection = self.collection(resource)
        value = _without_kind(value)
        meta = value["metadata"] = dict(value.get("metadata") or {})
        key = self._key(collection, meta)
        before = collection.entries.get(key)
        if before is None:
            raise not_found(collection.name, collection.group, meta.get("name", ""))
        if meta.get("resourceVersion") not in {None, "", str(before.revision)}:
            raise conflict(collection.name, collection.group, key[1], MODIFIED)
        old = before.decoded()
        for field in ("uid", "creationTimestamp", "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds"):
            _keep(meta, old["metadata"], field)
        if collection.generation:
            grown = _spec_of(value) != _spec_of(old)
            meta["generation"] = old["metadata"].get("generation", 1) + (1 if grown else 0)
        return value if value == old else self._write(collection, before, value)

    def modify(self, resource: str, name: str, namespace: str, change: Callable[[Object], None]) -> Object:
        """Read an object, let `change` modify the copy in place, and write it. Raises a 404."""
        value = self.get(resource, name, namespace)
        change(value)
        return self.update(resource, value)

    def delete(self, resource: str, name: str, namespace: str = "") -> Object:
        """Remove an object at once, despite grace period and finalizers. Returns its last state. Raises a 404."""
        return self._remove(self.collection(resource), self.entry(resource, name, namespace).key).decoded()

    def mark_deleted(self, resource: str, entry: Entry, *, grace_seconds: int) -> Object:
        """Set deletionTimestamp (now plus the grace) and deletionGracePeriodSeconds. Generation grows once."""
        collection = self.collection(resource)
        value = entry.decoded()
        meta = value["metadata"]
        if "deletionTimestamp" not in meta and "generation" in meta:
            meta["generation"] += 1
        moment = self.clock() + timedelta(seconds=grace_seconds)
        meta["deletionTimestamp"] = timestamp(moment)
        meta["deletionGracePeriodSeconds"] = grace_seconds
        return value if value == entry.decoded() else self._write(collection, entry, value)

    def compact(self, resource: str | None = None) -> None:
        """Drop the history of one kind, or of all. New watches and continue tokens of an older revision get a 410."""
        for collection in [self.collection(resource)] if resource else self._collections.values():
            collection.history.clear()
            collection.oldest = self.revision

    # Inside

    def _key(self, collection: Collection, meta: Object) -> Key:
        if not meta.get("name"):
            raise bad_request("name is required")
        if not collection.namespaced:
            meta.pop("namespace", None)
            return "", meta["name"]
        namespace = meta.setdefault("namespace", "default")
        return namespace, meta["name"]

    def _write(self, collection: Collection, before: Entry | None, value: Object) -> Object:
        self.revision += 1
        meta = value["metadata"]
        meta["resourceVersion"] = str(self.revision)
        value = {"metadata": value.pop("metadata"), **value}
        entry = Entry(
            (meta.get("namespace", ""), meta["name"]),
            self.revision,
            meta["uid"],
            encode(value),
            dict(meta.get("labels") or {}),
            selectable(value, collection.fields),
        )
        collection.record(Change(self.revision, before, entry))
        return value

    def _remove(self, collection: Collection, key: Key) -> Entry:
        self.revision += 1
        change = Change(self.revision, collection.entries[key], None)
        collection.record(change)
        return change.departed_state()


def _without_kind(value: Object) -> Object:
    return {key: item for key, item in value.items() if key not in {"kind", "apiVersion"}}


def _keep(meta: Object, old: Object, field: str) -> None:
    if field in old:
        meta[field] = old[field]
    else:
        meta.pop(field, None)


def _spec_of(value: Object) -> Object:
    return {key: item for key, item in value.items() if key not in {"metadata", "status"}}

"""Handling of one request: from its target, verb and parameters to an operation and a response.

Forbidden here: faults (see `app`), watches (see `streams`).
"""

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from localcluster.errors import ApiError, bad_request, not_served
from localcluster.http import media, tables
from localcluster.kinds.registry import Registry
from localcluster.kinds.resource import Object, Resource, Target
from localcluster.operations.deleting import DeleteOptions, Deleter
from localcluster.operations.evicting import Evictor
from localcluster.operations.writing import Writer
from localcluster.store import selectors
from localcluster.store.entries import Entry, Selection, encode
from localcluster.store.listing import page
from localcluster.store.store import Store

_APPLY = "apply-patch+yaml"


class Handlers:
    """Handles all requests except watches."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self._store = store
        self._writer = Writer(store)
        self._deleter = Deleter(store)
        self._evictor = Evictor(store, self._deleter, registry.by_plural("pods"))

    async def handle(self, request: web.Request, target: Target) -> web.Response:
        """Return the response to a request that is not a watch."""
        if request.method == "GET":
            accept = request.headers.get("Accept", "")
            media.check_accept(accept)
            as_table = tables.wants_table(accept, target.resource)
            return self._list(request.query, target, as_table=as_table) if not target.name else self._get(target)
        if "dryRun" in request.query:
            raise not_served("dryRun")
        body = await media.body_of(request)
        if request.method == "DELETE":
            return self._delete(request.query, target, body)
        agent = request.headers.get("User-Agent", "").partition("/")[0][:128]
        manager = request.query.get("fieldManager") or agent or "unknown"
        if request.method == "POST":
            return self._post(target, body, manager)
        if request.method == "PUT" and target.name:
            return media.respond(self._writer.update(target, body, manager))
        if request.method == "PATCH" and target.name:
            return self._patch(request, target, body, manager)
        raise method_not_allowed()

    def _get(self, target: Target) -> web.Response:
        if target.subresource not in {"", "status"}:
            raise method_not_allowed()
        entry = self._store.entry(target.resource.plural, target.name, target.namespace)
        return media.respond(encoded_object(target.resource, entry))

    def _list(self, query: Mapping[str, str], target: Target, *, as_table: bool) -> web.Response:
        resource = target.resource
        collection = self._store.collection(resource.plural)
        if "resourceVersionMatch" in query or resource.renamed:
            raise not_served("resourceVersionMatch, and lists of events in events.k8s.io")
        found = page(
            collection,
            selection_of(query, target, collection.fields),
            self._store.revision,
            limit=_integer(query, "limit"),
            token=query.get("continue", ""),
            revision=query.get("resourceVersion", ""),
        )
        metadata = {"resourceVersion": str(found.revision), **({"continue": found.token} if found.token else {})}
        if as_table:
            table = tables.table(resource, found.entries, metadata, self._store.clock())
            return media.respond(table, content_type=tables.CONTENT_TYPE)
        return media.respond(self._encoded_list(resource, found.entries, metadata))

    def _encoded_list(self, resource: Resource, entries: list[Entry], metadata: Object) -> bytes:
        """Return stored objects as a list in JSON. Only items of custom kinds have kind and apiVersion."""
        bodies = [entry.body for entry in entries]
        if resource.custom:
            prefix = resource.prefix
            bodies = [prefix + body[1:] for body in bodies]
        head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": metadata}
        return encode(head)[:-1] + b',"items":[' + b",".join(bodies) + b"]}"

    def _post(self, target: Target, body: Any, manager: str) -> web.Response:
        if target.subresource == "eviction":
            return media.respond(self._evictor.evict(target.namespace, target.name, body), 201)
        if target.name or (target.resource.namespaced and not target.namespace):
            raise method_not_allowed()
        return media.respond(self._writer.create(target, body, manager), 201)

    def _patch(self, request: web.Request, target: Target, body: Any, manager: str) -> web.Response:
        form = request.content_type.removeprefix("application/")
        if form != _APPLY:
            return media.respond(self._writer.patch(target, form, body, manager))
        if "fieldManager" not in request.query:
            text = 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
            raise ApiError(422, "Invalid", text)
        force = request.query.get("force") in {"true", "1"}
        return media.respond(self._writer.apply(target, body, manager, force=force))

    def _delete(self, query: Mapping[str, str], target: Target, body: Any) -> web.Response:
        if target.subresource:
            raise method_not_allowed()
        if not target.name:
            raise not_served("deletions of a collection")
        options = DeleteOptions.parse(body)
        if "gracePeriodSeconds" in query:
            options = options._replace(grace_seconds=_integer(query, "gracePeriodSeconds"))
        resource = target.resource
        value = self._deleter.delete(resource, target.namespace, target.name, options)
        return media.respond(resource.render(value) if resource.plural == "pods" else _deletion_status(resource, value))


def _deletion_status(resource: Resource, value: Object) -> Object:
    details = {"name": value["metadata"]["name"], "group": resource.group, "kind": resource.plural}
    details["uid"] = value["metadata"]["uid"]
    kept = {name: text for name, text in details.items() if text}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": kept}


def encoded_object(resource: Resource, entry: Entry) -> bytes:
    """Return a stored object as JSON of the requested version."""
    return encode(resource.render(entry.decoded())) if resource.renamed else resource.prefix + entry.body[1:]


def selection_of(query: Mapping[str, str], target: Target, fields: Mapping[str, Any]) -> Selection:
    """Return the selection of a list or watch. Raises a 400."""
    return Selection(
        target.namespace,
        selectors.parse_labels(query.get("labelSelector", "")),
        selectors.parse_fields(query.get("fieldSelector", ""), tuple(fields)),
    )


def method_not_allowed() -> ApiError:
    """405: the resource does not support the method."""
    text = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", text)


def _integer(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "") or "0"
    try:
        return int(text)
    except ValueError as error:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from error

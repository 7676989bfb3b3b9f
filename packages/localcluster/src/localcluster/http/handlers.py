"""One request: from its target, verb and parameters to an operation and a response.

Forbidden here: faults, authentication, watches; see `app` and `streams`.
"""

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from localcluster.errors import ApiError, bad_request, not_served
from localcluster.faults import GARBLED, Faults
from localcluster.http import media, tables
from localcluster.kinds.registry import Registry
from localcluster.kinds.resource import Object, Resource, Target
from localcluster.operations.binding import bind
from localcluster.operations.deleting import DeleteOptions, Deleter
from localcluster.operations.evicting import Evictor
from localcluster.operations.options import Options
from localcluster.operations.writing import Writer
from localcluster.store import selectors
from localcluster.store.entries import Entry, Selection, encode
from localcluster.store.listing import page
from localcluster.store.store import Store

_APPLY = "apply-patch+yaml"


class Handlers:
    """Everything except watches."""

    def __init__(self, store: Store, registry: Registry, faults: Faults) -> None:
        self._store = store
        self._faults = faults
        self._writer = Writer(store)
        self._deleter = Deleter(store)
        self._evictor = Evictor(store, self._deleter, registry.named("pods"))

    async def handle(self, request: web.Request, target: Target) -> web.Response:
        """The response to a request that is not a watch."""
        if request.method == "GET":
            accept = request.headers.get("Accept", "")
            media.check_accept(accept)
            as_table = tables.wants_table(accept, target.resource)
            return self._list(request.query, target, as_table=as_table) if not target.name else self._get(target)
        body = await media.body_of(request)
        if request.method == "DELETE":
            return self._delete(request.query, target, body)
        options = write_options(request)
        if request.method == "POST":
            return self._post(target, body, options)
        if request.method == "PUT" and target.name:
            value, created = self._writer.update(target, body, options)
            return media.respond(value, 201 if created else 200, warnings=options.warnings)
        if request.method == "PATCH" and target.name:
            return self._patch(request, target, body, options)
        raise method_not_allowed()

    def _get(self, target: Target) -> web.Response:
        if target.subresource not in {"", "status"}:
            raise method_not_allowed()
        entry = self._store.entry(target.resource.plural, target.name, target.namespace)
        return media.respond(body_of(target.resource, entry))

    def _list(self, query: Mapping[str, str], target: Target, *, as_table: bool) -> web.Response:
        resource = target.resource
        collection = self._store.collection(resource.plural)
        if "resourceVersionMatch" in query or resource.view:
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
        return media.respond(self._encoded(resource, found.entries, metadata))

    def _encoded(self, resource: Resource, entries: list[Entry], metadata: Object) -> bytes:
        """A list of stored bytes. Items of built-in kinds carry no kind and no apiVersion, custom ones do."""
        bodies = [entry.body for entry in entries]
        if bodies and self._faults.strike_list(resource.plural):
            bodies[0] = garbled(bodies[0])
        if resource.custom:
            prefix = resource.prefix
            bodies = [prefix + body[1:] for body in bodies]
        head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": metadata}
        return encode(head)[:-1] + b',"items":[' + b",".join(bodies) + b"]}"

    def _post(self, target: Target, body: Any, options: Options) -> web.Response:
        if target.subresource == "eviction":
            status = self._evictor.evict(target.namespace, target.name, body, dry_run=options.dry_run)
            return media.respond(status, 201)
        if target.subresource == "binding":
            return media.respond(bind(self._store, target.namespace, target.name, body, dry_run=options.dry_run), 201)
        if target.name or (target.resource.namespaced and not target.namespace):
            raise method_not_allowed()
        value = self._writer.create(target, body, options)
        return media.respond(value, 201, warnings=options.warnings)

    def _patch(self, request: web.Request, target: Target, body: Any, options: Options) -> web.Response:
        form = request.content_type.removeprefix("application/")
        if form != _APPLY:
            value = self._writer.patch(target, form, body, options)
            return media.respond(value, warnings=options.warnings)
        if "fieldManager" not in request.query:
            text = 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
            raise ApiError(422, "Invalid", text)
        return media.respond(self._writer.apply(target, body, options))

    def _delete(self, query: Mapping[str, str], target: Target, body: Any) -> web.Response:
        if target.subresource:
            raise method_not_allowed()
        options = DeleteOptions.parse(body)
        if "gracePeriodSeconds" in query:
            options = options._replace(grace_seconds=_integer(query, "gracePeriodSeconds"))
        if query.get("dryRun"):
            options = options._replace(dry_run=True)
        resource = target.resource
        if not target.name:
            fields = self._store.collection(resource.plural).fields
            values = self._deleter.delete_many(resource, selection_of(query, target, fields), options)
            head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version}
            metadata = {"resourceVersion": str(self._store.revision)}
            return media.respond({**head, "metadata": metadata, "items": values})
        deleted = self._deleter.delete(resource, target.namespace, target.name, options)
        if not deleted.gone or resource.returns_deleted:
            return media.respond(resource.shown(deleted.value))
        return media.respond(_deletion_status(resource, deleted.value))


def _deletion_status(resource: Resource, value: Object) -> Object:
    details = {"name": value["metadata"]["name"], "group": resource.group, "kind": resource.plural}
    details["uid"] = value["metadata"]["uid"]
    kept = {name: text for name, text in details.items() if text}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": kept}


def body_of(resource: Resource, entry: Entry) -> bytes:
    """One object in the form of its version."""
    return encode(resource.shown(entry.decoded())) if resource.view else resource.prefix + entry.body[1:]


def garbled(body: bytes) -> bytes:
    """Valid JSON in which the metadata has types that no client expects."""
    return body.replace(b'"metadata":{', b'"metadata":{' + GARBLED + b",", 1)


def selection_of(query: Mapping[str, str], target: Target, fields: Mapping[str, Any]) -> Selection:
    """What a list, watch or collective deletion is restricted to. Raises a 400."""
    return Selection(
        target.namespace,
        selectors.parse_labels(query.get("labelSelector", "")),
        selectors.parse_fields(query.get("fieldSelector", ""), tuple(fields)),
    )


def write_options(request: web.Request) -> Options:
    """The options in the query; the default field manager is from the User-Agent. Raises a 400."""
    dry_run = request.query.getall("dryRun", [])
    if dry_run not in ([], ["All"]):
        raise bad_request(f'dryRun: Unsupported value: "{dry_run}": supported values: "All"')
    agent = request.headers.get("User-Agent", "").partition("/")[0][:128]
    return Options(
        manager=request.query.get("fieldManager") or agent or "unknown",
        dry_run=bool(dry_run),
        validation=request.query.get("fieldValidation") or "Warn",
        force=request.query.get("force") in {"true", "1"},
    )


def method_not_allowed() -> ApiError:
    """405."""
    text = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", text)


def _integer(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "") or "0"
    try:
        return int(text)
    except ValueError as error:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from error

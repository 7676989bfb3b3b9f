"""OpenAPI v3, as little as clients need: that the server validates fields itself, and the schemas of custom kinds.

kubectl reads the query parameter `fieldValidation` here before it sends objects. Forbidden here: more than that.
"""

from typing import Any

from localcluster.errors import no_such_path
from localcluster.kinds.registry import Registry
from localcluster.kinds.resource import Resource

Object = dict[str, Any]

_QUERY = ("dryRun", "fieldManager", "fieldValidation", "force")


def index(registry: Registry) -> Object:
    """`/openapi/v3`."""
    paths = sorted({_root(resource) for resource in registry})
    return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}"} for path in paths}}


def document(registry: Registry, path: str) -> Object:
    """`/openapi/v3/PATH`, where the path is that of a group and version. Raises a 404."""
    served = [resource for resource in registry if _root(resource) == path]
    if not served:
        raise no_such_path()
    info = {"title": "Kubernetes", "version": "unversioned"}
    return {
        "openapi": "3.0.0",
        "info": info,
        "paths": {_path(resource): _operations(resource) for resource in served},
        "components": {"schemas": {_name(resource): _schema(resource) for resource in served}},
    }


def document_v2() -> Object:
    """`/openapi/v2`: nothing in it."""
    return {"swagger": "2.0", "info": {"title": "Kubernetes", "version": "unversioned"}, "paths": {}, "definitions": {}}


def _root(resource: Resource) -> str:
    return f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}"


def _path(resource: Resource) -> str:
    scope = "namespaces/{namespace}/" if resource.namespaced else ""
    return f"/{_root(resource)}/{scope}{resource.plural}/{{name}}"


def _identity(resource: Resource) -> Object:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _operations(resource: Resource) -> Object:
    parameters = [{"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}} for name in _QUERY]
    operation = {
        "parameters": parameters,
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-group-version-kind": _identity(resource),
    }
    return {method: {**operation, "x-kubernetes-action": method} for method in ("put", "patch")}


def _name(resource: Resource) -> str:
    turned = ".".join(reversed((resource.group or "core.api.k8s.io").split(".")))
    return f"{turned}.{resource.version}.{resource.kind}"


def _schema(resource: Resource) -> Object:
    body = _plain(resource.schema) if resource.custom else {"type": "object"}
    return {**body, "x-kubernetes-group-version-kind": [_identity(resource)]}


def _plain(schema: Any) -> Any:
    """Without the short forms that only this package supports."""
    if isinstance(schema, dict):
        return {name: _plain(item) for name, item in schema.items() if not (name == "format" and item == "time")}
    return [_plain(item) for item in schema] if isinstance(schema, list) else schema

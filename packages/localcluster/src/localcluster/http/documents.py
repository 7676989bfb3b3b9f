"""Discovery documents that kubectl reads first: groups and resources, and support for field validation.

Clients read these documents if a server offers no aggregated discovery. Forbidden here: schemas.
"""

from typing import Any

from localcluster.errors import no_such_path
from localcluster.kinds.registry import Registry
from localcluster.kinds.resource import Object, Resource

_VERBS = ("create", "delete", "get", "list", "patch", "update", "watch")
_OPENAPI = "/openapi/v3"


def document(path: str, registry: Registry) -> Object:
    """Return the document at a path. Raises a 404."""
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
    if path == "/apis":
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": _groups(registry)}
    if path == _OPENAPI:
        paths = sorted({_root(resource) for resource in registry})
        return {"paths": {path: {"serverRelativeURL": f"{_OPENAPI}/{path}"} for path in paths}}
    root = path.removeprefix(_OPENAPI).removeprefix("/")
    served = [resource for resource in registry if _root(resource) == root]
    if not served:
        raise no_such_path()
    if path.startswith(_OPENAPI):
        info = {"title": "Kubernetes", "version": "unversioned"}
        return {"openapi": "3.0.0", "info": info, "paths": {f"/{root}/{one.plural}": _patch(one) for one in served}}
    rows = [row for resource in served for row in _rows(resource)]
    version = served[0].api_version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": rows}


def _root(resource: Resource) -> str:
    return f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}"


def _groups(registry: Registry) -> list[Object]:
    groups: dict[str, Object] = {}
    for resource in registry:
        if resource.group:
            entry = {"groupVersion": resource.api_version, "version": resource.version}
            groups[resource.group] = {"name": resource.group, "versions": [entry], "preferredVersion": entry}
    return list(groups.values())


def _rows(resource: Resource) -> list[Object]:
    about: dict[str, Any] = {"singularName": "", "namespaced": resource.namespaced, "kind": resource.kind}
    whole: Object = {
        "singularName": resource.kind.lower(),
        "shortNames": list(resource.short_names),
        "verbs": list(_VERBS),
    }
    below: dict[str, Object] = {
        "status": {"verbs": ["get", "patch", "update"]},
        "eviction": {"group": "policy", "version": "v1", "kind": "Eviction", "verbs": ["create"]},
    }
    names = [(f"{resource.plural}/{name}", below[name]) for name in resource.subresources]
    return [{**about, "name": name, **more} for name, more in [(resource.plural, whole), *names]]


def _patch(resource: Resource) -> Object:
    """Return an operation with the parameter `fieldValidation`, for which kubectl looks before it sends objects."""
    identity = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    parameter = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}
    operation = {"parameters": [parameter], "responses": {}, "x-kubernetes-group-version-kind": identity}
    return {"patch": operation}

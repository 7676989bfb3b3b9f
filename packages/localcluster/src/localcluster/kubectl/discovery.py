"""Discovery: the groups, versions and resources that are served.

The documents that clients fall back to when a server does not offer aggregated discovery. Forbidden here: OpenAPI.
"""

from typing import Any

from localcluster.errors import no_such_path
from localcluster.kinds.registry import Registry
from localcluster.kinds.resource import Resource

Object = dict[str, Any]

_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_ACTIONS = {"eviction": ("policy", "v1", "Eviction"), "binding": ("", "", "Binding")}


def version_info(version: str) -> Object:
    """`/version`."""
    major, minor, _ = version.removeprefix("v").split(".", 2)
    return {"major": major, "minor": minor, "gitVersion": version, "platform": "inside/the-process"}


def api_versions() -> Object:
    """`/api`."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def group_list(registry: Registry) -> Object:
    """`/apis`."""
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": list(_groups(registry).values())}


def group(registry: Registry, name: str) -> Object:
    """`/apis/GROUP`. Raises a 404."""
    found = _groups(registry).get(name)
    if found is None:
        raise no_such_path()
    return {"kind": "APIGroup", "apiVersion": "v1", **found}


def _groups(registry: Registry) -> dict[str, Object]:
    groups: dict[str, Object] = {}
    for resource in registry:
        if resource.group:
            entry = {"groupVersion": resource.api_version, "version": resource.version}
            known = groups.setdefault(
                resource.group, {"name": resource.group, "versions": [], "preferredVersion": entry}
            )
            if entry not in known["versions"]:
                known["versions"].append(entry)
    return groups


def resource_list(registry: Registry, group_name: str, version: str) -> Object:
    """`/api/v1` and `/apis/GROUP/VERSION`. Raises a 404."""
    served = [one for one in registry if (one.group, one.version) == (group_name, version)]
    if not served:
        raise no_such_path()
    rows = [row for resource in served for row in _rows(resource)]
    api_version = served[0].api_version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": rows}


def _rows(resource: Resource) -> list[Object]:
    row: Object = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(_VERBS),
    }
    if resource.short_names:
        row["shortNames"] = list(resource.short_names)
    if resource.categories:
        row["categories"] = list(resource.categories)
    below = [_subresource(resource, name) for name in resource.subresources]
    return [row, *below]


def _subresource(resource: Resource, name: str) -> Object:
    row = {"name": f"{resource.plural}/{name}", "singularName": "", "namespaced": resource.namespaced}
    if name == "status":
        return {**row, "kind": resource.kind, "verbs": ["get", "patch", "update"]}
    group_name, version, kind = _ACTIONS[name]
    where = {"group": group_name, "version": version} if group_name else {}
    return {**row, **where, "kind": kind, "verbs": ["create"]}

"""Parsing of a path into resource, namespace, name and subresource.

Rules: `k8s.io/apiserver/pkg/endpoints/request/requestinfo.go`. Forbidden here: handling the request.
"""

from urllib.parse import unquote

from localcluster.errors import no_such_path
from localcluster.kinds.registry import Registry
from localcluster.kinds.resource import Target


def parse_path(path: str, registry: Registry) -> Target:
    """Return the target of a path below `/api/VERSION` or `/apis/GROUP/VERSION`. Raises a 404."""
    api, *parts = [unquote(part) for part in path.strip("/").split("/")]
    group, version, *rest = ["", *parts] if api == "api" else parts
    namespace = ""
    if len(rest) >= 3 and rest[0] == "namespaces" and not (group == "" and rest[2] in {"status", "finalize"}):
        _, namespace, *rest = rest
    if not rest or len(rest) > 3:
        raise no_such_path()
    resource = registry.find(group, version, rest[0])
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and subresource not in resource.subresources:
        raise no_such_path()
    if bool(namespace) != resource.namespaced and (namespace or name):
        raise no_such_path()
    return Target(resource, namespace, name, subresource)

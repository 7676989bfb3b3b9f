"""The target of a request: resource, namespace, name and subresource from its path.

Rules: `k8s.io/apiserver/pkg/endpoints/request/requestinfo.go`. Forbidden here: acting on it.
"""

from urllib.parse import unquote

from localcluster.errors import no_such_path
from localcluster.kinds.registry import Registry
from localcluster.kinds.resource import Target


def group_version(path: str) -> tuple[str, str, list[str]]:
    """API group, version and the rest of a path under `/api` or `/apis`. Raises a 404."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) >= 2:
        return "", parts[1], parts[2:]
    if parts[0] == "apis" and len(parts) >= 3:
        return parts[1], parts[2], parts[3:]
    raise no_such_path()


def parse(path: str, registry: Registry) -> Target:
    """The target of a path. Raises a 404 for one that no resource is served at."""
    group, version, rest = group_version(path)
    namespace = ""
    if len(rest) >= 3 and rest[0] == "namespaces" and not (group == "" and rest[2] in {"status", "finalize"}):
        namespace, rest = rest[1], rest[2:]
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

"""Decoding of an object from the body of a request, with a check of types and unknown fields.

Forbidden here: access to the store.
"""

from typing import Any

from localcluster.errors import ApiError, bad_request, invalid, wrong
from localcluster.kinds import schema as schemas
from localcluster.kinds.resource import Object, Resource


def decode(resource: Resource, body: Any, *, patched: str | None = None) -> Object:
    """Return the stored form of a body. Raises a 400, for patches also a 422. `patched` is the text of the patch.

    Unknown fields are always refused, as with `fieldValidation=Strict`.
    """
    if not isinstance(body, dict):
        raise bad_request(f"couldn't decode the request body as a {resource.kind}")
    _check_type(resource, body)
    value = {name: item for name, item in body.items() if name not in {"kind", "apiVersion"}}
    unknown = schemas.unknown_fields(value, resource.schema)
    if unknown:
        text = "strict decoding error: " + ", ".join(f'unknown field "{path}"' for path in unknown)
        raise _undecodable(resource, text, patched)
    if not resource.custom:
        value = without_nulls(value)
        problems = schemas.check(value, resource.schema)
        if problems:
            raise _undecodable(resource, f"json: cannot unmarshal {problems[0].field}: {problems[0].message}", patched)
    elif isinstance(value.get("metadata"), dict):
        value["metadata"] = without_nulls(value["metadata"])
    if not isinstance(value.setdefault("metadata", {}), dict):
        raise bad_request(f"{resource.kind}.metadata: expected an object")
    _omit_empty(value, custom=resource.custom)
    return {resource.renamed.get(name, name): item for name, item in value.items()}


def _check_type(resource: Resource, body: Object) -> None:
    kind, version = body.get("kind"), body.get("apiVersion")
    if resource.custom and not kind:
        raise bad_request(f"Object 'Kind' is missing in {body!r}"[:300])
    if kind not in {None, "", resource.kind}:
        raise bad_request(f'no kind "{kind}" is registered for version "{version}" at this path: want {resource.kind}')
    if version not in {None, "", resource.api_version}:
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version ({resource.api_version})"
        )


def _undecodable(resource: Resource, text: str, patched: str | None) -> ApiError:
    if patched is not None:
        return invalid("", "", "", [wrong("patch", patched, text)])
    kind, version = resource.kind, resource.version
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {text}')


_OMITTED = {"spec": ("podCIDRs", "taints", "tolerations"), "status": ("conditions",)}


def _omit_empty(value: Object, *, custom: bool) -> None:
    """Remove empty values as Go's `omitempty` does: all in metadata, and some lists of built-in kinds."""
    value["metadata"] = {name: item for name, item in value["metadata"].items() if item not in ({}, [], "")}
    for part, names in () if custom else _OMITTED.items():
        for name in names:
            if isinstance(value.get(part), dict) and value[part].get(name) == []:
                del value[part][name]


def without_nulls(value: Any) -> Any:
    """Remove nulls, which count as absent in built-in kinds."""
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value

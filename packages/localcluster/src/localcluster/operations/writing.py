"""The operations create, update, patch and apply.

The order of steps is that of upstream: decode, prepare (defaults and admission), validate, store.
Forbidden here: rules of a kind, which are in its strategy.
"""

import random
from typing import Any

from localcluster.errors import (
    MODIFIED,
    ApiError,
    Cause,
    bad_request,
    conflict,
    invalid,
    not_found,
    not_served,
    required,
    wrong,
)
from localcluster.kinds.names import check_metadata
from localcluster.kinds.resource import Object, Resource, Target
from localcluster.operations.applying import apply, check_config, track
from localcluster.operations.decoding import decode
from localcluster.operations.patching import merge_patch
from localcluster.store.entries import encode
from localcluster.store.store import Store

_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
_SERVER_SET = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)

MERGE, STRATEGIC = "merge-patch+json", "strategic-merge-patch+json"


class Writer:
    """Writes with admission and validation. Every method returns the object in the form of the requested version."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def create(self, target: Target, body: Any, manager: str) -> Object:
        """Create an object (POST). Raises 400, 403, 404 (namespace), 409, 422, 500, 501."""
        if target.resource.read_only:
            raise not_served(f"writes of {target.resource.plural}")
        resource, value = target.resource, decode(target.resource, body)
        meta = value["metadata"]
        if meta.get("resourceVersion"):
            raise ApiError(500, "InternalError", "resourceVersion should not be set on objects to be created")
        if resource.namespaced:
            _match_namespace(meta, target.namespace)
            self._check_namespace(target.namespace)
        else:
            meta.pop("namespace", None)
        for field in (*_SERVER_SET, "managedFields"):
            meta.pop(field, None)
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = meta["generateName"] + "".join(random.choices(_SUFFIX, k=5))  # noqa: S311 names, no secrets
        if resource.custom and resource.has_status:
            value.pop("status", None)
        if resource.plural == "nodes":
            track({}, meta, (manager, "Update"))
        resource.strategy.prepare_create(value)
        self._validate(resource, value, None)
        return resource.render(self._store.create(resource.plural, value))

    def update(self, target: Target, body: Any, manager: str) -> Object:
        """Replace the newest version of an object (PUT). Raises 400, 404, 409, 422, 501."""
        resource, value = target.resource, decode(target.resource, body)
        meta = value["metadata"]
        _match_url(meta, target)
        old = self._read(target)
        uid = old["metadata"]["uid"]
        if meta.get("uid") not in {None, "", uid}:
            why = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {uid}"
            raise conflict(resource.plural, resource.group, target.name, why)
        if not meta.get("resourceVersion"):
            cause = wrong("metadata.resourceVersion", 0, "must be specified for an update")
            raise invalid(resource.kind, resource.group, target.name, [cause])
        return self._finish(target, old, value, manager)

    def patch(self, target: Target, form: str, patch: Any, manager: str) -> Object:
        """Apply a JSON merge patch or a strategic merge patch (PATCH). Raises 400, 404, 409, 415, 422, 501."""
        old = self._read(target)
        body = _patched(target.resource, form, target.resource.render(old), patch)
        value = decode(target.resource, body, patched=encode(patch).decode())
        _match_url(value["metadata"], target)
        return self._finish(target, old, value, manager)

    def apply(self, target: Target, config: Any, manager: str, *, force: bool) -> Object:
        """Apply a configuration to a node (server-side apply). Raises 400, 409, 422, 501."""
        if target.resource.plural != "nodes" or target.subresource or not force:
            raise not_served("server-side apply, except to nodes and with force")
        if isinstance(config, dict) and not (config.get("kind") and config.get("apiVersion")):
            raise bad_request("invalid object type: kind and apiVersion are required")
        value = decode(target.resource, config)
        meta = value["metadata"]
        _match_url(meta, target)
        check_config(value)
        try:
            old = self._read(target)
        except ApiError:
            if not meta.get("uid"):
                raise not_served("server-side apply that creates an object") from None
            why = f"uid mismatch: the provided object specified uid {meta['uid']}, and no existing object was found"
            raise conflict("nodes", "", target.name, why) from None
        owner = manager, "Apply"
        merged = {**apply(old["metadata"], meta, owner), "resourceVersion": meta.get("resourceVersion")}
        return self._finish(target, old, {**old, "metadata": {**merged, "uid": meta.get("uid")}}, manager, applied=True)

    # Shared steps

    def _finish(self, target: Target, old: Object, value: Object, manager: str, *, applied: bool = False) -> Object:
        """Prepare, validate, track and store the object that replaces `old`."""
        resource = target.resource
        meta, old_meta = value["metadata"], old["metadata"]
        name = old_meta["name"]
        if meta.get("uid") not in {None, "", old_meta["uid"]}:
            cause = wrong("metadata.uid", meta["uid"], "field is immutable")
            raise invalid(resource.kind, resource.group, name, [cause])
        if meta.get("resourceVersion") not in {None, "", old_meta["resourceVersion"]}:
            raise conflict(resource.plural, resource.group, name, MODIFIED)
        if meta.get("finalizers") != old_meta.get("finalizers"):
            raise not_served("changes of finalizers")
        managed = meta.get("managedFields")
        for field in (*_SERVER_SET, "managedFields", "namespace", "name"):
            meta.pop(field, None)
            if field in old_meta:
                meta[field] = old_meta[field]
        if target.subresource:
            resource.strategy.prepare_status(value, old)
        else:
            resource.strategy.prepare_update(value, old, has_status=resource.has_status)
        self._validate(resource, value, old)
        if applied:
            value["metadata"]["managedFields"] = managed
        elif resource.plural == "nodes":
            track(old_meta, value["metadata"], (manager, "Update"))
        return resource.render(self._store.update(resource.plural, value))

    def _validate(self, resource: Resource, value: Object, old: Object | None) -> None:
        meta = value["metadata"]
        if not meta.get("name"):
            cause = required("metadata.name", "name or generateName is required")
            raise invalid(resource.kind, resource.group, "", [cause])
        causes: list[Cause] = check_metadata(meta, is_dns_label=resource.strategy.has_dns_label_names)
        causes += resource.strategy.validate(value, old)
        if causes:
            raise invalid(resource.kind, resource.group, meta["name"], causes)

    def _check_namespace(self, namespace: str) -> None:
        try:
            self._store.entry("namespaces", namespace)
        except ApiError as error:
            raise not_found("namespaces", "", namespace) from error

    def _read(self, target: Target) -> Object:
        if target.resource.read_only:
            raise not_served(f"writes of {target.resource.plural}")
        return self._store.get(target.resource.plural, target.name, target.namespace)


def _match_url(meta: Object, target: Target) -> None:
    if meta.get("name") not in {None, "", target.name}:
        raise bad_request(f"the name of the object ({meta['name']}) does not match the name on the URL ({target.name})")
    meta["name"] = target.name
    if target.namespace:
        _match_namespace(meta, target.namespace)


def _match_namespace(meta: Object, namespace: str) -> None:
    if meta.get("namespace") not in {None, "", namespace}:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    meta["namespace"] = namespace


def _patched(resource: Resource, form: str, shown: Object, patch: Any) -> Any:
    if form not in {MERGE, STRATEGIC} or (resource.custom and form == STRATEGIC):
        allowed = [f"application/{MERGE}"]
        allowed += [] if resource.custom else [f"application/{STRATEGIC}"]
        text = f"the body of the request was in an unknown format - accepted media types include: {', '.join(allowed)}"
        raise ApiError(415, "UnsupportedMediaType", f"{text}, application/apply-patch+yaml")
    if not isinstance(patch, dict):
        raise bad_request("json: cannot unmarshal array into Go value of type map[string]interface {}")
    return merge_patch(shown, patch, strategic=form == STRATEGIC)

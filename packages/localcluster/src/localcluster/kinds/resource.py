"""The description of a resource: names, scope, schema, and the strategy with its rules.

Forbidden here: particular kinds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from localcluster.errors import Cause
from localcluster.kinds.schema import Schema
from localcluster.store.entries import encode

Object = dict[str, Any]


class Strategy:
    """The rules of a kind. By default, only the status is protected, if it is a subresource."""

    status_writes_metadata = False  # True if a write to /status may also change labels and annotations
    has_dns_label_names = False  # True if names of objects have to be DNS labels

    def prepare_create(self, value: Object) -> None:
        """Apply defaults and mutating admission to a new object, before validation."""

    def prepare_update(self, value: Object, old: Object, *, has_status: bool) -> None:
        """Apply defaults and admission to a write that is not to /status, and keep the old status."""
        if has_status:
            restore(value, old, "status")

    def prepare_status(self, value: Object, old: Object) -> None:
        """Restore everything except the status after a write to /status."""
        for name in {*value, *old} - {"status", "metadata"}:
            restore(value, old, name)
        if self.status_writes_metadata:
            return
        value["metadata"] = {**old["metadata"], "resourceVersion": value["metadata"].get("resourceVersion")}

    def validate(self, value: Object, old: Object | None) -> list[Cause]:
        """Return all violations in an object. `old` is the object that it replaces; None for a new one."""
        return []


@dataclass(frozen=True)
class Resource:
    """A resource of one API group and version."""

    group: str
    version: str
    plural: str
    kind: str
    schema: Schema
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    generation: bool = False  # True if objects have a metadata.generation
    custom: bool = False  # True if a CustomResourceDefinition defines it
    read_only: bool = False  # True if the rules for writes are not implemented, so that clients can only read
    strategy: Strategy = field(default_factory=Strategy)
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # selectable field -> its path
    renamed: Mapping[str, str] = field(default_factory=dict)  # field of this version -> field as stored

    @property
    def api_version(self) -> str:
        """`v1`, `policy/v1`, ..."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def has_status(self) -> bool:
        """True if the status is a subresource."""
        return "status" in self.subresources

    @property
    def prefix(self) -> bytes:
        """Bytes that replace the opening brace of a stored object, to add kind and apiVersion."""
        return encode({"kind": self.kind, "apiVersion": self.api_version})[:-1] + b","

    def render(self, value: Object) -> Object:
        """Return the object of this version for a stored value."""
        names = {stored: name for name, stored in self.renamed.items()}
        body = {names.get(name, name): item for name, item in value.items()}
        return {"kind": self.kind, "apiVersion": self.api_version, **body}


class Target(NamedTuple):
    """The target of a request: a resource, namespace, name and subresource."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def restore(value: Object, old: Object, name: str) -> None:
    """Restore the old value of a top-level field."""
    if name in old:
        value[name] = old[name]
    else:
        value.pop(name, None)

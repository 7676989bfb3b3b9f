"""The description of one resource: names, scope, schema, and the strategy that has its rules.

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
    """The rules of a kind. By default, only a status subresource is kept separate, if there is one."""

    status_keeps_metadata = False  # may a write to /status change labels and annotations too?
    label_names = False  # must the name be a DNS label?

    def prepare_create(self, value: Object) -> None:
        """Defaults and mutating admission, before validation."""

    def prepare_update(self, value: Object, old: Object, *, has_status: bool) -> None:
        """The same for a write that is not to /status, which must not change the status."""
        if has_status:
            keep(value, old, "status")

    def prepare_status(self, value: Object, old: Object) -> None:
        """A write to /status changes the status only."""
        for name in {*value, *old} - {"status", "metadata"}:
            keep(value, old, name)
        if self.status_keeps_metadata:
            return
        value["metadata"] = {**old["metadata"], "resourceVersion": value["metadata"].get("resourceVersion")}

    def validate(self, value: Object, old: Object | None) -> list[Cause]:
        """Everything wrong with an object; `old` is what it replaces."""
        return []


@dataclass(frozen=True)
class Resource:
    """One resource of one API group and version."""

    group: str
    version: str
    plural: str
    kind: str
    schema: Schema
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    generation: bool = False
    custom: bool = False
    read_only: bool = False  # clients read what the store is given: no rules of writes are known here
    strategy: Strategy = field(default_factory=Strategy)
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)  # fields of this version -> as they are stored

    @property
    def api_version(self) -> str:
        """`v1`, `policy/v1`, ..."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def has_status(self) -> bool:
        """Whether the status is a subresource."""
        return "status" in self.subresources

    @property
    def prefix(self) -> bytes:
        """The prefix of the stored bytes of an object of this version."""
        return encode({"kind": self.kind, "apiVersion": self.api_version})[:-1] + b","

    def shown(self, value: Object) -> Object:
        """A whole object of this version from a stored value."""
        names = {stored: name for name, stored in self.renamed.items()}
        body = {names.get(name, name): item for name, item in value.items()}
        return {"kind": self.kind, "apiVersion": self.api_version, **body}


class Target(NamedTuple):
    """The target of a request: a resource, namespace, name and subresource."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def keep(value: Object, old: Object, name: str) -> None:
    """Restore the old value of a top-level field."""
    if name in old:
        value[name] = old[name]
    else:
        value.pop(name, None)

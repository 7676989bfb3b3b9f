"""How lists and maps of an object merge: as one value, by key, as a set.

For built-in kinds this is `patchStrategy`/`patchMergeKey` and `listType`/`listMapKey` of `k8s.io/api`, by field name
(taints and tolerations are atomic: a patch replaces the whole list). For custom kinds their schema decides.
Forbidden here: values of objects.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol


class Topology(Protocol):
    """How the value at one place merges."""

    @property
    def atomic(self) -> bool:
        """One value, replaced as a whole."""
        ...

    @property
    def keeps_empty(self) -> bool:
        """Whether an empty map or list differs from an absent one."""
        ...

    @property
    def keys(self) -> tuple[str, ...]:
        """The fields that are the keys of a list's items."""
        ...

    @property
    def is_set(self) -> bool:
        """Whether it is a list of distinct scalars."""
        ...

    def field(self, name: str) -> "Topology":
        """The topology of a field of this value."""
        ...

    def item(self) -> "Topology":
        """The topology of the items of this list."""
        ...


_STRATEGIC_KEYS = {
    "addresses": ("type",),
    "conditions": ("type",),
    "containerStatuses": (),
    "containers": ("name",),
    "env": ("name",),
    "ephemeralContainers": ("name",),
    "hostAliases": ("ip",),
    "hostIPs": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "ownerReferences": ("uid",),
    "podIPs": ("ip",),
    "ports": ("containerPort",),
    "resourceClaims": ("name",),
    "schedulingGates": ("name",),
    "topologySpreadConstraints": ("topologyKey",),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
_APPLY_KEYS = {
    **_STRATEGIC_KEYS,
    "ports": ("containerPort", "protocol"),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
}
_SETS = frozenset({"finalizers", "podCIDRs"})
_ATOMIC = frozenset(
    {
        "involvedObject",
        "labelSelector",
        "namespaceSelector",
        "nodeSelector",
        "objectSelector",
        "podSelector",
        "regarding",
        "related",
        "selector",
        "matchLabels",
        "secretRef",
        "configMapRef",
        "valueFrom",
    }
)


class BuiltIn(NamedTuple):
    """Built-in kinds: the field's name decides."""

    name: str = ""
    strategic: bool = False

    @property
    def atomic(self) -> bool:
        """Only server-side apply knows atomic maps; a strategic patch merges them."""
        return not self.strategic and self.name in _ATOMIC

    @property
    def keeps_empty(self) -> bool:
        """`omitempty` of Go."""
        return False

    @property
    def keys(self) -> tuple[str, ...]:
        """The merge key."""
        return (_STRATEGIC_KEYS if self.strategic else _APPLY_KEYS).get(self.name, ())

    @property
    def is_set(self) -> bool:
        """A merging list of strings."""
        return self.name in _SETS

    def field(self, name: str) -> Topology:
        """Below."""
        return BuiltIn(name, self.strategic)

    def item(self) -> Topology:
        """Items have no name of their own."""
        return BuiltIn("", self.strategic)


class BySchema(NamedTuple):
    """Custom kinds: `x-kubernetes-list-type`, `-list-map-keys`, `-map-type` of the structural schema."""

    schema: Mapping[str, Any]

    @property
    def atomic(self) -> bool:
        """Declared so, or a map without declared fields or values."""
        return self.schema.get("x-kubernetes-map-type") == "atomic"

    @property
    def keeps_empty(self) -> bool:
        """Custom objects are stored unchanged."""
        return True

    @property
    def keys(self) -> tuple[str, ...]:
        """Of a list of type `map`."""
        if self.schema.get("x-kubernetes-list-type") != "map":
            return ()
        return tuple(self.schema.get("x-kubernetes-list-map-keys", ()))

    @property
    def is_set(self) -> bool:
        """A list of type `set`."""
        return self.schema.get("x-kubernetes-list-type") == "set"

    def field(self, name: str) -> Topology:
        """Metadata is built in, everything else is declared."""
        if name == "metadata" and "x-taintwarden-root" in self.schema:
            return BuiltIn("metadata")
        additional = self.schema.get("additionalProperties")
        fallback = additional if isinstance(additional, dict) else {}
        return BySchema(self.schema.get("properties", {}).get(name, fallback))

    def item(self) -> Topology:
        """The schema of the items."""
        return BySchema(self.schema.get("items", {}))


def custom(schema: Mapping[str, Any]) -> BySchema:
    """The topology of a custom kind's whole object."""
    return BySchema({**schema, "x-taintwarden-root": True})

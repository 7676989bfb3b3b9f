"""CustomResourceDefinitions, and the kinds that they define.

Unlike in a real server, definitions are accepted at once, only one version is served, and CEL rules do not apply.
Rules: `k8s.io/apiextensions-apiserver`. Forbidden here: knowing the operator's own kinds.
"""

from collections.abc import Callable
from typing import Any

from localcluster.errors import Cause, required, wrong
from localcluster.kinds import schema as schemas
from localcluster.kinds.builtin_schemas import METADATA, TEXT
from localcluster.kinds.resource import Object, Resource, Strategy


class DefinitionStrategy(Strategy):
    """The rules of definitions, to detect a wrong name or a missing schema."""

    def __init__(self, now: Callable[[], str]) -> None:
        self._now = now

    def prepare_create(self, value: Object) -> None:
        """Set default names, and the status that the server's controllers would write."""
        spec = value.setdefault("spec", {})
        names = spec.setdefault("names", {})
        names.setdefault("singular", names.get("kind", "").lower())
        names.setdefault("listKind", names.get("kind", "") + "List")
        spec.setdefault("conversion", {"strategy": "None"})
        value["status"] = self._accepted(spec)

    def prepare_update(self, value: Object, old: Object, *, has_status: bool) -> None:
        """Set the same values as on creation. Conditions keep their times."""
        self.prepare_create(value)
        value["status"]["conditions"] = old["status"]["conditions"]

    def _accepted(self, spec: Object) -> Object:
        accepted = {"reason": "NoConflicts", "message": "no conflicts found"}
        established = {"reason": "InitialNamesAccepted", "message": "the initial names have been accepted"}
        since = {"status": "True", "lastTransitionTime": self._now()}
        return {
            "conditions": [
                {"type": "NamesAccepted", **since, **accepted},
                {"type": "Established", **since, **established},
            ],
            "acceptedNames": dict(spec["names"]),
            "storedVersions": [version.get("name") for version in spec.get("versions") or () if version.get("storage")],
        }

    def validate(self, value: Object, old: Object | None) -> list[Cause]:
        """Check group, scope and names, that there is one storage version, and that each version has a schema."""
        spec = value.get("spec") or {}
        names, versions = spec.get("names") or {}, spec.get("versions") or []
        causes = [required(f"spec.{name}") for name in ("group", "scope") if not spec.get(name)]
        causes += [required(f"spec.names.{name}") for name in ("plural", "kind") if not names.get(name)]
        expected = f"{names.get('plural')}.{spec.get('group')}"
        name = value["metadata"].get("name")
        if name != expected:
            causes.append(wrong("metadata.name", name, f'must be spec.names.plural+"."+spec.group: {expected}'))
        if sum(bool(version.get("storage")) for version in versions) != 1:
            causes.append(
                wrong("spec.versions", len(versions), "must have exactly one version marked as storage version")
            )
        for index, version in enumerate(versions):
            if "openAPIV3Schema" not in (version.get("schema") or {}):
                causes.append(required(f"spec.versions[{index}].schema.openAPIV3Schema", "schemas are required"))
        return causes


class CustomStrategy(Strategy):
    """The rules of a custom kind: defaults and validation by its schema."""

    def __init__(self, schema: schemas.Schema) -> None:
        self._schema = {name: item for name, item in schema.get("properties", {}).items() if name != "metadata"}
        self._whole = {"type": "object", "properties": self._schema, "required": schema.get("required", ())}

    def prepare_create(self, value: Object) -> None:
        """Set defaults."""
        schemas.set_defaults(value, self._whole)

    def prepare_update(self, value: Object, old: Object, *, has_status: bool) -> None:
        """Set defaults."""
        super().prepare_update(value, old, has_status=has_status)
        schemas.set_defaults(value, self._whole)

    def prepare_status(self, value: Object, old: Object) -> None:
        """Set defaults, which also apply to the status."""
        super().prepare_status(value, old)
        schemas.set_defaults(value, self._whole)

    def validate(self, value: Object, old: Object | None) -> list[Cause]:
        """Return all violations of the schema."""
        return schemas.check(value, self._whole)


def resource_of(definition: Object) -> Resource:
    """Return the resource of a definition's storage version."""
    spec = definition["spec"]
    names = spec["names"]
    version: dict[str, Any] = next(item for item in spec["versions"] if item.get("storage"))
    declared = version["schema"]["openAPIV3Schema"]
    properties = {**declared.get("properties", {}), "metadata": METADATA, "kind": TEXT, "apiVersion": TEXT}
    whole = {**declared, "properties": properties}
    subresources = version.get("subresources") or {}
    paths = [field["jsonPath"].lstrip(".") for field in version.get("selectableFields") or ()]
    return Resource(
        group=spec["group"],
        version=version["name"],
        plural=names["plural"],
        kind=names["kind"],
        short_names=tuple(names.get("shortNames") or ()),
        schema=whole,
        namespaced=spec["scope"] == "Namespaced",
        subresources=("status",) if "status" in subresources else (),
        generation=True,
        custom=True,
        strategy=CustomStrategy(declared),
        fields={path: tuple(path.split(".")) for path in paths},
    )

"""Server-side apply of labels and annotations: owners of fields, and removal of those that are no longer applied.

Rules: `sigs.k8s.io/structured-merge-diff`. Served only for nodes and with `force`, as the operator uses it.
Forbidden here: storing anything.
"""

from typing import Any

from localcluster.errors import not_served
from localcluster.kinds.resource import Object

Path = tuple[str, str]  # labels or annotations, and the key
Owner = tuple[str, str]  # the manager, and its operation: Apply or Update

_MAPS = ("labels", "annotations")
_APPLICABLE = frozenset({*_MAPS, "name", "uid", "resourceVersion"})


def check_config(config: Object) -> None:
    """Raise a 501 for fields other than labels and annotations."""
    rest = [*(config.keys() - {"metadata"}), *(config["metadata"].keys() - _APPLICABLE)]
    if rest:
        raise not_served(f"server-side apply of {', '.join(sorted(rest))}")


def track(old: Object, new: Object, owner: Owner) -> None:
    """Set managedFields in the metadata `new` after a write other than apply. Its writer owns the changed fields."""
    owners, was, now = _owners(old), _fields(old), _fields(new)
    changed = {path for path, text in now.items() if was.get(path) != text}
    for paths in owners.values():
        paths.difference_update(changed, was.keys() - now.keys())
    owners[owner] = owners.get(owner, set()) | changed
    _set_owners(new, owners)


def apply(live: Object, config: Object, owner: Owner) -> Object:
    """Return the metadata `live` merged with `config`. `owner` takes over the fields whose values it changes."""
    owners, was, wanted = _owners(live), _fields(live), _fields(config)
    before = owners.pop(owner, set())
    for paths in owners.values():
        paths -= {path for path, text in wanted.items() if was.get(path) != text}
    dropped = before.difference(wanted, *owners.values())
    merged = dict(live)
    for name in _MAPS:
        kept = {key: text for key, text in (live.get(name) or {}).items() if (name, key) not in dropped}
        merged[name] = {**kept, **(config.get(name) or {})}
        if not merged[name]:
            del merged[name]
    _set_owners(merged, {**owners, owner: set(wanted)})
    return merged


def _fields(metadata: Object) -> dict[Path, Any]:
    return {(name, key): text for name in _MAPS for key, text in (metadata.get(name) or {}).items()}


def _owners(metadata: Object) -> dict[Owner, set[Path]]:
    found = {}
    for entry in metadata.get("managedFields") or ():
        fields = entry["fieldsV1"]["f:metadata"]
        paths = {(name[2:], key[2:]) for name, keys in fields.items() for key in keys}
        found[entry["manager"], entry["operation"]] = paths
    return found


def _set_owners(metadata: Object, owners: dict[Owner, set[Path]]) -> None:
    entries = []
    for (manager, operation), paths in sorted(owners.items()):
        fields: Object = {}
        for name, key in sorted(paths):
            fields.setdefault(f"f:{name}", {})[f"f:{key}"] = {}
        entry = {"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1"}
        if fields:
            entries.append({**entry, "fieldsV1": {"f:metadata": fields}})
    metadata.pop("managedFields", None)
    if entries:
        metadata["managedFields"] = entries

"""Field management: who set which field, and server-side apply on top of it.

Rules: `apimachinery/pkg/util/managedfields` and `structured-merge-diff/merge`. Simplified: one version of each kind,
no consolidation of old managers, a client cannot rewrite managedFields. Forbidden here: storing anything.
"""

from copy import deepcopy
from typing import Any, NamedTuple

from localcluster.errors import ApiError
from localcluster.merge.fieldset import Path, from_fields, item_key, leaves, remove_path, spelt, to_fields
from localcluster.merge.topology import Topology

Object = dict[str, Any]


class Manager(NamedTuple):
    """A field manager: the identity of an entry of managedFields."""

    name: str
    operation: str  # Apply or Update
    version: str
    subresource: str = ""


class Ownership:
    """The managedFields of one object, unpacked."""

    def __init__(self, entries: list[Object]) -> None:
        self.sets: dict[Manager, set[Path]] = {}
        self.times: dict[Manager, str] = {}
        for entry in entries:
            manager = Manager(
                entry.get("manager", ""), entry["operation"], entry["apiVersion"], entry.get("subresource", "")
            )
            self.sets[manager] = from_fields(entry.get("fieldsV1") or {})
            self.times[manager] = entry.get("time", "")

    def others(self, manager: Manager) -> set[Path]:
        """All fields that other managers own."""
        return set().union(*(paths for one, paths in self.sets.items() if one != manager))

    def packed(self, before: list[Object], now: str) -> list[Object]:
        """As `managedFields`; an entry whose fields did not change keeps its time."""
        known = {_identity(entry): entry for entry in before}
        entries = []
        for manager, paths in self.sets.items():
            if not paths:
                continue
            entry: Object = {"manager": manager.name, "operation": manager.operation, "apiVersion": manager.version}
            entry |= {"time": now, "fieldsType": "FieldsV1", "fieldsV1": to_fields(paths)}
            if manager.subresource:
                entry["subresource"] = manager.subresource
            old = known.get(manager)
            if old is not None and old.get("fieldsV1") == entry["fieldsV1"]:
                entry["time"] = old.get("time", now)
            entries.append(entry)
        return sorted(entries, key=lambda entry: (entry["operation"], entry["time"], entry["manager"]))


def _identity(entry: Object) -> Manager:
    return Manager(entry.get("manager", ""), entry["operation"], entry["apiVersion"], entry.get("subresource", ""))


def track_create(value: Object, manager: Manager, topology: Topology, now: str) -> None:
    """The manager that creates an object owns the fields that it sent. Sets managedFields; none if there are none."""
    ownership = Ownership([])
    ownership.sets[manager] = set(leaves(value, topology))
    _set_managed(value, ownership.packed([], now))


def track_update(before: Object, after: Object, manager: Manager, topology: Topology, now: str) -> None:
    """A write other than apply: the manager owns the fields that it changed. Sets managedFields in `after`.

    An object whose creation set no field to own is not tracked before the first apply, as upstream.
    """
    old_entries = _managed(before)
    if not old_entries:
        return
    ownership = Ownership(old_entries)
    was = leaves(before, topology)
    is_now = leaves(after, topology)
    changed = {path for path, value in is_now.items() if path not in was or was[path] != value}
    removed = was.keys() - is_now.keys()
    for paths in ownership.sets.values():
        paths.difference_update(changed, removed)
    ownership.sets[manager] = ownership.sets.get(manager, set()) | changed
    _set_managed(after, ownership.packed(old_entries, now))


def apply(live: Object, config: Object, manager: Manager, topology: Topology, now: str, *, force: bool) -> Object:
    """The live object with an applied configuration merged in. Raises a 409 that names every conflict."""
    old_entries = _managed(live)
    ownership = Ownership(old_entries)
    live = deepcopy(live)
    live_leaves = leaves(live, topology)
    if not old_entries:
        ownership.sets[Manager("before-first-apply", "Update", manager.version)] = set(live_leaves)
    wanted = set(leaves(config, topology))
    merged: Object = _merge(live, config, topology)
    merged_leaves = leaves(merged, topology)
    changed = {path for path, value in merged_leaves.items() if path not in live_leaves or live_leaves[path] != value}
    conflicts = [
        (one, path) for one, paths in ownership.sets.items() if one != manager for path in sorted(paths & changed)
    ]
    if conflicts and not force:
        raise _conflict(conflicts, ownership)
    for one, path in conflicts:
        ownership.sets[one].discard(path)
    others = ownership.others(manager)
    kept = others | {path[:depth] for path in others for depth in range(1, len(path))}
    for path in sorted(ownership.sets.get(manager, set()) - wanted - kept, key=len):
        remove_path(merged, path, topology)
    ownership.sets[manager] = wanted
    _set_managed(merged, ownership.packed(old_entries, now))
    return merged


def _managed(value: Object) -> list[Object]:
    return list(value["metadata"].get("managedFields") or [])


def _set_managed(value: Object, entries: list[Object]) -> None:
    if entries:
        value["metadata"]["managedFields"] = entries
    else:
        value["metadata"].pop("managedFields", None)


def _merge(live: Any, config: Any, topology: Topology) -> Any:
    if isinstance(config, dict) and isinstance(live, dict) and not topology.atomic:
        result: Any = dict(live)
        for name, value in config.items():
            result[name] = _merge(live.get(name), value, topology.field(name))
        return result
    if isinstance(config, list) and isinstance(live, list):
        if topology.is_set:
            return live + [one for one in config if one not in live]
        if topology.keys:
            return _merge_items(live, config, topology)
    return config


def _merge_items(live: list[Any], config: list[Any], topology: Topology) -> list[Any]:
    applied = {item_key(item, topology): item for item in config}
    result = []
    for item in live:
        key = item_key(item, topology)
        result.append(_merge(item, applied.pop(key), topology.item()) if key in applied else item)
    return result + list(applied.values())


def _conflict(conflicts: list[tuple[Manager, Path]], ownership: Ownership) -> ApiError:
    by_manager: dict[Manager, list[str]] = {}
    for manager, path in conflicts:
        by_manager.setdefault(manager, []).append(spelt(path))
    parts = []
    for manager, paths in by_manager.items():
        who = _named(manager, ownership.times.get(manager, ""))
        if len(paths) == 1:
            parts.append(f"conflict with {who}: {paths[0]}")
        else:
            parts.append(f"conflicts with {who}:\n" + "\n".join(f"- {path}" for path in paths))
    number = f"{len(conflicts)} conflict" + ("" if len(conflicts) == 1 else "s")
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {_named(manager, ownership.times.get(manager, ''))}",
            "field": spelt(path),
        }
        for manager, path in conflicts
    ]
    return ApiError(409, "Conflict", f"Apply failed with {number}: " + "\n".join(parts), details={"causes": causes})


def _named(manager: Manager, time: str) -> str:
    text = f'"{manager.name}"'
    if manager.subresource:
        text += f' with subresource "{manager.subresource}"'
    if manager.operation == "Update":
        text += f" using {manager.version}" + (f" at {time}" if time else "")
    return text

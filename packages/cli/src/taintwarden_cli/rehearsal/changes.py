"""Changes of taints on nodes or devices: read from flags, applied to both."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from taintwarden.api.names import check_key, check_label_value
from taintwarden.engine.limits.zones import ZONE_LABEL, zone_of
from taintwarden.engine.model import DeviceEffect, DeviceId, Effect, Mode, Taint
from taintwarden.kube.wire.kinds import NodeObject, TaintObject
from taintwarden_cli.rehearsal.manifests import BadInput
from taintwarden_cli.rehearsal.places import NativeRequirement, parse_selector
from taintwarden_cli.rehearsal.rehearsal import named
from taintwarden_devices.objects import DeviceObject, DeviceTaintObject, SliceObject

AnyTaint = TypeVar("AnyTaint", TaintObject, DeviceTaintObject)
Effects = type[Effect] | type[DeviceEffect]
_FORM = "write KEY=VALUE:EFFECT, for example sla=900:NoExecute"


class Where(msgspec.Struct, frozen=True):
    """Selects nodes by name, by zone (its label, or its name in ``status``) and by labels; each adds nodes.

    Or it names devices, ``DRIVER/POOL/DEVICE``.
    """

    nodes: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    selectors: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()

    def __str__(self) -> str:
        named = [", ".join(self.nodes), *(f"zone {one}" for one in self.zones), *self.selectors]
        return ", ".join(one for one in (*named, *(f"device {one}" for one in self.devices)) if one)

    def check(self) -> None:
        """Check that its selectors and devices are valid.

        Raises:
            BadInput: a selector cannot be parsed, or is empty; a device has no such name, or nodes are named, too.

        """
        for text in self.selectors:
            selector(text)
        for text in self.devices:
            device_id(text)
        if self.devices and (self.nodes or self.zones or self.selectors):
            msg = "nodes and devices are two changes: plan one after the other"
            raise BadInput(msg)

    @property
    def effects(self) -> Effects:
        """The effects that taints there may have."""
        return DeviceEffect if self.devices else Effect

    def find(self, nodes: Sequence[NodeObject]) -> list[NodeObject]:
        """The selected nodes.

        Raises:
            BadInput: a name, zone or selector matches no node.

        """
        found: dict[str, NodeObject] = {}
        for name in self.nodes:
            _add(found, [one for one in nodes if one.metadata.name == name], f"there is no node {name}")
        for zone in self.zones:
            there = [
                one for one in nodes if zone in (one.metadata.labels.get(ZONE_LABEL), zone_of(one.metadata.labels))
            ]
            _add(found, there, f"there is no node in zone {zone}")
        for text in self.selectors:
            parsed = selector(text)
            there = [one for one in nodes if all(part.holds(one.metadata.labels) for part in parsed)]
            _add(found, there, f"no node has the labels {text}")
        return list(found.values())


class Change(msgspec.Struct, frozen=True):
    """Taints that are set and removed, on nodes or on devices.

    A taint with the same key and effect is replaced, as kubectl does.
    """

    where: Where
    taints: tuple[Taint, ...] = ()
    remove: tuple[tuple[str, str], ...] = ()
    """Key and effect; an empty effect matches any effect."""

    def __str__(self) -> str:
        removed = [f"{key}:{effect}" if effect else key for key, effect in self.remove]
        told = [*(f"{taint} on" for taint in self.taints), *(f"no {one} on" for one in removed)]
        return f"{', '.join(told).removesuffix(' on').replace(' on,', ',')} on {self.where}"


def enforce(policies: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[Mapping[str, Any]]:
    """The stored policies; those with these names are set to mode Enforce.

    Raises:
        BadInput: a policy does not exist.

    """
    found = {named(one)[1]: one for one in policies}
    for name in names:
        if name not in found:
            msg = f"there is no TaintEvictionPolicy {name}; there is {', '.join(sorted(found)) or 'none at all'}"
            raise BadInput(msg)
        found[name] = {
            **found[name],
            "spec": {**(found[name].get("spec") or {}), "mode": Mode.ENFORCE.value, "paused": False},
        }
    return list(found.values())


def apply(changes: Iterable[Change], nodes: Sequence[NodeObject]) -> list[NodeObject]:
    """The nodes that change.

    Raises:
        BadInput: a change selects nodes that do not exist.

    """
    changed: dict[str, NodeObject] = {}
    for change in changes:
        current = [changed.get(node.metadata.name, node) for node in change.where.find(nodes)]
        _check_removals(change, [one for node in current for one in node.spec.taints])
        for node in current:
            taints = _changed_taints(change, node.spec.taints, TaintObject)
            spec = msgspec.structs.replace(node.spec, taints=taints)
            changed[node.metadata.name] = msgspec.structs.replace(node, spec=spec)
    before = {node.metadata.name: node for node in nodes}
    return [node for name, node in changed.items() if node.spec.taints != before[name].spec.taints]


def apply_to_devices(changes: Iterable[Change], slices: Sequence[SliceObject]) -> list[SliceObject]:
    """The slices that change, as if the driver of the devices wrote them.

    Raises:
        BadInput: a change names a device that is in no slice.

    """
    changed: dict[str, SliceObject] = {}
    for change in changes:
        for text in change.where.devices:
            wanted = device_id(text)
            known = (changed.get(one.metadata.name, one) for one in slices)
            there = [one for one in known if (one.spec.driver, one.spec.pool.name) == wanted[:2]]
            there = [one for one in there if any(device.name == wanted.device for device in one.spec.devices)]
            if not there:
                msg = f"there is no device {wanted}"
                raise BadInput(msg)
            devices = (device for one in there for device in one.spec.devices if device.name == wanted.device)
            _check_removals(change, [taint for device in devices for taint in device.taints])
            for one in there:
                spec = msgspec.structs.replace(one.spec, devices=_changed_devices(change, wanted, one.spec.devices))
                changed[one.metadata.name] = msgspec.structs.replace(one, spec=spec)
    return list(changed.values())


def _changed_devices(change: Change, wanted: DeviceId, devices: Iterable[DeviceObject]) -> list[DeviceObject]:
    def of(device: DeviceObject) -> DeviceObject:
        if device.name != wanted.device:
            return device
        return msgspec.structs.replace(device, taints=_changed_taints(change, device.taints, DeviceTaintObject))

    return list(map(of, devices))


def device_id(text: str) -> DeviceId:
    """``DRIVER/POOL/DEVICE``; the pool may have slashes.

    Raises:
        BadInput: the text has another form.

    """
    driver, _, rest = text.partition("/")
    pool, _, device = rest.rpartition("/")
    if not (driver and pool and device):
        msg = f"{text!r} is no device: write DRIVER/POOL/DEVICE, for example gpu.example.com/node-1/gpu-0"
        raise BadInput(msg)
    return DeviceId(driver, pool, device)


def _check_removals(change: Change, there: Sequence[AnyTaint]) -> None:
    """Reject the removal of a taint that is nowhere: it is mistyped, and a plan without it would look harmless."""
    for key, effect in change.remove:
        if not any(one.key == key and effect in ("", one.effect) for one in there):
            msg = f"no taint {key}:{effect} to remove on {change.where}" if effect else ""
            raise BadInput(msg or f"no taint {key} to remove on {change.where}")


def _changed_taints(
    change: Change, taints: Sequence[AnyTaint], make: Callable[[str, str, str], AnyTaint]
) -> list[AnyTaint]:
    taken = {(taint.key, taint.effect) for taint in change.taints}
    kept: list[AnyTaint] = [
        one
        for one in taints
        if (one.key, one.effect) not in taken
        and not any(one.key == key and effect in ("", one.effect) for key, effect in change.remove)
    ]
    known = {(one.key, one.value, one.effect): one for one in taints}
    added: list[AnyTaint] = [
        known.get((one.key, one.value, one.effect)) or make(one.key, one.value, one.effect) for one in change.taints
    ]
    return kept + added


def parse_taint(text: str, effects: Effects = Effect) -> Taint:
    """``KEY=VALUE:EFFECT`` or ``KEY:EFFECT``; of a device the effects are those of :class:`DeviceEffect`.

    Raises:
        BadInput: the text has another form.

    """
    pair, colon, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    if not colon:
        msg = f"{text!r} has no effect: {_FORM}"
        raise BadInput(msg)
    return _taint(key, value, effect, text, effects)


def parse_removal(text: str, effects: Effects = Effect) -> tuple[str, str]:
    """``KEY`` or ``KEY:EFFECT``.

    Raises:
        BadInput: the text has another form.

    """
    key, colon, effect = text.partition(":")
    taint = _taint(key, "", effect if colon else Effect.NO_EXECUTE, text, effects)
    return taint.key, taint.effect if colon else ""


def _taint(key: str, value: str, effect: str, text: str, effects: Effects) -> Taint:
    faults = [*check_key(key), *check_label_value(value)]
    if faults:
        msg = f"{text!r} is no taint: {faults[0]}"
        raise BadInput(msg)
    if effect not in list(effects):
        msg = f"{text!r} has effect {effect!r}: write {', '.join(effects)}"
        raise BadInput(msg)
    return Taint(key, value, effect)


def selector(text: str) -> tuple[NativeRequirement, ...]:
    """A label selector that is not empty: an empty one would select every node.

    Raises:
        BadInput: it cannot be parsed, or is empty.

    """
    try:
        found = parse_selector(text)
    except ValueError as error:
        msg = f"{text!r} is no label selector: {error}"
        raise BadInput(msg) from error
    if not found:
        msg = "the label selector is empty: name nodes by --node, --zone or labels"
        raise BadInput(msg)
    return found


def _add(found: dict[str, NodeObject], nodes: Iterable[NodeObject], problem: str) -> None:
    before = {node.metadata.name: node for node in nodes}
    if not before:
        raise BadInput(problem)
    found.update(before)

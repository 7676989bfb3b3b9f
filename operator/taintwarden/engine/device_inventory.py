"""Devices of Dynamic Resource Allocation: which taints each has, and which pods have which.

The rules are those of Kubernetes' device taint eviction (``pkg/controller/devicetainteviction`` of 1.37), with one
difference: while a pool is incomplete, its devices keep the taints that are known of them. A driver that replaces its
slices would otherwise start every clock again.

* A device has the taints of its ResourceSlice, and of every DeviceTaintRule that selects it. They are one list.
* Of the slices of a pool only those of its newest generation count.
* A slice that names a node concerns pods on that node only. A kubelet may write such slices, of any driver and pool.
* A pod has the devices of the claims that are reserved for it, or for its PodGroup if the pod names the claim. What it
  tolerates of their taints, its claims say.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import TypeVar

import msgspec

from taintwarden.engine.model import DeviceId, DeviceOrigin, DeviceUse, Pod, Taint

Key = TypeVar("Key", str, DeviceId)
TimedTaint = tuple[Taint, float | None]


class DeviceTaint(msgspec.Struct, frozen=True, gc=False):
    """A taint of a device as it is stored. ``added_at``: its ``timeAdded``, in seconds since the epoch."""

    key: str
    value: str
    effect: str
    added_at: float | None = None


class Device(msgspec.Struct, frozen=True):
    """A device in a slice. ``attributes`` are texts, whatever their type is."""

    attributes: tuple[tuple[str, str], ...] = ()
    taints: tuple[DeviceTaint, ...] = ()


class Slice(msgspec.Struct, frozen=True):
    """A ResourceSlice: some devices of a pool, which has ``slices`` of them in each generation.

    ``node``: where the devices are; empty: on several nodes, or on none.
    """

    driver: str
    pool: str
    generation: int
    slices: int
    devices: dict[str, Device]
    node: str = ""


class TaintRule(msgspec.Struct, frozen=True):
    """A DeviceTaintRule. What it does not name selects every device; without ``selects`` it selects none."""

    taint: DeviceTaint
    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    selects: bool = True

    def concerns(self, device: DeviceId) -> bool:
        """Whether it adds its taint to a device. The pool tells most devices apart, and is compared first."""
        return (
            (self.pool is None or self.pool == device.pool)
            and (self.device is None or self.device == device.device)
            and (self.driver is None or self.driver == device.driver)
            and self.selects
        )


class DeviceClaim(msgspec.Struct, frozen=True):
    """A ResourceClaim that is allocated.

    Attributes:
        uses: its devices.
        consumers: for whom it is reserved: UIDs of pods, and PodGroups as ``namespace/name``.

    """

    uses: tuple[DeviceUse, ...]
    consumers: frozenset[str] = frozenset()


class _Pool:
    """The slices of a pool, and what they say together."""

    def __init__(self) -> None:
        self.slices: dict[str, Slice] = {}
        self.devices: dict[str, Device] = {}
        self._settled: dict[str, Device] = {}
        """``devices`` as it was when the pool was complete last: so much and no more is added while it is not."""
        self._is_complete = True

    def put(self, name: str, found: Slice | None) -> Iterable[str]:
        """A slice is like this, or is gone. Returns the names of the devices that changed."""
        before = self.slices.pop(name, None)
        if found is not None:
            self.slices[name] = found
        if found is not None and self._concerns_no_other(before, found):
            current = found.devices
            known = {device: self.devices[device] for device in current if device in self.devices}
            self.devices.update(current)
        else:
            known, current = self.devices, self._combined()
            self.devices = current
        return [device for device in {**known, **current} if known.get(device) != current.get(device)]

    def _concerns_no_other(self, before: Slice | None, found: Slice) -> bool:
        """Whether only its own devices change: it has the same as before, or is one more of an incomplete pool.

        Drivers rewrite slices all the time, all of them are listed at a start, and a pool may have hundreds.
        """
        if found.generation != max(one.generation for one in self.slices.values()):
            return False
        if before is None:
            current = [one for one in self.slices.values() if one.generation == found.generation]
            return not self._is_complete and 1 < len(current) < max(one.slices for one in current)
        return (
            before.generation == found.generation
            and before.slices == found.slices
            and before.devices.keys() == found.devices.keys()
        )

    def _combined(self) -> dict[str, Device]:
        """What the newest generation says."""
        newest = max((one.generation for one in self.slices.values()), default=0)
        current = [one for one in self.slices.values() if one.generation == newest]
        found = {name: device for one in current for name, device in one.devices.items()}
        self._is_complete = not current or len(current) >= max(one.slices for one in current)
        if self._is_complete:
            self._settled = found
            return found
        return self._settled | found


class DeviceInventory:
    """What is known of slices, rules and claims, each by name. Every change returns what it concerns."""

    def __init__(self) -> None:
        self._slices: dict[str, Slice] = {}
        self._pools: dict[tuple[str, str], dict[str, _Pool]] = {}
        """Driver and name of a pool -> the node that its slices name -> the pool of these slices."""
        self._rules: dict[str, TaintRule] = {}
        self._claims: dict[str, DeviceClaim] = {}
        self._claims_of: dict[str, dict[str, None]] = {}
        """Consumer -> the claims that are reserved for it."""
        self._claims_on: dict[DeviceId, dict[str, None]] = {}
        """Device -> the claims to which it is allocated."""

    def put_slice(self, name: str, found: Slice | None) -> Collection[DeviceId]:
        """A slice is stored like this, or is gone. Returns the devices that changed."""
        before = self._slices.pop(name, None)
        if found is not None:
            self._slices[name] = found
        changed: dict[DeviceId, None] = {}
        for place in dict.fromkeys((one.driver, one.pool, one.node) for one in (before, found) if one is not None):
            driver, named, node = place
            pools = self._pools.setdefault((driver, named), {})
            pool = pools.setdefault(node, _Pool())
            is_here = found is not None and (found.driver, found.pool, found.node) == place
            for device in pool.put(name, found if is_here else None):
                changed[DeviceId(driver, named, device)] = None
            if not pool.slices:
                del pools[node]
            if not pools:
                del self._pools[driver, named]
        return changed

    def put_rule(self, name: str, found: TaintRule | None, others: Iterable[DeviceId]) -> Collection[DeviceId]:
        """A rule is stored like this, or is gone. Returns what it concerns of the devices in use, and of ``others``."""
        before = self._rules.pop(name, None)
        if found is not None:
            self._rules = dict(sorted([*self._rules.items(), (name, found)]))
        if found == before:
            return ()
        rules = [one for one in (before, found) if one is not None]
        devices = (*self._claims_on, *others)
        return list(dict.fromkeys(one for rule in rules for one in devices if rule.concerns(one)))

    def put_claim(self, key: str, found: DeviceClaim | None) -> Collection[str]:
        """A claim is allocated like this, or is not. Returns the consumers that have other devices because of it."""
        before = self._claims.pop(key, None)
        if found is not None:
            self._claims[key] = found
        if found == before:
            return ()
        if before is not None:
            for consumer in before.consumers:
                _drop(self._claims_of, consumer, key)
            for device in dict.fromkeys(use.device for use in before.uses):
                _drop(self._claims_on, device, key)
        if found is not None:
            for consumer in found.consumers:
                self._claims_of.setdefault(consumer, {})[key] = None
            for use in found.uses:
                self._claims_on.setdefault(use.device, {})[key] = None
        if before is not None and found is not None and before.uses == found.uses:
            return sorted(before.consumers ^ found.consumers)
        return sorted(frozenset[str]().union(*(one.consumers for one in (before, found) if one is not None)))

    def uses(self, pod: Pod) -> tuple[DeviceUse, ...]:
        """The devices that a pod has, each once for each way in which its claims tolerate taints.

        An account that may write the status of claims of one namespace may name any pod there: claims of other
        namespaces do not count.
        """
        keys = [key for key in self._claims_of.get(pod.uid, ()) if is_in_namespace_of(pod, key)]
        group = pod.shared.group
        if group is not None and (of_group := self._claims_of.get(group_of(pod))):
            keys += [key for name in group.claims if (key := f"{pod.namespace}/{name}") in of_group]
        found = dict.fromkeys(use for key in keys for use in self._claims[key].uses)
        return tuple(sorted(found, key=_device))

    def consumers(self, device: DeviceId) -> Iterator[str]:
        """Those who have a device."""
        for key in self._claims_on.get(device, ()):
            yield from sorted(self._claims[key].consumers)

    def all_consumers(self) -> Iterator[str]:
        """Those who have any device."""
        return iter(list(self._claims_of))

    def has(self, device: DeviceId, node: str) -> bool:
        """Whether a device of pods on a node is in a slice, or was while its pool is incomplete."""
        return self._known(device, node) is not None

    def _known(self, device: DeviceId, node: str | None) -> Device | None:
        pools = self._pools.get((device.driver, device.pool), {})
        places = pools if node is None else ("", node)
        found = (pools[one].devices.get(device.device) for one in places if one in pools)
        return next((one for one in found if one is not None), None)

    def taints(self, device: DeviceId, node: str | None = None) -> tuple[TimedTaint, ...]:
        """The taints of a device for pods on a node, or on any: those of its slice, then those of rules by name."""
        known = self._known(device, node)
        attributes = known.attributes if known is not None else ()
        given = [("", taint) for taint in (known.taints if known is not None else ())]
        given += [(name, rule.taint) for name, rule in self._rules.items() if rule.concerns(device)]
        numbers: Counter[tuple[str, str, str]] = Counter()
        found = []
        for rule, taint in given:
            origin = DeviceOrigin(device, attributes, rule, numbers[rule, taint.key, taint.effect])
            numbers[rule, taint.key, taint.effect] += 1
            found.append((Taint(taint.key, taint.value, taint.effect, origin=origin), taint.added_at))
        return tuple(found)


def group_of(pod: Pod) -> str:
    """The PodGroup of a pod as a consumer of claims; empty if it has none."""
    group = pod.shared.group
    return "" if group is None else f"{pod.namespace}/{group.name}"


def is_in_namespace_of(pod: Pod, claim: str) -> bool:
    """Whether a claim, ``namespace/name``, may be reserved for a pod."""
    return claim.startswith(f"{pod.namespace}/")


def _drop(index: dict[Key, dict[str, None]], at: Key, key: str) -> None:
    index[at].pop(key, None)
    if not index[at]:
        del index[at]


def _device(use: DeviceUse) -> DeviceId:
    return use.device

"""Which devices pods have, and their taints, by the rules of Kubernetes and of docs/devices.md: without the engine.

Only the slices of the newest generation of a pool count; while it is incomplete, what was known of its devices holds. A
device has the taints of its slice and of every rule that selects it. A pod has the devices of the claims that are
reserved for it, and these claims say what it tolerates of their taints.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from simulated.world.objects import DeviceClaim, DeviceSlice, Taint, TaintRule, Toleration
from simulated.world.store import DEVICE_KINDS, Store

Found = tuple[tuple[Taint, ...], bool]
"""The taints of a device, and whether it is in a slice."""
NOTHING: Found = ((), False)


class Devices:
    """Slices, claims and rules as they are stored."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._restored()
        store.changed.append(self._changed)
        store.restored.append(self._restored)

    def _restored(self) -> None:
        self.claims: dict[str, DeviceClaim] = {}
        self._slices: dict[str, DeviceSlice] = {}
        self._rules: dict[str, TaintRule] = {}
        self._pools: dict[str, dict[str, Found]] = {}
        for kind in DEVICE_KINDS:
            for key, obj in self._store.objects[kind].items():
                self._changed(kind, key, None, obj)

    def _changed(self, kind: str, key: str, _before: Any, obj: Any) -> None:
        if kind not in DEVICE_KINDS:
            return
        known = {"slices": self._slices, "claims": self.claims, "rules": self._rules}[kind]
        before = known.pop(key, None)
        if obj is not None:
            known[key] = obj
        if kind == "slices":
            for pool in dict.fromkeys(one.pool for one in (before, obj) if one is not None):
                self._combine(pool)

    def _combine(self, pool: str) -> None:
        slices = [one for one in self._slices.values() if one.pool == pool]
        newest = max((one.generation for one in slices), default=0)
        current = [one for one in slices if one.generation == newest]
        found = {name: (taints, True) for one in current for name, taints in one.devices.items()}
        is_complete = len(current) >= max((one.slices for one in current), default=0)
        self._pools[pool] = found if is_complete else self._pools.get(pool, {}) | found

    @property
    def known(self) -> Iterator[str]:
        """Every device that has taints or may have some, as ``pool/device``."""
        for pool, devices in self._pools.items():
            yield from (f"{pool}/{device}" for device in devices)
        for claim in self.claims.values():
            yield from claim.devices

    def of_pool(self, pool: str) -> list[str]:
        """The names of its devices."""
        return [f"{pool}/{device}" for device in self._pools.get(pool, {})]

    def taints(self, device: str) -> Found:
        """The taints of a device."""
        pool, _, name = device.partition("/")
        own, is_published = self._pools.get(pool, {}).get(name, NOTHING)
        rules = [one for _, one in sorted(self._rules.items()) if one.selects(pool, name)]
        return (*own, *(replace(one.taint, rule=one.name) for one in rules)), is_published

    def uses(self, uid: str) -> dict[str, tuple[Toleration, ...]]:
        """The devices of a pod, with what the claim tolerates."""
        found = [one for _, one in sorted(self.claims.items()) if uid in one.pods]
        return {device: one.tolerations for one in found for device in one.devices}

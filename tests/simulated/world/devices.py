"""Which devices pods have, and their taints, by the rules of Kubernetes and of docs/devices.md: without the engine.

Only the slices of the newest generation of a pool count; while it is incomplete, what was known of its devices holds. A
device has the taints of its slice and of every rule that selects it. A pod has the devices of the claims that are
reserved for it, and these claims say what it tolerates of their taints.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from simulated.world.agenda import EPOCH
from simulated.world.objects import DeviceClaim, DeviceSlice, Node, Pod, Taint, TaintRule, Toleration
from simulated.world.store import DEVICE_KINDS, Past

if TYPE_CHECKING:
    from simulated.world.world import World

Found = tuple[tuple[Taint, ...], tuple[int, ...], bool]
"""The taints of a device, the serials of the objects that say so, and whether it is in a slice."""
NOTHING: Found = ((), (), False)
ROUNDING = 1e-6
"""More than what is lost where seconds since the start become seconds since 1970, and these become those again."""


class Devices:
    """Slices, claims and rules as they are stored, or as a replica was told of them."""

    def __init__(self) -> None:
        self.claims: dict[str, DeviceClaim] = {}
        self._slices: dict[str, DeviceSlice] = {}
        self._rules: dict[str, TaintRule] = {}
        self._pools: dict[str, dict[str, Found]] = {}

    def see(self, kind: str, key: str, obj: Any) -> None:
        """An object is like this, or gone (None)."""
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
        found = {name: (taints, (one.serial,), True) for one in current for name, taints in one.devices.items()}
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
        own, serials, is_published = self._pools.get(pool, {}).get(name, NOTHING)
        rules = [one for _, one in sorted(self._rules.items()) if one.selects(pool, name)]
        taints = [replace(one, device=device) for one in own]
        taints += [replace(one.taint, device=device, rule=one.name) for one in rules]
        return tuple(taints), (*serials, *(one.serial for one in rules)), is_published

    def uses(self, uid: str) -> dict[str, tuple[Toleration, ...]]:
        """The devices of a pod, with what the claim tolerates."""
        found = [one for _, one in sorted(self.claims.items()) if uid in one.pods]
        return {device: one.tolerations for one in found for device in one.devices}

    def compose(self, pod: Pod, node: Node) -> Node:
        """The node with the taints of the devices that the pod has, besides its own."""
        found = {device: self.taints(device) for device in self.uses(pod.uid)}
        return composed(node, found, self.uses(pod.uid))


def composed(node: Node, found: Mapping[str, Found], uses: Mapping[str, tuple[Toleration, ...]]) -> Node:
    """A node as a pod sees it that has these devices."""
    taints = [replace(one, native=uses[device]) for device, (given, _, _) in found.items() for one in given]
    parts = tuple(serial for _, serials, _ in found.values() for serial in serials)
    unpublished = tuple(device for device, (_, _, is_published) in found.items() if not is_published)
    return replace(node, taints=(*node.taints, *taints), parts=parts, unpublished=unpublished)


class DevicesOverTime:
    """What is stored now, and what the taints of each device were before."""

    def __init__(self, world: "World") -> None:
        self.now = Devices()
        self._world = world
        self._past: dict[str, Past] = {}
        """Device -> its taints."""
        self._claims: dict[str, list[Past]] = {}
        """UID -> the pasts of all claims that were ever reserved for the pod."""
        world.store.changed.append(self._changed)
        world.store.restored.append(self._restored)

    def _changed(self, kind: str, key: str, _before: Any, after: Any) -> None:
        if kind not in DEVICE_KINDS:
            return
        self.now.see(kind, key, after)
        if kind == "claims" and after is not None:
            for uid in after.pods:
                pasts = self._claims.setdefault(uid, [])
                past = self._world.store.past["claims"][key]
                if not any(one is past for one in pasts):
                    pasts.append(past)
        self._note()

    def _restored(self) -> None:
        self.now = Devices()
        for kind in DEVICE_KINDS:
            for key, obj in self._world.store.objects[kind].items():
                self.now.see(kind, key, obj)
        self._note()

    def _note(self) -> None:
        for device in {**self._past, **dict.fromkeys(self.now.known)}:
            found, past = self.now.taints(device), self._past.setdefault(device, Past())
            if not past.states or past.states[-1] != found:
                past.add(self._world.agenda.now, found)

    def claims_of(self, pod: Pod) -> list[Past]:
        """The pasts of the claims of a pod."""
        return self._claims.get(pod.uid, [])

    def pasts(self, pod: Pod) -> list[Past]:
        """The pasts of all that says which taints the pod's devices have."""
        claims = self.claims_of(pod)
        devices = {device: None for one in claims for state in one.states if state for device in state.devices}
        return [*claims, *(self._past[device] for device in devices)]

    def states(self, pod: Pod, states: list[tuple[float, Node]], moment: float, uses_at: float) -> list[Any]:
        """States of a node up to a moment, with the taints of the devices that the pod has at ``uses_at``.

        Also before the node: a kubelet that registers it again changes nothing about its devices.
        """
        uses: dict[str, tuple[Toleration, ...]] = {}
        for claim in (one.at(uses_at) for one in self._claims.get(pod.uid, ())):
            if claim is not None and pod.uid in claim.pods:
                uses |= dict.fromkeys(claim.devices, claim.tolerations)
        if not uses or not states:
            return states
        pasts = {device: self._past[device] for device in sorted(uses)}
        times = {at for past in pasts.values() for at in past.times if at <= moment}
        first, found, index = replace(states[0][1], taints=()), [], 0
        for at in sorted({at for at, _ in states} | {EPOCH + at for at in times}):
            while index + 1 < len(states) and states[index + 1][0] <= at:
                index += 1
            of_devices = {device: past.at(at - EPOCH + ROUNDING) or NOTHING for device, past in pasts.items()}
            found.append((at, composed(states[index][1] if at >= states[0][0] else first, of_devices, uses)))
        return found

"""Devices and the pods that have them: such a pod has a class of its own, and its node has the taints of its devices.

So everything that is true of a node's taints is true of them: verdicts, histories, guards, limits and reports know no
other path. The histories are stored with those of the node, since drivers own their slices and replace them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from weakref import WeakKeyDictionary, WeakValueDictionary

from msgspec.structs import replace

from taintwarden.engine.device_inventory import (
    DeviceClaim,
    DeviceInventory,
    Slice,
    SliceChange,
    TaintRule,
    TimedTaint,
    group_of,
    is_in_namespace_of,
)
from taintwarden.engine.history import is_of_rule
from taintwarden.engine.machine.cluster import NodeState, history_name
from taintwarden.engine.machine.world import World
from taintwarden.engine.model import DeviceId, DeviceUse, Pod, PodClass


class Equipping:
    """What is known of devices. Without a policy that selects their taints it is empty, and no pod has any.

    Args:
        world: the state.

    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._inventory = DeviceInventory()
        self._nodes: dict[str, str] = {}
        """UID -> the node of each pod, while devices are known: claims come before the pods or after them."""
        self._members: dict[str, dict[str, str]] = {}
        """PodGroup -> UID -> the node of each pod of it that uses claims."""
        self._classes: WeakValueDictionary[tuple[PodClass, tuple[DeviceUse, ...]], PodClass] = WeakValueDictionary()
        self._plain: WeakKeyDictionary[PodClass, PodClass] = WeakKeyDictionary()
        """The class without devices of each class with some."""
        self._nodes_with: dict[tuple[str, str], dict[str, dict[str, None]]] = {}
        """Driver and name of a pool -> device -> the nodes with pods that have it."""

    # -- pods -----------------------------------------------------------------------------------------------------

    def equip(self, pod: Pod) -> Pod:
        """A pod with the devices that it has now, whatever it had."""
        uses: tuple[DeviceUse, ...] = ()
        if self._world.devices_known:
            self._know(pod)
            uses = self._inventory.uses(pod)
        plain = self.plain(pod.shared)
        if not uses:
            return pod if plain is pod.shared else replace(pod, shared=plain)
        key = (plain, uses)
        found = self._classes.get(key)
        if found is None:
            found = self._classes[key] = replace(plain, devices=uses)
            self._plain[found] = plain
        return replace(pod, shared=found)

    def _know(self, pod: Pod) -> None:
        self._nodes[pod.uid] = pod.node
        if group := group_of(pod):
            self._members.setdefault(group, {})[pod.uid] = pod.node

    def plain(self, pod_class: PodClass) -> PodClass:
        """The class as streams deliver it, without devices."""
        return self._plain.get(pod_class, pod_class)

    def lost(self, pod: Pod) -> None:
        """The pod is gone."""
        if self._nodes.get(pod.uid) == pod.node:
            del self._nodes[pod.uid]
        if members := self._members.get(group_of(pod)):
            members.pop(pod.uid, None)
            if not members:
                del self._members[group_of(pod)]

    def refresh(self, state: NodeState, devices: Iterable[DeviceId] | None = None, *, gap: bool = False) -> bool:
        """Bring the taints of these devices, or of all that its pods have, to a node. Returns whether they changed.

        ``gap``: changes may be missing.
        """
        if (is_gap := self._world.late_devices.pop(state.name, None)) is not None:
            devices, gap = None, gap or is_gap
        if not self._world.devices_known:
            return state.lose_devices()
        if not self._world.synced:  # pods may be missing, and with them devices whose histories are stored
            return False
        if devices is None or state.awaits_devices:
            devices = {**state.uses, **state.taints_by_device}
        found = {device: self._taints(state, device) for device in devices}
        followed = frozenset(one for one in found if one in state.uses and self._inventory.has(one, state.name))
        now, seen_until = self._world.now.wall, self._world.seen_until(of_devices=True)
        is_changed = state.update_devices(found, followed, now, seen_until=seen_until, gap=gap)
        state.forget_absent(found, partial(self._is_taken_off, state.name))
        is_there = self._world.cluster.nodes.get(state.name) is state
        for device in found:
            self._note(device, state.name, used=is_there and device in state.uses)
        return is_changed

    def refresh_late(self, nodes: Iterable[str], *, gap: bool = False) -> None:
        """Have all devices of these nodes looked up when they are evaluated."""
        late = self._world.late_devices
        for name in nodes if self._world.synced else ():
            late[name] = gap or name in late  # of two changes, the first is not seen

    def catch_up(self, node: str) -> bool:
        """A node is evaluated, or would be if it were not gone. Returns whether the taints of its devices changed."""
        state = self._world.cluster.nodes.get(node)
        if state is None:
            self._world.late_devices.pop(node, None)
            return False
        return node in self._world.late_devices and self.refresh(state)

    def _taints(self, state: NodeState, device: DeviceId) -> tuple[TimedTaint, ...]:
        if device not in state.uses:
            return ()
        return self._inventory.taints(device, state.name, state.taints_by_device.get(device, ()))

    def _note(self, device: DeviceId, node: str, *, used: bool) -> None:
        """Whether a node has pods with a device."""
        place = (device.driver, device.pool)
        if used:
            self._nodes_with.setdefault(place, {}).setdefault(device.device, {})[node] = None
            return
        devices = self._nodes_with.get(place, {})
        nodes = devices.get(device.device, {})
        nodes.pop(node, None)
        if not nodes:
            devices.pop(device.device, None)
        if not devices:
            self._nodes_with.pop(place, None)

    def _is_taken_off(self, node: str, name: str, device: DeviceId) -> bool:
        """Whether a taint is gone, and not only its device or claim: if it comes back, its time begins again."""
        is_decided = is_of_rule(name) or self._inventory.has(device, node)
        return is_decided and all(history_name(one) != name for one, _ in self._inventory.taints(device, node))

    # -- what streams deliver ---------------------------------------------------------------------------------------

    def know(self, *, known: bool, is_listed: bool) -> list[Pod]:
        """Slices, rules and claims were listed; or no policy needs them any more. Returns the pods to be seen again.

        While they are still listed (``is_listed``), what has come of them so far stays.
        """
        if known == self._world.devices_known:
            if not (known or is_listed):
                self._inventory = DeviceInventory()
            return []
        self._world.devices_known = known
        self._nodes, self._members, self._nodes_with = {}, {}, {}
        pods = [pod for state in self._world.cluster.nodes.values() for pod in state.pods.values()]
        if not known:
            self._inventory = DeviceInventory()
            return [pod for pod in pods if pod.shared.devices]
        for pod in pods:
            self._know(pod)
        having = set(self._pods_of(self._inventory.all_consumers()))
        return [pod for pod in pods if pod.uid in having]

    def put_slice(self, name: str, found: Slice | None) -> Mapping[str, Collection[DeviceId]]:
        """A slice is stored like this, or is gone. Returns the nodes that it concerns, with their devices."""
        return _by_node(chain.from_iterable(map(self._changed_by, self._inventory.put_slice(name, found))))

    def _changed_by(self, change: SliceChange) -> Iterator[tuple[str, DeviceId]]:
        devices = self._nodes_with.get((change.driver, change.pool), {})
        named: Iterable[str] = devices if change.devices is None else change.devices
        if change.devices is None and change.node:  # pools of other nodes may have this name, and any number of devices
            named = self._devices_on(change.node, change.driver, change.pool)
        for device in list(named):
            nodes = devices.get(device, {})
            for node in nodes if not change.node else (change.node,) if change.node in nodes else ():
                yield node, DeviceId(change.driver, change.pool, device)

    def _devices_on(self, node: str, driver: str, pool: str) -> list[str]:
        state = self._world.cluster.nodes.get(node)
        known = {**state.uses, **state.taints_by_device} if state is not None else ()
        return [one.device for one in known if (one.driver, one.pool) == (driver, pool)]

    def put_rule(self, name: str, found: TaintRule | None) -> Mapping[str, Collection[DeviceId]]:
        """A rule is stored like this, or is gone. Returns the nodes that it concerns, with their devices."""
        return _by_node(chain.from_iterable(map(self._selected_by, self._inventory.put_rule(name, found))))

    def _selected_by(self, rule: TaintRule) -> Iterator[tuple[str, DeviceId]]:
        if rule.driver is not None and rule.pool is not None:
            pools = [(rule.driver, rule.pool)]
        else:
            pools = [one for one in self._nodes_with if rule.driver in (None, one[0]) and rule.pool in (None, one[1])]
        for driver, pool in pools:
            devices = self._nodes_with.get((driver, pool), {})
            for device in devices if rule.device is None else (rule.device,):
                one = DeviceId(driver, pool, device)
                yield from ((node, one) for node in devices.get(device, ()))

    def put_claim(self, key: str, found: DeviceClaim | None) -> Iterator[Pod]:
        """A claim is allocated like this, or is not. Returns the pods that have other devices because of it."""
        for uid in self._pods_of(self._inventory.put_claim(key, found)):
            pod = self._world.cluster.pod(self._nodes.get(uid, ""), uid)
            if pod is not None and is_in_namespace_of(pod, key):
                yield pod

    def _pods_of(self, consumers: Iterable[str]) -> Iterator[str]:
        """The UIDs of pods that claims are reserved for, and of those in PodGroups that they are reserved for."""
        for one in consumers:
            yield from self._members.get(one, (one,))


def _by_node(concerned: Iterable[tuple[str, DeviceId]]) -> Mapping[str, Collection[DeviceId]]:
    found: dict[str, dict[DeviceId, None]] = {}
    for node, device in concerned:
        found.setdefault(node, {})[device] = None
    return found

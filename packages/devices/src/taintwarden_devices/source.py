"""Devices and the pods that have them: such pods have a class of their own, and their node the devices' taints."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from weakref import WeakKeyDictionary, WeakValueDictionary

from msgspec.structs import replace

from taintwarden.engine.history import TaintHistory, is_beside
from taintwarden.engine.machine import (
    BLIND_KEY,
    NOT_LISTED,
    NodeState,
    SourceHost,
    TimedTaints,
    history_name,
    pending_key,
)
from taintwarden.engine.machine.events import SourceEvent
from taintwarden.engine.model import DeviceId, DeviceUse, Pod, PodClass, WallTime
from taintwarden_devices import events
from taintwarden_devices.inventory import (
    DeviceClaim,
    DeviceInventory,
    SliceChange,
    TaintRule,
    device_of,
    group_of,
    is_of_rule,
)
from taintwarden_devices.node_taints import DeviceTaints

JUDGED_AT_ONCE = 8
"""Of so many nodes that a change concerns. Of more nodes devices are looked up, and pods evaluated, in steps."""


class Devices:
    """A source of taints: the methods are those of :class:`taintwarden.engine.machine.source.TaintSource`.

    Args:
        host: the machine.

    """

    def __init__(self, host: SourceHost) -> None:
        self.problem = NOT_LISTED
        self.blind: dict[str, WallTime] = {}
        self._host = host
        self._is_known = False
        """Whether slices, rules and claims were listed. Before that no pod has any device."""
        self._inventory = DeviceInventory()
        self._nodes: dict[str, str] = {}
        """UID -> the node of each pod: claims come before the pods or after them."""
        self._members: dict[str, dict[str, None]] = {}
        """PodGroup -> the UIDs of its pods that use claims."""
        self._classes: WeakValueDictionary[tuple[PodClass, tuple[DeviceUse, ...]], PodClass] = WeakValueDictionary()
        self._plain: WeakKeyDictionary[PodClass, PodClass] = WeakKeyDictionary()
        """The class without devices of each class with some."""
        self._nodes_with: dict[tuple[str, str], dict[str, dict[str, None]]] = {}
        """Driver and name of a pool -> device -> the nodes with pods that have it."""
        self._late: dict[str, bool] = {}
        """Nodes whose devices are looked up when they are evaluated, and whether changes may be missing."""
        self._unequipped: set[str] = set()
        """Those of them whose pods may have other devices, too."""
        self._pending: dict[str, None] = {}
        """Nodes to be evaluated if their taints changed: as often as drivers write, so they delay no others."""

    # -- pods -----------------------------------------------------------------------------------------------------

    def equip(self, pod: Pod) -> Pod:
        """A pod with the devices that it has now, whatever it had."""
        uses: tuple[DeviceUse, ...] = ()
        if self._is_known:
            self._nodes[pod.uid] = pod.node
            if group := group_of(pod):
                self._members.setdefault(group, {})[pod.uid] = None
            uses = self._inventory.uses(pod)
        plain = self._plain.get(pod.shared, pod.shared)
        if not uses:
            return pod if plain is pod.shared else replace(pod, shared=plain)
        key = (plain, uses)
        found = self._classes.get(key)
        if found is None:
            found = self._classes[key] = replace(plain, devices=uses)
            self._plain[found] = plain
        return replace(pod, shared=found)

    def exchanged(self, state: NodeState, before: Pod | None, after: Pod | None) -> bool:
        """A pod of this node was like this, and is like that (None: it was not there, or is gone)."""
        if before is not None and after is None:
            self._forget(before)
        had, has = (None if one is None else one.shared for one in (before, after))
        if had is has or not any(one is not None and one.devices for one in (had, has)):
            return False
        known = _taints(state)
        devices = known.use(had, has)
        for device in devices:
            self._note(device, state.name, used=device in known.uses)
        return bool(devices) and state.name not in self._late and self.refresh(state, devices)

    def _forget(self, pod: Pod) -> None:
        if self._nodes.get(pod.uid) != pod.node:
            return
        del self._nodes[pod.uid]
        if members := self._members.get(group_of(pod)):
            members.pop(pod.uid, None)
            if not members:
                del self._members[group_of(pod)]

    # -- nodes ----------------------------------------------------------------------------------------------------

    def restore(self, state: NodeState, stored: Mapping[str, TaintHistory], seen_until: float, *, is_new: bool) -> None:
        """Read what the node's annotation has."""
        if state.beside is not None or any(map(is_beside, stored)):
            _taints(state).restore(stored, self._host.now.wall, seen_until, is_new=is_new)

    def refresh(self, state: NodeState, devices: Iterable[DeviceId] | None = None, *, gap: bool = False) -> bool:
        """Bring the newest taints of some of the devices that its pods have to a node; None: of all.

        ``gap``: changes may be missing.
        """
        if state.name in self._unequipped:
            self._equip_again(state)
        if (is_gap := self._late.pop(state.name, None)) is not None:
            devices, gap = None, gap or is_gap
        if state.beside is None:
            return False
        known = _taints(state)
        if not self._is_known:
            is_changed = known.lose()
        elif not self._host.is_synced:  # pods may be missing, and with them devices whose histories are stored
            return False
        else:
            is_changed = self._look_up(state, known, devices, gap=gap)
        if is_changed:
            state.forget_verdicts()
        return is_changed

    def _look_up(self, state: NodeState, known: DeviceTaints, devices: Iterable[DeviceId] | None, *, gap: bool) -> bool:
        if devices is None or known.is_awaited:
            devices = {**known.uses, **known.by_device}
        found: dict[DeviceId, TimedTaints] = {
            one: self._inventory.taints(one, state.name, known.by_device.get(one, ())) if one in known.uses else ()
            for one in devices
        }
        followed = frozenset(one for one in found if one in known.uses and self._inventory.has(one, state.name))
        now, seen_until = self._host.now.wall, min(self.blind.values(), default=self._host.now.wall)
        is_changed = known.update(found, followed, now, seen_until=seen_until, gap=gap)
        known.forget_absent(partial(self._is_taken_off, state.name, found))
        return is_changed

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

    def _is_taken_off(self, node: str, devices: Collection[DeviceId], name: str) -> bool:
        """Whether a taint of these is gone, and not only device or claim: if it comes back, its time begins again."""
        device = device_of(name)
        if device is None or device not in devices or not (is_of_rule(name) or self._inventory.has(device, node)):
            return False
        return all(history_name(one) != name for one, _ in self._inventory.taints(device, node))

    # -- what waits to be evaluated -------------------------------------------------------------------------------

    def look_again(self) -> None:
        """All pods may have other devices, and all devices other taints."""
        if self._is_known and self._host.is_synced:
            self._unequipped.update(self._host.nodes)
            self._look_later(self._host.nodes)
            self._host.judge_later(self._host.nodes)

    def _look_later(self, nodes: Iterable[str], *, gap: bool = False) -> None:
        for name in nodes:
            self._late[name] = gap or name in self._late  # of two changes, the first is not seen

    def is_pending(self, node: str) -> bool:
        """Whether pods of a node wait to be evaluated, since their taints may have changed."""
        return node in self._pending

    @property
    def is_busy(self) -> bool:
        """Whether any do."""
        return bool(self._pending)

    def catch_up(self, node: str) -> bool:
        """A node is evaluated, or would be if it were not gone. Returns whether the taints of its pods changed."""
        if node not in self._late:
            return False
        return self.refresh(self._host.nodes.get(node) or NodeState(node))

    def _equip_again(self, state: NodeState) -> None:
        """Before any of its taints is looked up: stored histories are of devices that any of its pods may have."""
        self._unequipped.discard(state.name)
        for pod in list(state.pods.values()):
            if self.equip(pod).shared is not pod.shared:
                self._host.put(pod)

    def advance(self, budget: int) -> int:
        """Have about so many pods evaluated that wait. Returns how much of the budget is left."""
        while self._pending and budget > 0:
            name = next(iter(self._pending))
            del self._pending[name]
            is_changed, state = self.catch_up(name), self._host.nodes.get(name)
            if is_changed and state is not None:
                self._host.judge(state)
            budget -= 1 if state is None else len(state.pods) + 1
            self._host.release(pending_key(name))
        return budget

    # -- what streams deliver -------------------------------------------------------------------------------------

    def take(self, event: SourceEvent) -> None:
        """What a stream delivered."""
        inventory = self._inventory
        match event:
            case events.SliceChanged(name, found, listed):
                self._changed(self._of_slices(inventory.put_slice(name, found)), gap=listed)
            case events.TaintRuleChanged(name, rule, listed):
                self._changed(self._of_rules(inventory.put_rule(name, rule)), gap=listed)
            case events.ClaimChanged(key, claim):
                self._put_claim(key, claim)
            case events.StreamChanged(stream, live):
                self._see_stream(stream, live=live)
            case events.DevicesKnown(known, problem):
                self._know(known=known, problem=problem)

    def _see_stream(self, stream: str, *, live: bool) -> None:
        if not live:
            self.blind.setdefault(stream, self._host.now.wall)
            return
        self.blind.pop(stream, None)
        if not self.blind:
            self._host.release(BLIND_KEY)

    def _changed(self, concerned: Iterable[tuple[str, DeviceId]], *, gap: bool = False) -> None:
        """Devices may have other taints, for the pods on these nodes."""
        nodes: dict[str, dict[DeviceId, None]] = {}
        for node, device in concerned:
            nodes.setdefault(node, {})[device] = None
        if len(nodes) > JUDGED_AT_ONCE:
            if self._host.is_synced:
                self._look_later(nodes, gap=gap)
                self._pending.update(dict.fromkeys(nodes))
            return
        for name, devices in nodes.items():
            state = self._host.nodes.get(name)
            if state is not None and self.refresh(state, devices, gap=gap):
                self._host.judge(state)  # at once, as for a node: drivers must not make evictions wait

    def _of_slices(self, changes: Iterable[SliceChange]) -> Iterator[tuple[str, DeviceId]]:
        """The nodes that changes of slices concern, with their devices."""
        for change in changes:
            devices = self._nodes_with.get((change.driver, change.pool), {})
            named: Iterable[str] = devices if change.devices is None else change.devices
            if change.devices is None and change.node:  # other nodes may have pools of this name, with any devices
                named = self._devices_on(change.node, change.driver, change.pool)
            for device in list(named):
                nodes = devices.get(device, {})
                for node in nodes if not change.node else (change.node,) if change.node in nodes else ():
                    yield node, DeviceId(change.driver, change.pool, device)

    def _devices_on(self, node: str, driver: str, pool: str) -> list[str]:
        state = self._host.nodes.get(node)
        if state is None or state.beside is None:
            return []
        known = _taints(state)
        return [one.device for one in {**known.uses, **known.by_device} if (one.driver, one.pool) == (driver, pool)]

    def _of_rules(self, rules: Iterable[TaintRule]) -> Iterator[tuple[str, DeviceId]]:
        """The nodes that rules concern, with their devices."""
        for rule in rules:
            pools: Iterable[tuple[str, str]]
            if rule.driver is not None and rule.pool is not None:
                pools = [(rule.driver, rule.pool)]
            else:
                pools = [
                    one for one in self._nodes_with if rule.driver in (None, one[0]) and rule.pool in (None, one[1])
                ]
            for driver, pool in pools:
                devices = self._nodes_with.get((driver, pool), {})
                for device in devices if rule.device is None else (rule.device,):
                    one = DeviceId(driver, pool, device)
                    yield from ((node, one) for node in devices.get(device, ()))

    def _put_claim(self, key: str, found: DeviceClaim | None) -> None:
        """A claim is allocated like this, or is not."""
        consumers = self._inventory.put_claim(key, found)
        uids = list(chain.from_iterable(self._members.get(one, (one,)) for one in consumers))
        for uid in uids:
            state = self._host.nodes.get(self._nodes.get(uid, ""))
            pod = None if state is None else state.pods.get(uid)
            if pod is not None and key.startswith(f"{pod.namespace}/"):  # others may not name it
                self._host.see_pod(pod)

    def _know(self, *, known: bool, problem: str) -> None:
        """All was listed; or it is not known, because of a problem. Without one, what came so far does not count."""
        self.problem = "" if known else problem or NOT_LISTED
        if not known and (self._is_known or not problem):
            self._inventory = DeviceInventory()
            self.blind.clear()
            self._host.release(BLIND_KEY)
        was_known, self._is_known = self._is_known, known
        if was_known and not known:
            self._lose()
        self.look_again()

    def _lose(self) -> None:
        """No pod has any device that is known."""
        self._nodes, self._members, self._nodes_with = {}, {}, {}
        self._late.clear()
        self._unequipped.clear()
        for name, state in list(self._host.nodes.items()):
            if state.beside is not None:
                pods = [one for one in state.pods.values() if one.shared.devices]
                for pod in pods:
                    self._host.put(pod)
                if self.refresh(state) or pods:
                    self._host.judge_later([name])
        for name in self._pending:
            self._host.release(pending_key(name))
        self._pending.clear()


def _taints(state: NodeState) -> DeviceTaints:
    """What is kept of a node."""
    if not isinstance(state.beside, DeviceTaints):
        state.beside = DeviceTaints()
    return state.beside

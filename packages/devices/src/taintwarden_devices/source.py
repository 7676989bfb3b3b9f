"""The source of taints of devices. It gives pods with devices classes of their own, and NodeStates their taints."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from weakref import WeakKeyDictionary, WeakValueDictionary

from msgspec.structs import replace

from taintwarden.engine.events import SourceEvent
from taintwarden.engine.history import TaintHistory, is_of_device
from taintwarden.engine.machine import (
    BLIND_KEY,
    NOT_LISTED,
    NodeState,
    SourceHost,
    TimedTaints,
    history_name,
    pending_key,
)
from taintwarden.engine.model import DeviceId, DeviceUse, Pod, PodClass, WallTime
from taintwarden_devices import events
from taintwarden_devices.inventory import (
    DeviceClaim,
    DeviceInventory,
    SliceChange,
    TaintRule,
    device_of,
    group_of,
    is_rule_history,
)
from taintwarden_devices.node_taints import DeviceTaints

MAX_EVALUATED_AT_ONCE = 8
"""Maximum number of nodes whose pods are evaluated at once after a change. More nodes are evaluated in steps."""


class Devices:
    """The source of taints of devices, an implementation of :class:`taintwarden.engine.machine.source.TaintSource`.

    Args:
        host: the machine.

    """

    def __init__(self, host: SourceHost) -> None:
        self.problem = NOT_LISTED
        self.blind: dict[str, WallTime] = {}
        self._host = host
        self._is_known = False
        """True if slices, claims, and rules if served, were listed. Before that, no pod has devices."""
        self._inventory = DeviceInventory()
        self._nodes: dict[str, str] = {}
        """UID of a pod -> its node. A claim may become known before or after the pod."""
        self._members: dict[str, dict[str, None]] = {}
        """PodGroup -> the UIDs of its pods that use claims."""
        self._classes: WeakValueDictionary[tuple[PodClass, tuple[DeviceUse, ...]], PodClass] = WeakValueDictionary()
        self._plain: WeakKeyDictionary[PodClass, PodClass] = WeakKeyDictionary()
        """Class with devices -> the same class without devices."""
        self._nodes_with: dict[tuple[str, str], dict[str, dict[str, None]]] = {}
        """Driver and pool name -> device -> the nodes with pods that use it."""
        self._late: dict[str, bool] = {}
        """Node whose devices are looked up when it is evaluated -> True if changes may be missing."""
        self._unequipped: set[str] = set()
        """Late nodes whose pods may have other devices, too."""
        self._pending: dict[str, None] = {}
        """Nodes to evaluate in steps, if their taints changed, so that a driver's writes do not delay other nodes."""

    # -- pods -----------------------------------------------------------------------------------------------------

    def equip(self, pod: Pod) -> Pod:
        """Return the pod with its present devices."""
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

    def replace_pod(self, state: NodeState, before: Pod | None, after: Pod | None) -> bool:
        """Replace a pod of the node; None: it is new, or gone. Returns True if source taints changed."""
        if before is not None and after is None:
            self._forget(before)
        had, has = (None if pod is None else pod.shared for pod in (before, after))
        if had is has or not any(one is not None and one.devices for one in (had, has)):
            return False
        known = _taints(state)
        devices = known.count_pod(had, has)
        for device in devices:
            self._record_use(device, state.name, used=device in known.uses)
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
        """Read the histories in the node's annotation."""
        if state.source_taints is not None or any(map(is_of_device, stored)):
            _taints(state).restore(stored, self._host.now.wall, seen_until, is_new=is_new)

    def refresh(self, state: NodeState, devices: Iterable[DeviceId] | None = None, *, gap: bool = False) -> bool:
        """Look up the newest taints of devices that the node's pods use. Returns True if they changed.

        ``devices``: the devices to look up; None for all. ``gap``: True if changes may be missing.
        """
        if state.name in self._unequipped:
            self._equip_again(state)
        if (is_gap := self._late.pop(state.name, None)) is not None:
            devices, gap = None, gap or is_gap
        if state.source_taints is None:
            return False
        known = _taints(state)
        if not self._is_known:
            is_changed = known.mark_unknown()
        elif not self._host.is_synced:  # pods may be missing, and so devices whose histories are stored
            return False
        else:
            is_changed = self._look_up(state, known, devices, gap=gap)
        if is_changed:
            state.forget_verdicts()
        return is_changed

    def _look_up(self, state: NodeState, known: DeviceTaints, devices: Iterable[DeviceId] | None, *, gap: bool) -> bool:
        if devices is None or known.is_unknown:
            devices = {**known.uses, **known.by_device}
        found: dict[DeviceId, TimedTaints] = {
            one: self._inventory.taints(one, state.name, known.by_device.get(one, ())) if one in known.uses else ()
            for one in devices
        }
        followed = frozenset(one for one in found if one in known.uses and self._inventory.has(one, state.name))
        now, seen_until = self._host.now.wall, min(self.blind.values(), default=self._host.now.wall)
        is_changed = known.update(found, followed, now, seen_until=seen_until, gap=gap)
        known.forget_absent(partial(self._is_removed, state.name, found))
        return is_changed

    def _record_use(self, device: DeviceId, node: str, *, used: bool) -> None:
        """Record whether pods on a node use a device."""
        pool = (device.driver, device.pool)
        if used:
            self._nodes_with.setdefault(pool, {}).setdefault(device.device, {})[node] = None
            return
        devices = self._nodes_with.get(pool, {})
        nodes = devices.get(device.device, {})
        nodes.pop(node, None)
        if not nodes:
            devices.pop(device.device, None)
        if not devices:
            self._nodes_with.pop(pool, None)

    def _is_removed(self, node: str, devices: Collection[DeviceId], name: str) -> bool:
        """True if the taint with this history was removed, and not only its device or claim. Added again, it is new."""
        device = device_of(name)
        if device is None or device not in devices or not (is_rule_history(name) or self._inventory.has(device, node)):
            return False
        return all(history_name(taint) != name for taint, _ in self._inventory.taints(device, node))

    # -- pending evaluations --------------------------------------------------------------------------------------

    def recheck_all(self) -> None:
        """Look up the devices of all pods, and the taints of all devices, before the next evaluation of each node."""
        if self._is_known and self._host.is_synced:
            self._unequipped.update(self._host.nodes)
            self._defer(self._host.nodes)
            self._host.evaluate_later(self._host.nodes)

    def _defer(self, nodes: Iterable[str], *, gap: bool = False) -> None:
        for name in nodes:
            self._late[name] = gap or name in self._late  # of two changes, only the second is seen

    def is_pending(self, node: str) -> bool:
        """True if pods of the node wait to be evaluated, since taints of their devices may have changed."""
        return node in self._pending

    @property
    def is_busy(self) -> bool:
        """True if pods of any node wait to be evaluated."""
        return bool(self._pending)

    def catch_up(self, node: str) -> bool:
        """Look up the devices of a late node before its evaluation. Returns True if taints changed."""
        if node not in self._late:
            return False
        return self.refresh(self._host.nodes.get(node) or NodeState(node))

    def _equip_again(self, state: NodeState) -> None:
        """Give a node's pods their present devices before its taints are looked up, which drops unused histories."""
        self._unequipped.discard(state.name)
        for pod in list(state.pods.values()):
            if self.equip(pod).shared is not pod.shared:
                self._host.store_pod(pod)

    def advance(self, most: int) -> int:
        """Evaluate about ``most`` waiting pods. Returns how many are left of ``most``."""
        while self._pending and most > 0:
            name = next(iter(self._pending))
            del self._pending[name]
            is_changed, state = self.catch_up(name), self._host.nodes.get(name)
            if is_changed and state is not None:
                self._host.evaluate_node(state)
            most -= 1 if state is None else len(state.pods) + 1
            self._host.retry_refused(pending_key(name))
        return most

    # -- events of streams ----------------------------------------------------------------------------------------

    def process_event(self, event: SourceEvent) -> None:
        """Apply an event of a stream."""
        inventory = self._inventory
        match event:
            case events.SliceChanged(name, found, listed):
                self._evaluate_affected(self._affected_by_slices(inventory.put_slice(name, found)), gap=listed)
            case events.TaintRuleChanged(name, rule, listed):
                self._evaluate_affected(self._affected_by_rules(inventory.put_rule(name, rule)), gap=listed)
            case events.ClaimChanged(key, claim):
                self._put_claim(key, claim)
            case events.StreamChanged(stream, live):
                self._set_stream_state(stream, live=live)
            case events.DevicesKnown(known, problem):
                self._set_known(known=known, problem=problem)

    def _set_stream_state(self, stream: str, *, live: bool) -> None:
        if not live:
            self.blind.setdefault(stream, self._host.now.wall)
            return
        self.blind.pop(stream, None)
        if not self.blind:
            self._host.retry_refused(BLIND_KEY)

    def _evaluate_affected(self, affected: Iterable[tuple[str, DeviceId]], *, gap: bool = False) -> None:
        """Evaluate the pods on nodes whose devices may have other taints."""
        nodes: dict[str, dict[DeviceId, None]] = {}
        for node, device in affected:
            nodes.setdefault(node, {})[device] = None
        if len(nodes) > MAX_EVALUATED_AT_ONCE:
            if self._host.is_synced:
                self._defer(nodes, gap=gap)
                self._pending.update(dict.fromkeys(nodes))
            return
        for name, devices in nodes.items():
            state = self._host.nodes.get(name)
            if state is not None and self.refresh(state, devices, gap=gap):
                self._host.evaluate_node(state)  # at once, as for taints of a node: drivers must not delay evictions

    def _affected_by_slices(self, changes: Iterable[SliceChange]) -> Iterator[tuple[str, DeviceId]]:
        """Yield the nodes and devices that changes of slices affect."""
        for change in changes:
            devices = self._nodes_with.get((change.driver, change.pool), {})
            named: Iterable[str] = devices if change.devices is None else change.devices
            if change.devices is None and change.node:  # not the devices of other nodes with a pool of this name
                named = self._devices_on(change.node, change.driver, change.pool)
            for device in list(named):
                nodes = devices.get(device, {})
                for node in nodes if not change.node else (change.node,) if change.node in nodes else ():
                    yield node, DeviceId(change.driver, change.pool, device)

    def _devices_on(self, node: str, driver: str, pool: str) -> list[str]:
        state = self._host.nodes.get(node)
        if state is None or state.source_taints is None:
            return []
        known = _taints(state)
        return [one.device for one in {**known.uses, **known.by_device} if (one.driver, one.pool) == (driver, pool)]

    def _affected_by_rules(self, rules: Iterable[TaintRule]) -> Iterator[tuple[str, DeviceId]]:
        """Yield the nodes and devices that rules affect."""
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
                    affected = DeviceId(driver, pool, device)
                    yield from ((node, affected) for node in devices.get(device, ()))

    def _put_claim(self, key: str, found: DeviceClaim | None) -> None:
        """Apply a change of a claim to the pods that use it."""
        consumers = self._inventory.put_claim(key, found)
        uids = list(chain.from_iterable(self._members.get(consumer, (consumer,)) for consumer in consumers))
        for uid in uids:
            state = self._host.nodes.get(self._nodes.get(uid, ""))
            pod = None if state is None else state.pods.get(uid)
            if pod is not None and key.startswith(f"{pod.namespace}/"):  # claims of other namespaces do not count
                self._host.update_pod(pod)

    def _set_known(self, *, known: bool, problem: str) -> None:
        """Apply a ``DevicesKnown`` event."""
        self.problem = "" if known else problem or NOT_LISTED
        if not known and (self._is_known or not problem):
            self._inventory = DeviceInventory()
            self.blind.clear()
            self._host.retry_refused(BLIND_KEY)
        was_known, self._is_known = self._is_known, known
        if was_known and not known:
            self._drop_devices()
        self.recheck_all()

    def _drop_devices(self) -> None:
        """Remove the devices from all pods."""
        self._nodes, self._members, self._nodes_with = {}, {}, {}
        self._late.clear()
        self._unequipped.clear()
        for name, state in list(self._host.nodes.items()):
            if state.source_taints is not None:
                pods = [one for one in state.pods.values() if one.shared.devices]
                for pod in pods:
                    self._host.store_pod(pod)
                if self.refresh(state) or pods:
                    self._host.evaluate_later([name])
        for name in self._pending:
            self._host.retry_refused(pending_key(name))
        self._pending.clear()


def _taints(state: NodeState) -> DeviceTaints:
    """Return the taints of devices on a node, creating an empty object if there is none."""
    if not isinstance(state.source_taints, DeviceTaints):
        state.source_taints = DeviceTaints()
    return state.source_taints

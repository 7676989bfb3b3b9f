"""The inventory of devices of Dynamic Resource Allocation: their taints, and the pods that use them.

The rules are those of Kubernetes' device taint eviction (``pkg/controller/devicetainteviction`` of 1.37), with one
difference: while a pool is incomplete, its devices in no slice keep the taints of their last one. Otherwise every clock
would start again when a driver replaces its slices.

* A device has the taints of its ResourceSlice and of every DeviceTaintRule that selects it, in one list.
* Only the slices of a pool's newest generation count.
* A slice that names a node concerns pods on that node only. A kubelet may write such slices, of any driver and pool.
* A pod has the devices of the ResourceClaims that are reserved for it, or for its PodGroup if the pod names the claim.
  The tolerations for their taints are those of the claims.

The cost of an update depends only on the changed objects, since kubelets, drivers and tenants may write any number.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import islice, product
from typing import TypeVar

import msgspec

from taintwarden.engine.model import DeviceId, DeviceOrigin, DeviceUse, Pod, Taint

Key = TypeVar("Key")
TimedTaint = tuple[Taint, float | None]
MAX_DEVICES_OF_A_POD = 256
"""Maximum number of devices of a pod that count. A claim has at most 32, but a pod may have any number of claims."""


class DeviceTaint(msgspec.Struct, frozen=True, gc=False):
    """A taint of a device in a slice or rule. ``added_at``: its ``timeAdded``, in seconds since the epoch."""

    key: str
    value: str
    effect: str
    added_at: float | None = None


class Slice(msgspec.Struct, frozen=True):
    """A ResourceSlice: some devices of a pool with their taints.

    ``slices``: number of slices of the pool in this generation. ``node``: the only node with these devices, or empty.
    """

    driver: str
    pool: str
    generation: int
    slices: int
    devices: dict[str, tuple[DeviceTaint, ...]]
    node: str = ""


class TaintRule(msgspec.Struct, frozen=True):
    """A DeviceTaintRule. A field of its selector that is None matches every device."""

    taint: DeviceTaint
    driver: str | None = None
    pool: str | None = None
    device: str | None = None

    @property
    def selector(self) -> tuple[str | None, str | None, str | None]:
        """The fields that select devices, as a key of indexes."""
        return self.driver, self.pool, self.device


class DeviceClaim(msgspec.Struct, frozen=True):
    """An allocated ResourceClaim.

    Attributes:
        uses: its devices with the claim's tolerations.
        consumers: the UIDs of pods and the PodGroups (``namespace/name``) for which it is reserved.

    """

    uses: tuple[DeviceUse, ...]
    consumers: frozenset[str] = frozenset()


class SliceChange(msgspec.Struct, frozen=True):
    """Devices of a pool whose taints may have changed for pods on ``node`` (empty: on every node).

    ``devices``: their names; None for all, after a new generation or when the pool became complete or incomplete.
    """

    driver: str
    pool: str
    node: str
    devices: tuple[str, ...] | None


class _Generation:
    """The slices of one generation of a pool."""

    __slots__ = ("_counts", "_devices", "_slices")

    def __init__(self) -> None:
        self._slices: dict[str, Slice] = {}
        self._devices: dict[str, str] = {}
        """Device -> the slice that contains it. If a faulty driver writes several, the last one written."""
        self._counts: Counter[int] = Counter()
        """Size of the pool in slices -> number of slices that state this size."""

    def put(self, name: str, found: Slice) -> None:
        self._slices[name] = found
        self._counts[found.slices] += 1
        self._devices |= dict.fromkeys(found.devices, name)

    def drop(self, name: str) -> None:
        found = self._slices.pop(name)
        self._counts[found.slices] -= 1
        if not self._counts[found.slices]:
            del self._counts[found.slices]
        for device in found.devices:
            if self._devices.get(device) == name:
                del self._devices[device]

    def __bool__(self) -> bool:
        return bool(self._slices)

    @property
    def is_complete(self) -> bool:
        return len(self._slices) >= max(self._counts, default=0)

    def taints(self, device: str) -> tuple[DeviceTaint, ...] | None:
        name = self._devices.get(device)
        return None if name is None else self._slices[name].devices[device]


class _Pool:
    """The slices of a pool that name the same node, or no node."""

    __slots__ = ("_generations", "newest")

    def __init__(self) -> None:
        self._generations: dict[int, _Generation] = {}
        self.newest = -1
        """The newest generation, which counts; -1 if the pool has no slices."""

    def put(self, name: str, before: Slice | None, found: Slice | None) -> tuple[str, ...] | None:
        """Replace a slice. Returns the devices whose taints changed; None if those of all devices may have changed."""
        former = self.newest, self.is_complete
        if before is not None:
            generation = self._generations[before.generation]
            generation.drop(name)
            if not generation:
                del self._generations[before.generation]
        if found is not None:
            self._generations.setdefault(found.generation, _Generation()).put(name, found)
        if found is not None and found.generation > self.newest:
            self.newest = found.generation
        elif self.newest not in self._generations:
            self.newest = max(self._generations, default=-1)
        if former != (self.newest, self.is_complete):
            return None
        known, current = (
            one.devices if one is not None and one.generation == self.newest else {} for one in (before, found)
        )
        return tuple(one for one in {**known, **current} if known.get(one) != current.get(one))

    def __bool__(self) -> bool:
        return bool(self._generations)

    @property
    def is_complete(self) -> bool:
        """True if all slices of the newest generation are known."""
        return self.newest < 0 or self._generations[self.newest].is_complete

    def taints(self, device: str) -> tuple[DeviceTaint, ...] | None:
        """Return the taints of a device; None if no slice of the newest generation contains it."""
        return self._generations[self.newest].taints(device)


class DeviceInventory:
    """All slices, rules and claims by name. Each update returns the objects that it affects."""

    def __init__(self) -> None:
        self._slices: dict[str, Slice] = {}
        self._pools: dict[tuple[str, str], dict[str, _Pool]] = {}
        """Driver and pool name -> node that slices name -> these slices."""
        self._rules: dict[str, TaintRule] = {}
        self._rules_for: dict[tuple[str | None, str | None, str | None], dict[str, None]] = {}
        """Selector -> the names of the rules with this selector."""
        self._claims: dict[str, DeviceClaim] = {}
        self._claims_of: dict[tuple[str, str], dict[str, None]] = {}
        """Namespace and consumer -> the claims that are reserved for the consumer."""

    def put_slice(self, name: str, found: Slice | None) -> Collection[SliceChange]:
        """Store a slice, or remove it (None). Returns the devices whose taints may have changed."""
        before = self._slices.pop(name, None)
        if found is not None:
            self._slices[name] = found
        changes = []
        for pool_key in dict.fromkeys(_pool_key(slice_) for slice_ in (before, found) if slice_ is not None):
            old, new = (one if one is not None and _pool_key(one) == pool_key else None for one in (before, found))
            driver, named, node = pool_key
            pools = self._pools.setdefault((driver, named), {})
            pool = pools.setdefault(node, _Pool())
            devices = pool.put(name, old, new)
            if devices is None or devices:
                changes.append(SliceChange(driver, named, node, devices))
            if not pool:
                del pools[node]
            if not pools:
                del self._pools[driver, named]
        return changes

    def put_rule(self, name: str, found: TaintRule | None) -> Collection[TaintRule]:
        """Store a rule, or remove it (None). Returns the old and the new rule, whose devices may have other taints."""
        before = self._rules.pop(name, None)
        if before is not None:
            _remove_key(self._rules_for, before.selector, name)
        if found is not None:
            self._rules[name] = found
            self._rules_for.setdefault(found.selector, {})[name] = None
        return [one for one in (before, found) if one is not None and before != found]

    def put_claim(self, key: str, found: DeviceClaim | None) -> Collection[str]:
        """Store an allocated claim, or remove it (None). Returns the consumers whose devices changed."""
        before = self._claims.pop(key, None)
        if found is not None:
            self._claims[key] = found
        if found == before:
            return ()
        namespace = key.partition("/")[0]
        had, has = (one.consumers if one is not None else frozenset[str]() for one in (before, found))
        for consumer in had - has:
            _remove_key(self._claims_of, (namespace, consumer), key)
        for consumer in has - had:
            self._claims_of.setdefault((namespace, consumer), {})[key] = None
        is_same = before is not None and found is not None and before.uses == found.uses
        return sorted(had ^ has if is_same else had | has)

    def uses(self, pod: Pod) -> tuple[DeviceUse, ...]:
        """Return the devices of a pod, once for each different list of tolerations in its claims.

        Only claims in the pod's namespace count, since an account that may write the status of claims can name any pod.
        """
        found: dict[DeviceUse, None] = {}
        for key in islice(self._claims_for(pod), MAX_DEVICES_OF_A_POD):
            found |= dict.fromkeys(self._claims[key].uses)
            if len(found) >= MAX_DEVICES_OF_A_POD:
                break
        return tuple(sorted(islice(found, MAX_DEVICES_OF_A_POD), key=lambda use: use.device))

    def _claims_for(self, pod: Pod) -> Iterator[str]:
        yield from self._claims_of.get((pod.namespace, pod.uid), ())
        group = pod.shared.group
        if group is not None and (of_group := self._claims_of.get((pod.namespace, group_of(pod)))):
            yield from (key for name in group.claims if (key := f"{pod.namespace}/{name}") in of_group)

    def has(self, device: DeviceId, node: str) -> bool:
        """True if a slice that counts for pods on the node contains the device."""
        return self._slice_taints(self._pools_of(device, node), device) is not None

    def taints(
        self, device: DeviceId, node: str | None = None, before: Iterable[TimedTaint] = ()
    ) -> tuple[TimedTaint, ...]:
        """Return the taints of a device for pods on a node (None: any): those of its slice, then those of rules.

        ``before``: its taints until now. If its slice is missing and its pool incomplete, those of the slice are kept.
        """
        pools = self._pools_of(device, node)
        given = self._slice_taints(pools, device)
        held: list[TimedTaint] = []
        if given is None and not all(pool.is_complete for pool in pools):
            held = [one for one in before if one[0].origin is not None and not one[0].origin.rule]
        named = [("", taint) for taint in given or ()]
        named += [(name, self._rules[name].taint) for name in self._rules_on(device)]
        return (*held, *_numbered(device, named))

    def _pools_of(self, device: DeviceId, node: str | None) -> Collection[_Pool]:
        pools = self._pools.get((device.driver, device.pool), {})
        return pools.values() if node is None else [pools[one] for one in ("", node) if one in pools]

    def _slice_taints(self, pools: Iterable[_Pool], device: DeviceId) -> tuple[DeviceTaint, ...] | None:
        found = (pool.taints(device.device) for pool in pools)
        return next((one for one in found if one is not None), None)

    def _rules_on(self, device: DeviceId) -> list[str]:
        """Return the names of the rules that select a device, sorted."""
        if not self._rules:
            return []
        driver, pool, one = device
        selectors = product((driver, None), (pool, None), (one, None))
        return sorted(name for selector in selectors for name in self._rules_for.get(selector, ()))


def is_rule_history(name: str) -> bool:
    """True if the name is that of a DeviceTaintRule's taint: ``key:effect@driver/pool/device by rule``."""
    return " by " in name


def device_of(name: str) -> DeviceId | None:
    """Return the device whose taint has a history of this name; None for a taint of a node."""
    _, _, device = name.partition("@")
    driver, _, rest = device.partition(" ")[0].partition("/")
    pool, _, own = rest.rpartition("/")
    return DeviceId(driver, pool, own) if own else None


def group_of(pod: Pod) -> str:
    """Return the PodGroup of a pod as a consumer of claims; empty if it has none."""
    group = pod.shared.group
    return "" if group is None else f"{pod.namespace}/{group.name}"


def _numbered(device: DeviceId, named: Iterable[tuple[str, DeviceTaint]]) -> Iterator[TimedTaint]:
    numbers: Counter[tuple[str, str, str]] = Counter()
    for rule, taint in named:
        origin = DeviceOrigin(device, rule, numbers[rule, taint.key, taint.effect])
        numbers[rule, taint.key, taint.effect] += 1
        yield Taint(taint.key, taint.value, taint.effect, origin=origin), taint.added_at


def _remove_key(index: dict[Key, dict[str, None]], at: Key, key: str) -> None:
    index[at].pop(key, None)
    if not index[at]:
        del index[at]


def _pool_key(found: Slice) -> tuple[str, str, str]:
    return found.driver, found.pool, found.node

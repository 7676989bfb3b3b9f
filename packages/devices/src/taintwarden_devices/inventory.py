"""Devices of Dynamic Resource Allocation: which taints each has, and which pods have which.

The rules are those of Kubernetes' device taint eviction (``pkg/controller/devicetainteviction`` of 1.37), with one
difference: while a pool is incomplete, its devices keep the taints that are known of them. A driver that replaces its
slices would otherwise start every clock again.

* A device has the taints of its ResourceSlice, and of every DeviceTaintRule that selects it. They are one list.
* Of the slices of a pool only those of its newest generation count.
* A slice that names a node concerns pods on that node only. A kubelet may write such slices, of any driver and pool.
* A pod has the devices of the claims that are reserved for it, or for its PodGroup if the pod names the claim. What it
  tolerates of their taints, its claims say.

No change costs more than what changes: kubelets, drivers and tenants write these objects, each any number of them.
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
"""Of the devices of a pod so many count: a claim has at most 32, and a pod any number of claims."""


class DeviceTaint(msgspec.Struct, frozen=True, gc=False):
    """A taint of a device as it is stored. ``added_at``: its ``timeAdded``, in seconds since the epoch."""

    key: str
    value: str
    effect: str
    added_at: float | None = None


class Slice(msgspec.Struct, frozen=True):
    """A ResourceSlice: some devices of a pool with their taints. The pool has ``slices`` of them in each generation.

    ``node``: where the devices are; empty: on several nodes, or on none.
    """

    driver: str
    pool: str
    generation: int
    slices: int
    devices: dict[str, tuple[DeviceTaint, ...]]
    node: str = ""


class TaintRule(msgspec.Struct, frozen=True):
    """A DeviceTaintRule. What it does not name selects every device."""

    taint: DeviceTaint
    driver: str | None = None
    pool: str | None = None
    device: str | None = None

    @property
    def selector(self) -> tuple[str | None, str | None, str | None]:
        """Which devices it selects."""
        return self.driver, self.pool, self.device


class DeviceClaim(msgspec.Struct, frozen=True):
    """A ResourceClaim that is allocated.

    Attributes:
        uses: its devices.
        consumers: for whom it is reserved: UIDs of pods, and PodGroups as ``namespace/name``.

    """

    uses: tuple[DeviceUse, ...]
    consumers: frozenset[str] = frozenset()


class SliceChange(msgspec.Struct, frozen=True):
    """Which devices of a pool may have other taints, for pods on a node (empty: on every node).

    ``devices``: their names; None: all of them, since another generation counts, or the pool became complete.
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
        """Device -> the slice that has it; of several, which is a mistake of its driver, the one written last."""
        self._counts: Counter[int] = Counter()
        """How many slices the pool has -> how many slices say so."""

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
    """The slices of a pool that name one node, or none."""

    __slots__ = ("_generations", "newest")

    def __init__(self) -> None:
        self._generations: dict[int, _Generation] = {}
        self.newest = -1
        """The generation that counts; -1: there is none."""

    def put(self, name: str, before: Slice | None, found: Slice | None) -> tuple[str, ...] | None:
        """A slice was like this, and is like that. Returns the devices with other taints; None: perhaps all have."""
        stood = self.newest, self.is_complete
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
        if stood != (self.newest, self.is_complete):
            return None
        known, current = (
            one.devices if one is not None and one.generation == self.newest else {} for one in (before, found)
        )
        return tuple(one for one in {**known, **current} if known.get(one) != current.get(one))

    def __bool__(self) -> bool:
        return bool(self._generations)

    @property
    def is_complete(self) -> bool:
        """Whether all slices of the generation that counts are there."""
        return self.newest < 0 or self._generations[self.newest].is_complete

    def taints(self, device: str) -> tuple[DeviceTaint, ...] | None:
        """The taints of a device; None: it is in no slice that counts."""
        return self._generations[self.newest].taints(device)


class DeviceInventory:
    """What is known of slices, rules and claims, each by name. Every change returns what it concerns."""

    def __init__(self) -> None:
        self._slices: dict[str, Slice] = {}
        self._pools: dict[tuple[str, str], dict[str, _Pool]] = {}
        """Driver and name of a pool -> the node that its slices name -> the pool of these slices."""
        self._rules: dict[str, TaintRule] = {}
        self._rules_for: dict[tuple[str | None, str | None, str | None], dict[str, None]] = {}
        """What rules select -> their names."""
        self._claims: dict[str, DeviceClaim] = {}
        self._claims_of: dict[tuple[str, str], dict[str, None]] = {}
        """Namespace and consumer -> the claims that are reserved for it."""

    def put_slice(self, name: str, found: Slice | None) -> Collection[SliceChange]:
        """A slice is stored like this, or is gone. Returns what changed."""
        before = self._slices.pop(name, None)
        if found is not None:
            self._slices[name] = found
        changes = []
        for place in dict.fromkeys(_place(one) for one in (before, found) if one is not None):
            left, come = (one if one is not None and _place(one) == place else None for one in (before, found))
            driver, named, node = place
            pools = self._pools.setdefault((driver, named), {})
            pool = pools.setdefault(node, _Pool())
            devices = pool.put(name, left, come)
            if devices is None or devices:
                changes.append(SliceChange(driver, named, node, devices))
            if not pool:
                del pools[node]
            if not pools:
                del self._pools[driver, named]
        return changes

    def put_rule(self, name: str, found: TaintRule | None) -> Collection[TaintRule]:
        """A rule is stored like this, or is gone. Returns the rules that say which devices it concerns."""
        before = self._rules.pop(name, None)
        if before is not None:
            _drop(self._rules_for, before.selector, name)
        if found is not None:
            self._rules[name] = found
            self._rules_for.setdefault(found.selector, {})[name] = None
        return [one for one in (before, found) if one is not None and before != found]

    def put_claim(self, key: str, found: DeviceClaim | None) -> Collection[str]:
        """A claim is allocated like this, or is not. Returns the consumers that have other devices because of it."""
        before = self._claims.pop(key, None)
        if found is not None:
            self._claims[key] = found
        if found == before:
            return ()
        namespace = key.partition("/")[0]
        had, has = (one.consumers if one is not None else frozenset[str]() for one in (before, found))
        for consumer in had - has:
            _drop(self._claims_of, (namespace, consumer), key)
        for consumer in has - had:
            self._claims_of.setdefault((namespace, consumer), {})[key] = None
        is_same = before is not None and found is not None and before.uses == found.uses
        return sorted(had ^ has if is_same else had | has)

    def uses(self, pod: Pod) -> tuple[DeviceUse, ...]:
        """The devices that a pod has, each once for each way in which its claims tolerate taints.

        An account that may write the status of claims of one namespace may name any pod there: claims of other
        namespaces do not count.
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
        """Whether a device of pods on a node is in a slice that counts."""
        return self._given(self._pools_of(device, node), device) is not None

    def taints(
        self, device: DeviceId, node: str | None = None, before: Iterable[TimedTaint] = ()
    ) -> tuple[TimedTaint, ...]:
        """The taints of a device for pods on a node, or on any: those of its slice, then those of rules by name.

        ``before``: its taints until now. If it is in no slice because its pool is incomplete, those of its slice stay.
        """
        pools = self._pools_of(device, node)
        given = self._given(pools, device)
        held: list[TimedTaint] = []
        if given is None and not all(pool.is_complete for pool in pools):
            held = [one for one in before if one[0].origin is not None and not one[0].origin.rule]
        named = [("", taint) for taint in given or ()]
        named += [(name, self._rules[name].taint) for name in self._rules_on(device)]
        return (*held, *_numbered(device, named))

    def _pools_of(self, device: DeviceId, node: str | None) -> Collection[_Pool]:
        pools = self._pools.get((device.driver, device.pool), {})
        return pools.values() if node is None else [pools[one] for one in ("", node) if one in pools]

    def _given(self, pools: Iterable[_Pool], device: DeviceId) -> tuple[DeviceTaint, ...] | None:
        found = (pool.taints(device.device) for pool in pools)
        return next((one for one in found if one is not None), None)

    def _rules_on(self, device: DeviceId) -> list[str]:
        """The names of the rules that select a device."""
        if not self._rules:
            return []
        driver, pool, one = device
        selectors = product((driver, None), (pool, None), (one, None))
        return sorted(name for selector in selectors for name in self._rules_for.get(selector, ()))


def is_of_rule(name: str) -> bool:
    """Whether a history is of a taint that a DeviceTaintRule adds: ``key:effect@driver/pool/device by rule``."""
    return " by " in name


def device_of(name: str) -> DeviceId | None:
    """The device whose taint has a history of this name; None: a node's. What follows a space tells origins apart."""
    _, _, device = name.partition("@")
    driver, _, rest = device.partition(" ")[0].partition("/")
    pool, _, own = rest.rpartition("/")
    return DeviceId(driver, pool, own) if own else None


def group_of(pod: Pod) -> str:
    """The PodGroup of a pod as a consumer of claims; empty if it has none."""
    group = pod.shared.group
    return "" if group is None else f"{pod.namespace}/{group.name}"


def _numbered(device: DeviceId, named: Iterable[tuple[str, DeviceTaint]]) -> Iterator[TimedTaint]:
    numbers: Counter[tuple[str, str, str]] = Counter()
    for rule, taint in named:
        origin = DeviceOrigin(device, rule, numbers[rule, taint.key, taint.effect])
        numbers[rule, taint.key, taint.effect] += 1
        yield Taint(taint.key, taint.value, taint.effect, origin=origin), taint.added_at


def _drop(index: dict[Key, dict[str, None]], at: Key, key: str) -> None:
    index[at].pop(key, None)
    if not index[at]:
        del index[at]


def _place(found: Slice) -> tuple[str, str, str]:
    return found.driver, found.pool, found.node

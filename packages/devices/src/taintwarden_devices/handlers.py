"""Handlers for devices: what streams of slices, rules and claims deliver becomes events for the machine.

What cannot be read counts as absent: no pod is evicted because of a device whose taints are not known. The same is true
of what is more than one writer may have in memory: a kubelet may write any number of slices of its node, for example.
"""

import sys
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from taintwarden.controller.decoding.times import readable
from taintwarden.controller.handlers.keyed_handlers import KeyedHandler
from taintwarden.controller.loop import Feed
from taintwarden.engine.machine import Event
from taintwarden.engine.model import DeviceId, DeviceUse, Policy, Toleration
from taintwarden.kube.wire.kinds import Identity, TaintObject
from taintwarden.telemetry.metrics import Metrics
from taintwarden_devices import events
from taintwarden_devices.inventory import DeviceClaim, DeviceTaint, Slice, TaintRule
from taintwarden_devices.objects import (
    Consumer,
    DeviceClaimObject,
    SliceObject,
    TaintRuleObject,
)

Kind = TypeVar("Kind", SliceObject, TaintRuleObject, DeviceClaimObject)
Found = TypeVar("Found", Slice, TaintRule, DeviceClaim)
EVERY_DRIVER = ""
"""The name of the driver in a policy that names none."""
EVERY = frozenset((EVERY_DRIVER,))
MAX_OF_A_NODE = 4_096
"""Slices, devices and taints in the slices of one node."""
MAX_OF_A_NAMESPACE = 200_000
"""Claims, their devices and their tolerations in one namespace."""
MAX_OF_A_SELECTOR = 64
"""Rules that select the same devices."""


class DeviceHandler(KeyedHandler[Kind], Generic[Kind, Found]):
    """What handlers for devices share.

    Args:
        resource: whose stream it receives.
        feed: takes the events.
        metrics: counts restarts and faults.
        drivers: whose devices matter.
        trouble: called with the reason each time the server refuses, or does not answer.

    """

    event: Callable[..., Event]
    """The event for an object like this, or None where it is gone."""

    def __init__(
        self,
        resource: str,
        feed: Feed,
        metrics: Metrics,
        drivers: frozenset[str] = EVERY,
        trouble: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(resource, feed, metrics)
        self._drivers = drivers
        self._trouble = trouble
        self._kept: Counter[str] = Counter()
        """The weight of all that was passed on, by whose it is."""

    @abstractmethod
    def read(self, obj: Kind) -> Found | None:
        """What of an object matters; None if nothing does."""

    @abstractmethod
    def share(self, key: str, found: Found) -> tuple[str, int, int]:
        """Whose an object is, its weight, and the most of its owner."""

    def see(self, key: str, obj: Kind) -> None:
        """Pass it on if anything that matters changed: drivers write their slices repeatedly."""
        found, before = self.read(obj), self._passed_on.get(key)
        if found is not None and found == before:
            return
        self._count(key, before, -1)
        if self._count(key, found, 1):
            self._passed_on[key] = found
            self.feed(self.event(key, found, self._is_listing))
        else:
            super().lose(key)

    def lose(self, key: str | None) -> None:
        """Withdraw what was passed on, if anything."""
        if key is not None:
            self._count(key, self._passed_on.get(key), -1)
            super().lose(key)

    def _count(self, key: str, found: Any, step: int) -> bool:
        """Count what is passed on (1), or is not any more (-1). False: there is nothing, or too much of its owner."""
        if found is None:
            return False
        owner, weight, most = self.share(key, found)
        kept = self._kept[owner] + step * weight
        if kept > most:
            self.complain(owner, f"has more than {most} of what is kept, and the rest counts as absent")
            return False
        self._kept[owner] = kept
        if not kept:
            del self._kept[owner]
        return True

    def gone(self, key: str) -> Event:
        """The object is gone, or nothing of it matters."""
        return self.event(key, None)

    def undecodable(self, what: Identity, reason: str) -> None:
        """An old version of it must not count."""
        self.lose(self.key_of(what))
        super().undecodable(what, reason)

    def live(self, *, live: bool) -> None:
        """No pod is evicted because of devices by data from before a disconnection."""
        if live != self.is_live:
            self.is_live = live
            self.feed(events.StreamChanged(self.resource, live))

    def restarted(self, reason: str, detail: str) -> None:
        """Also say why."""
        if reason in ("refused", "unreachable"):
            self._trouble(detail)
        super().restarted(reason, detail)


class SliceHandler(DeviceHandler[SliceObject, Slice]):
    """Receives the stream of ResourceSlices."""

    event = events.SliceChanged

    def read(self, obj: SliceObject) -> Slice | None:
        """The slice of one of the drivers."""
        return device_slice(obj) if _names(self._drivers, obj.spec.driver) else None

    def share(self, key: str, found: Slice) -> tuple[str, int, int]:
        """It is of its node: what is of no node, a kubelet may not write."""
        weight = 1 + len(found.devices) + sum(map(len, found.devices.values()))
        return f"node {found.node}", weight, MAX_OF_A_NODE if found.node else sys.maxsize


class TaintRuleHandler(DeviceHandler[TaintRuleObject, TaintRule]):
    """Receives the stream of DeviceTaintRules."""

    event = events.TaintRuleChanged

    def read(self, obj: TaintRuleObject) -> TaintRule | None:
        """The rule, of whatever driver, if it selects any device."""
        return taint_rule(obj)

    def share(self, key: str, found: TaintRule) -> tuple[str, int, int]:
        """One device may have the taints of all rules that select it."""
        return f"selector {found.selector}", 1, MAX_OF_A_SELECTOR


class ClaimHandler(DeviceHandler[DeviceClaimObject, DeviceClaim]):
    """Receives the stream of ResourceClaims."""

    event = events.ClaimChanged

    def read(self, obj: DeviceClaimObject) -> DeviceClaim | None:
        """The claim, if it is allocated."""
        return device_claim(obj, self._drivers)

    def share(self, key: str, found: DeviceClaim) -> tuple[str, int, int]:
        """It is of its namespace."""
        tolerations = {id(use.tolerations): len(use.tolerations) for use in found.uses}
        weight = 1 + len(found.uses) + len(found.consumers) + sum(tolerations.values())
        return f"namespace {key.partition('/')[0]}", weight, MAX_OF_A_NAMESPACE


def named_drivers(policies: Iterable[Policy]) -> frozenset[str]:
    """The drivers of whose devices policies select taints; none if no policy does."""
    found = frozenset(one.driver or EVERY_DRIVER for policy in policies for one in policy.devices)
    return EVERY if EVERY_DRIVER in found else found


def _names(drivers: frozenset[str], driver: str) -> bool:
    return EVERY_DRIVER in drivers or driver in drivers


def device_slice(obj: SliceObject) -> Slice:
    """What of a slice matters."""
    spec, pool = obj.spec, obj.spec.pool
    devices = {one.name: tuple(map(_taint, one.taints)) for one in spec.devices}
    return Slice(spec.driver, pool.name, pool.generation, pool.resource_slice_count, devices, spec.node_name)


def taint_rule(obj: TaintRuleObject) -> TaintRule | None:
    """What of a rule matters; None if it selects no device."""
    selector = obj.spec.device_selector
    if selector is None:
        return None
    return TaintRule(_taint(obj.spec.taint), selector.driver, selector.pool, selector.device)


def device_claim(obj: DeviceClaimObject, drivers: frozenset[str] = EVERY) -> DeviceClaim | None:
    """What of a claim matters; None if it has no devices of these drivers, or is reserved for no pod."""
    allocation = obj.status.allocation
    consumers = frozenset(filter(None, (_consumer(one, obj.metadata.namespace) for one in obj.status.reserved_for)))
    if allocation is None or not consumers:
        return None
    asked, uses = _asked(obj), []
    alike: dict[tuple[Toleration, ...], tuple[Toleration, ...]] = {}
    for one in allocation.devices.results:
        if _names(drivers, one.driver):
            tolerations = _tolerations([*one.tolerations, *asked.get(one.request, ())])
            uses.append(
                DeviceUse(DeviceId(one.driver, one.pool, one.device), alike.setdefault(tolerations, tolerations))
            )
    return DeviceClaim(tuple(dict.fromkeys(uses)), consumers) if uses else None


def _asked(obj: DeviceClaimObject) -> dict[str, list[Toleration]]:
    """The tolerations of a claim by request: a scheduler of before Kubernetes had them allocates without."""
    found = {one.name: one.exactly.tolerations for one in obj.spec.devices.requests if one.exactly is not None}
    for one in obj.spec.devices.requests:
        found |= {f"{one.name}/{alternative.name}": alternative.tolerations for alternative in one.first_available}
    return found


def _consumer(given: Consumer, namespace: str) -> str | None:
    """For whom a claim is reserved, as the engine names it; None: neither a pod nor a PodGroup."""
    match given.api_group, given.resource:
        case "", "pods":
            return given.uid
        case "scheduling.k8s.io", "podgroups":
            return f"{namespace}/{given.name}"
    return None


def _tolerations(given: Iterable[Toleration]) -> tuple[Toleration, ...]:
    """In the order in which they count: without a time first, then the shortest time, as in Kubernetes."""
    found = dict.fromkeys(given)
    return tuple(sorted(found, key=lambda one: (one.toleration_seconds is not None, one.toleration_seconds or 0)))


def _taint(obj: TaintObject) -> DeviceTaint:
    """A taint. A ``timeAdded`` that is not a time counts as not set."""
    return DeviceTaint(obj.key, obj.value, obj.effect, readable(obj.time_added))

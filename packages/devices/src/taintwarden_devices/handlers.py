"""Handlers of the streams of slices, rules and claims, which turn objects into events for the machine.

An object that cannot be read counts as absent: no pod is evicted because of a device whose taints are not known.
Objects beyond the maximum for one node, namespace or selector count as absent, too: any number may be written.
"""

import sys
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from taintwarden.controller.decoding.times import time_of
from taintwarden.controller.handlers.keyed_handlers import KeyedHandler
from taintwarden.engine.events import Event, Feed
from taintwarden.engine.model import DeviceId, DeviceUse, Toleration
from taintwarden.engine.policy import Policy
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
Decoded = TypeVar("Decoded", Slice, TaintRule, DeviceClaim)
EVERY_DRIVER = ""
"""The driver of a policy that names none."""
EVERY = frozenset((EVERY_DRIVER,))
MAX_PER_NODE = 4_096
"""Maximum total of slices, their devices and their taints that are kept for one node."""
MAX_PER_NAMESPACE = 200_000
"""Maximum total of claims, their devices, consumers and tolerations that are kept for one namespace."""
MAX_PER_SELECTOR = 64
"""Maximum number of kept rules with the same selector."""


class DeviceHandler(KeyedHandler[Kind], Generic[Kind, Decoded]):
    """Base of the handlers for one resource about devices.

    Args:
        resource: the name of the resource.
        feed: receives the events.
        metrics: counts restarts and faults.
        drivers: the drivers whose devices are followed.
        report_problem: called with the reason each time the server refuses a request or does not answer.

    """

    event: Callable[..., Event]
    """Creates the event for a changed object, or for a deleted one (None)."""

    def __init__(
        self,
        resource: str,
        feed: Feed,
        metrics: Metrics,
        drivers: frozenset[str] = EVERY,
        report_problem: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(resource, feed, metrics)
        self._drivers = drivers
        self._report_problem = report_problem
        self._weights: Counter[str] = Counter()
        """Node, namespace or selector -> total weight of its objects that were passed on."""

    @abstractmethod
    def read(self, obj: Kind) -> Decoded | None:
        """Return the used parts of an object; None if it is ignored."""

    @abstractmethod
    def weigh(self, key: str, found: Decoded) -> tuple[str, int, int]:
        """Return whose total an object counts for (a node, namespace or selector), its weight, and the maximum."""

    def pass_on(self, key: str, obj: Kind) -> None:
        """Pass an object on if a used part changed. Drivers often write slices without a change."""
        found, before = self.read(obj), self._passed_on.get(key)
        if found is not None and found == before:
            return
        self._count(key, before, -1)
        if self._count(key, found, 1):
            self._passed_on[key] = found
            self.feed(self.event(key, found, self._is_listing))
        else:
            super().withdraw(key)

    def withdraw(self, key: str | None) -> None:
        """Pass on that an object is gone, if it was passed on before."""
        if key is not None:
            self._count(key, self._passed_on.get(key), -1)
            super().withdraw(key)

    def _count(self, key: str, found: Any, step: int) -> bool:
        """Add (``step`` 1) or remove (-1) the weight of an object. Returns False if it is None or above the maximum."""
        if found is None:
            return False
        owner, weight, most = self.weigh(key, found)
        kept = self._weights[owner] + step * weight
        if kept > most:
            self.report_fault(owner, f"exceeds the maximum of {most} entries: the rest counts as absent")
            return False
        self._weights[owner] = kept
        if not kept:
            del self._weights[owner]
        return True

    def gone(self, key: str) -> Event:
        """Return the event for an object that is deleted or ignored."""
        return self.event(key, None)

    def undecodable(self, what: Identity, reason: str) -> None:
        """Drop the earlier version of an object whose new version cannot be read."""
        self.withdraw(self.key_of(what))
        super().undecodable(what, reason)

    def live(self, *, live: bool) -> None:
        """Report that the stream is live or cut off. No pod is evicted by data from before a disconnection."""
        if live != self.is_live:
            self.is_live = live
            self.feed(events.StreamChanged(self.resource, live))

    def restarted(self, reason: str, detail: str) -> None:
        """Report the reason of a restart that the server caused."""
        if reason in ("refused", "unreachable"):
            self._report_problem(detail)
        super().restarted(reason, detail)


class SliceHandler(DeviceHandler[SliceObject, Slice]):
    """Receives the stream of ResourceSlices."""

    event = events.SliceChanged

    def read(self, obj: SliceObject) -> Slice | None:
        """Return the slice; None if it is of another driver."""
        return device_slice(obj) if _includes(self._drivers, obj.spec.driver) else None

    def weigh(self, key: str, found: Slice) -> tuple[str, int, int]:
        """Count a slice for its node. A slice without a node has no maximum, since kubelets cannot write it."""
        weight = 1 + len(found.devices) + sum(map(len, found.devices.values()))
        return f"node {found.node}", weight, MAX_PER_NODE if found.node else sys.maxsize


class TaintRuleHandler(DeviceHandler[TaintRuleObject, TaintRule]):
    """Receives the stream of DeviceTaintRules."""

    event = events.TaintRuleChanged

    def read(self, obj: TaintRuleObject) -> TaintRule | None:
        """Return the rule; None if it selects no device."""
        return taint_rule(obj)

    def weigh(self, key: str, found: TaintRule) -> tuple[str, int, int]:
        """Count a rule for its selector, since a device has the taints of all rules that select it."""
        return f"selector {found.selector}", 1, MAX_PER_SELECTOR


class ClaimHandler(DeviceHandler[DeviceClaimObject, DeviceClaim]):
    """Receives the stream of ResourceClaims."""

    event = events.ClaimChanged

    def read(self, obj: DeviceClaimObject) -> DeviceClaim | None:
        """Return the claim; None if no pod has devices of the drivers by it."""
        return device_claim(obj, self._drivers)

    def weigh(self, key: str, found: DeviceClaim) -> tuple[str, int, int]:
        """Count a claim for its namespace."""
        tolerations = {id(use.tolerations): len(use.tolerations) for use in found.uses}
        weight = 1 + len(found.uses) + len(found.consumers) + sum(tolerations.values())
        return f"namespace {key.partition('/')[0]}", weight, MAX_PER_NAMESPACE


def named_drivers(policies: Iterable[Policy]) -> frozenset[str]:
    """Return the drivers of the devices whose taints policies select; empty if no policy selects any."""
    found = frozenset(selector.driver or EVERY_DRIVER for policy in policies for selector in policy.devices)
    return EVERY if EVERY_DRIVER in found else found


def _includes(drivers: frozenset[str], driver: str) -> bool:
    return EVERY_DRIVER in drivers or driver in drivers


def device_slice(obj: SliceObject) -> Slice:
    """Return the used parts of a slice."""
    spec, pool = obj.spec, obj.spec.pool
    devices = {device.name: tuple(map(_taint, device.taints)) for device in spec.devices}
    return Slice(spec.driver, pool.name, pool.generation, pool.resource_slice_count, devices, spec.node_name)


def taint_rule(obj: TaintRuleObject) -> TaintRule | None:
    """Return the used parts of a rule; None if it selects no device."""
    selector = obj.spec.device_selector
    if selector is None:
        return None
    return TaintRule(_taint(obj.spec.taint), selector.driver, selector.pool, selector.device)


def device_claim(obj: DeviceClaimObject, drivers: frozenset[str] = EVERY) -> DeviceClaim | None:
    """Return the used parts of a claim; None without devices of these drivers, or a pod or PodGroup that has them."""
    allocation = obj.status.allocation
    consumers = frozenset(filter(None, (_consumer(entry, obj.metadata.namespace) for entry in obj.status.reserved_for)))
    if allocation is None or not consumers:
        return None
    requested, uses = _requested_tolerations(obj), []
    alike: dict[tuple[Toleration, ...], tuple[Toleration, ...]] = {}
    for result in allocation.devices.results:
        if _includes(drivers, result.driver):
            tolerations = _tolerations([*result.tolerations, *requested.get(result.request, ())])
            device = DeviceId(result.driver, result.pool, result.device)
            uses.append(DeviceUse(device, alike.setdefault(tolerations, tolerations)))
    return DeviceClaim(tuple(dict.fromkeys(uses)), consumers) if uses else None


def _requested_tolerations(obj: DeviceClaimObject) -> dict[str, list[Toleration]]:
    """Return the tolerations of a claim by request. A scheduler older than the feature allocates without them."""
    requests = obj.spec.devices.requests
    found = {request.name: request.exactly.tolerations for request in requests if request.exactly is not None}
    for request in requests:
        found |= {f"{request.name}/{option.name}": option.tolerations for option in request.first_available}
    return found


def _consumer(given: Consumer, namespace: str) -> str | None:
    """Return the pod or PodGroup for which a claim is reserved, as the engine names it; None for other kinds."""
    match given.api_group, given.resource:
        case "", "pods":
            return given.uid
        case "scheduling.k8s.io", "podgroups":
            return f"{namespace}/{given.name}"
    return None


def _tolerations(given: Iterable[Toleration]) -> tuple[Toleration, ...]:
    """Return tolerations in the order in which Kubernetes tries them: without a time first, then the shortest time."""
    found = dict.fromkeys(given)
    return tuple(sorted(found, key=lambda entry: (entry.toleration_seconds is not None, entry.toleration_seconds or 0)))


def _taint(obj: TaintObject) -> DeviceTaint:
    """Return the taint. An unreadable ``timeAdded`` counts as not set."""
    return DeviceTaint(obj.key, obj.value, obj.effect, time_of(obj.time_added))

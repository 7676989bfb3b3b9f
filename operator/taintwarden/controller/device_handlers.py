"""Handlers for devices: what streams of slices, rules and claims deliver becomes events for the machine.

What cannot be read counts as absent: no pod is evicted because of a device whose taints are not known.
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from sys import intern
from typing import Generic, TypeVar

from msgspec.structs import replace

from taintwarden.controller.keyed_handlers import KeyedHandler
from taintwarden.controller.loop import Feed
from taintwarden.controller.times import latest_moment
from taintwarden.engine.device_inventory import Device, DeviceClaim, DeviceTaint, Slice, TaintRule
from taintwarden.engine.machine import Event, events
from taintwarden.engine.model import DeviceId, DeviceUse, Policy, Toleration
from taintwarden.kube.wire.device_kinds import (
    Consumer,
    DeviceClaimObject,
    DeviceObject,
    DeviceTaintObject,
    DeviceTolerationObject,
    SliceObject,
    TaintRuleObject,
)
from taintwarden.kube.wire.kinds import Identity
from taintwarden.telemetry.metrics import Metrics

Kind = TypeVar("Kind", SliceObject, TaintRuleObject, DeviceClaimObject)
NOTHING = Device()
"""A device of which nothing matters: most have no taint."""


class DeviceHandler(KeyedHandler[Kind, str], Generic[Kind]):
    """What handlers for devices share.

    Args:
        resource: whose stream it receives.
        feed: takes the events.
        metrics: counts restarts and faults.

    """

    def __init__(self, resource: str, feed: Feed, metrics: Metrics) -> None:
        super().__init__(resource, feed, metrics)
        self.problem = ""
        """Why the server does not answer, while it does not."""
        self._is_listing = False

    @abstractmethod
    def event(self, key: str, obj: Kind) -> Event | None:
        """The event for an object; None if it means nothing."""

    def key(self, obj: Kind) -> str:
        """Its name, with the namespace of a claim."""
        return str(Identity(obj.metadata.name, obj.metadata.namespace))

    def key_of(self, what: Identity) -> str | None:
        """The same."""
        return str(what) if what.name else None

    def see(self, key: str, obj: Kind) -> None:
        """Pass it on if anything that matters changed: drivers write their slices repeatedly."""
        event = self.event(key, obj)
        if event is None:
            self.lose(key)
        elif self._told.get(key) != event:
            self._told[key] = event
            self.feed(self.event_of_list(event) if self._is_listing else event)

    def listed(self, objects: Sequence[Kind]) -> None:
        """One page of objects, of which changes may be missing."""
        self._is_listing = True
        super().listed(objects)  # type: ignore[arg-type] # mypy checks each of the kinds against all of them
        self._is_listing = False

    def event_of_list(self, event: Event) -> Event:
        """The same event, if changes of the object may be missing."""
        return event

    def undecodable(self, what: Identity, reason: str) -> None:
        """An old version of it must not count."""
        self.lose(self.key_of(what))
        super().undecodable(what, reason)

    def live(self, *, live: bool) -> None:
        """No pod is evicted because of devices by data from before a disconnection."""
        if live != self.is_live:
            self.is_live = live
            self.feed(events.ViewChanged(self.resource, live, of_devices=True))
        if live:
            self.problem = ""

    def restarted(self, reason: str, detail: str) -> None:
        """Also remember why."""
        if reason in ("refused", "unreachable"):
            self.problem = detail
        super().restarted(reason, detail)


class SliceHandler(DeviceHandler[SliceObject]):
    """Receives the stream of ResourceSlices.

    Args:
        resource: as of every handler, and so are ``feed`` and ``metrics``.
        feed: takes the events.
        metrics: counts restarts and faults.
        attributes: of devices, by which policies select. Others are not kept.

    """

    def __init__(self, resource: str, feed: Feed, metrics: Metrics, attributes: frozenset[str]) -> None:
        super().__init__(resource, feed, metrics)
        self._attributes = attributes

    def event(self, key: str, obj: SliceObject) -> Event | None:
        """What of the slice matters."""
        return events.SliceSeen(key, device_slice(obj, self._attributes))

    def event_of_list(self, event: Event) -> Event:
        """Its taints may have been taken off meanwhile, and added again."""
        return replace(event, listed=True)

    def gone(self, key: str) -> Event:
        """The slice is gone."""
        return events.SliceGone(key)


class TaintRuleHandler(DeviceHandler[TaintRuleObject]):
    """Receives the stream of DeviceTaintRules."""

    def event(self, key: str, obj: TaintRuleObject) -> Event | None:
        """The rule."""
        return events.TaintRuleSeen(key, taint_rule(obj))

    def event_of_list(self, event: Event) -> Event:
        """It may have been deleted meanwhile, and created again."""
        return replace(event, listed=True)

    def gone(self, key: str) -> Event:
        """The rule is gone."""
        return events.TaintRuleGone(key)


class DeviceClaimHandler(DeviceHandler[DeviceClaimObject]):
    """Receives the stream of ResourceClaims."""

    def event(self, key: str, obj: DeviceClaimObject) -> Event | None:
        """The claim, if it is allocated."""
        claim = device_claim(obj)
        return None if claim is None else events.DeviceClaimSeen(key, claim)

    def gone(self, key: str) -> Event:
        """The claim is gone, or has no devices."""
        return events.DeviceClaimGone(key)


def selected_attributes(policies: Iterable[Policy]) -> frozenset[str]:
    """The attributes of devices by which policies select."""
    selectors = (one.selector for policy in policies for one in policy.devices)
    return frozenset(one.key for selector in selectors for one in selector.requirements)


def device_slice(obj: SliceObject, attributes: frozenset[str]) -> Slice:
    """What of a slice matters. ``attributes``: those that are kept."""
    spec, pool = obj.spec, obj.spec.pool
    wanted = [(one, _other_name(one, spec.driver)) for one in sorted(attributes)]
    devices = {intern(one.name): _device(one, wanted) for one in spec.devices}
    place = (intern(spec.driver), intern(pool.name))
    return Slice(*place, pool.generation, pool.resource_slice_count, devices, intern(spec.node_name))


def _other_name(attribute: str, driver: str) -> str:
    """How else a driver may write the name of an attribute: one without a domain is of the domain of the driver."""
    domain, _, own = attribute.rpartition("/")
    return f"{driver}/{own}" if not domain else own if domain == driver else attribute


def _device(obj: DeviceObject, wanted: Iterable[tuple[str, str]]) -> Device:
    given = obj.attributes
    both = ((name, given.get(name) or given.get(other)) for name, other in wanted) if given else ()
    kept = ((name, attribute.text) for name, attribute in both if attribute is not None)
    found = Device(tuple((name, text) for name, text in kept if text is not None), tuple(map(_taint, obj.taints)))
    return NOTHING if found == NOTHING else found


def taint_rule(obj: TaintRuleObject) -> TaintRule:
    """What of a rule matters."""
    selector = obj.spec.device_selector
    if selector is None:
        return TaintRule(_taint(obj.spec.taint), selects=False)
    return TaintRule(_taint(obj.spec.taint), selector.driver, selector.pool, selector.device)


def device_claim(obj: DeviceClaimObject) -> DeviceClaim | None:
    """What of a claim matters; None if it has no devices, or is reserved for no pod."""
    allocation = obj.status.allocation
    consumers = frozenset(filter(None, (_consumer(one, obj.metadata.namespace) for one in obj.status.reserved_for)))
    if allocation is None or not allocation.devices.results or not consumers:
        return None
    uses = [
        DeviceUse(DeviceId(intern(one.driver), intern(one.pool), intern(one.device)), _tolerations(one.tolerations))
        for one in allocation.devices.results
    ]
    return DeviceClaim(tuple(dict.fromkeys(uses)), consumers)


def _consumer(given: Consumer, namespace: str) -> str | None:
    """For whom a claim is reserved, as the engine names it; None: neither a pod nor a PodGroup."""
    match given.api_group, given.resource:
        case "", "pods":
            return given.uid
        case "scheduling.k8s.io", "podgroups":
            return f"{namespace}/{given.name}"
    return None


def _tolerations(given: Iterable[DeviceTolerationObject]) -> tuple[Toleration, ...]:
    """In the order in which they count: without a time first, then the shortest time, as in Kubernetes."""
    found = [Toleration(one.key, one.operator, one.value, one.effect, one.toleration_seconds) for one in given]
    return tuple(sorted(found, key=lambda one: (one.toleration_seconds is not None, one.toleration_seconds or 0)))


def _taint(obj: DeviceTaintObject) -> DeviceTaint:
    """A taint. A ``timeAdded`` that is not a time counts as not set."""
    added_at = None
    if obj.time_added is not None:
        try:
            added_at = latest_moment(obj.time_added)
        except ValueError:
            added_at = None
    return DeviceTaint(obj.key, obj.value, obj.effect, added_at)

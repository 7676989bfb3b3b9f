"""Objects of the API about devices become events: fields that are read, and objects that are ignored."""

from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from kube.wire_format import read
from taintwarden.controller.decoding.times import latest_moment
from taintwarden.engine.events import Event
from taintwarden.engine.model import DeviceId, DeviceUse, Toleration
from taintwarden.engine.policy import DeviceTaintSelector, Policy
from taintwarden.kube.watch.frames import FrameDecoder
from taintwarden.kube.wire.kinds import Identity
from taintwarden.telemetry.metrics import Metrics
from taintwarden_devices import events as device_events
from taintwarden_devices.handlers import (
    EVERY_DRIVER,
    MAX_PER_NAMESPACE,
    MAX_PER_NODE,
    MAX_PER_SELECTOR,
    ClaimHandler,
    DeviceHandler,
    SliceHandler,
    TaintRuleHandler,
    device_claim,
    device_slice,
    named_drivers,
    taint_rule,
)
from taintwarden_devices.inventory import DeviceClaim, DeviceTaint, Slice, TaintRule
from taintwarden_devices.objects import (
    CLAIMS,
    DeviceClaimObject,
    DeviceClaimSpec,
    Metadata,
    SliceObject,
    TaintRuleObject,
)
from work import steps

EVERY = frozenset((EVERY_DRIVER,))
AT = "2026-01-01T00:00:00Z"
TAINT = {"key": "health", "value": "79", "effect": "NoSchedule", "timeAdded": AT}
GPU = {"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}
POD = {"resource": "pods", "name": "a", "uid": "uid-a"}


def slice_object(*devices: dict[str, Any], name: str = "s", node: str = "", **pool: Any) -> SliceObject:
    given = {"name": "n1", "generation": 3, "resourceSliceCount": 2, **pool}
    spec = {"driver": "gpu.example.com", "pool": given, "nodeName": node, "devices": devices}
    body = {"metadata": {"name": name}, "spec": spec}
    return msgspec.convert(body, SliceObject)


def rule_object(**spec: Any) -> TaintRuleObject:
    return msgspec.convert({"metadata": {"name": "r"}, "spec": {"taint": TAINT, **spec}}, TaintRuleObject)


def claim_object(*results: dict[str, Any], reserved: Any = (POD,)) -> DeviceClaimObject:
    status = {"allocation": {"devices": {"results": list(results)}}, "reservedFor": list(reserved)}
    body = {"metadata": {"name": "c", "namespace": "shop"}, "status": status}
    return msgspec.convert(body, DeviceClaimObject)


# -- decoding ---------------------------------------------------------------------------------------------------------


def test_a_slice_has_its_devices_with_their_taints():
    found = device_slice(slice_object({"name": "gpu-0", "taints": [TAINT]}, {"name": "gpu-1"}))
    taint = DeviceTaint("health", "79", "NoSchedule", latest_moment(AT))
    assert found == Slice("gpu.example.com", "n1", 3, 2, {"gpu-0": (taint,), "gpu-1": ()})


def test_an_invalid_time_counts_as_not_set():
    found = device_slice(slice_object({"name": "gpu-0", "taints": [TAINT | {"timeAdded": "now"}]}))
    assert found.devices["gpu-0"][0].added_at is None


@pytest.mark.parametrize(
    ("spec", "selected"),
    [
        ({"deviceSelector": {}}, {}),
        ({"deviceSelector": {"driver": "d", "pool": "p"}}, {"driver": "d", "pool": "p"}),
    ],
)
def test_a_rule_selects_by_its_device_selector(spec, selected):
    taint = DeviceTaint("health", "79", "NoSchedule", latest_moment(AT))
    assert taint_rule(rule_object(**spec)) == TaintRule(taint, **selected)


def test_a_rule_without_a_selector_is_ignored_and_one_that_loses_it_is_gone():
    fed = Fed(TaintRuleHandler)
    fed.handler.seen(rule_object())
    assert fed.kinds == []
    fed.handler.seen(rule_object(deviceSelector={}))
    fed.handler.seen(rule_object())
    assert fed.kinds == ["TaintRuleChanged", "TaintRuleChanged gone"]


def test_a_claim_has_its_devices_and_its_pods():
    assert device_claim(claim_object(GPU)) == DeviceClaim(
        (DeviceUse(DeviceId("gpu.example.com", "n1", "gpu-0")),), frozenset({"uid-a"})
    )


def test_tolerations_are_sorted_in_the_order_in_which_they_count():
    given = [
        {"key": "health", "operator": "Exists", "tolerationSeconds": 60},
        {"key": "health", "operator": "Exists", "tolerationSeconds": 5},
        {"key": "health", "operator": "Equal", "value": "1"},
    ]
    found = device_claim(claim_object({**GPU, "tolerations": given}))
    assert found.uses[0].tolerations == (
        Toleration("health", "Equal", "1"),
        Toleration("health", "Exists", toleration_seconds=5),
        Toleration("health", "Exists", toleration_seconds=60),
    )


EXISTS = {"key": "health", "operator": "Exists"}


@pytest.mark.parametrize(
    ("request_", "allocated"),
    [
        ({"name": "gpu", "exactly": {"tolerations": [EXISTS]}}, "gpu"),
        ({"name": "gpu", "firstAvailable": [{"name": "h100", "tolerations": [EXISTS]}]}, "gpu/h100"),
    ],
)
@pytest.mark.parametrize("copied", [[], [EXISTS]])
def test_tolerations_of_a_request_count_even_if_the_scheduler_did_not_copy_them(request_, allocated, copied):
    obj = claim_object({**GPU, "request": allocated, "tolerations": copied})
    spec = msgspec.convert({"devices": {"requests": [request_]}}, DeviceClaimSpec)
    found = device_claim(msgspec.structs.replace(obj, spec=spec))
    assert found.uses[0].tolerations == (Toleration("health", "Exists"),)


def test_tolerations_of_a_request_count_for_its_devices_only():
    obj = claim_object({**GPU, "request": "gpu/a100"})
    asked = {"name": "gpu", "firstAvailable": [{"name": "h100", "tolerations": [EXISTS]}]}
    spec = msgspec.convert({"devices": {"requests": [asked]}}, DeviceClaimSpec)
    found = device_claim(msgspec.structs.replace(obj, spec=spec))
    assert found.uses[0].tolerations == ()


def test_a_claim_may_be_for_a_pod_group_of_its_namespace():
    group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "training", "uid": "uid-g"}
    found = device_claim(claim_object(GPU, reserved=[group, POD]))
    assert found.consumers == {"shop/training", "uid-a"}


def test_shares_of_a_device_are_the_same_device():
    """Several allocations of one device by a claim differ in their ``shareID``."""
    found = device_claim(claim_object({**GPU, "shareID": "1"}, {**GPU, "shareID": "2", "adminAccess": True}))
    assert found.uses == (DeviceUse(DeviceId("gpu.example.com", "n1", "gpu-0")),)


@pytest.mark.parametrize(("spec", "node"), [({"nodeName": "n1"}, "n1"), ({"allNodes": True}, ""), ({}, "")])
def test_a_slice_may_be_of_a_node(spec, node):
    obj = msgspec.convert({"spec": {"driver": "d", "pool": {"name": "p"}, **spec}}, SliceObject)
    assert device_slice(obj).node == node


def test_a_slice_may_have_counters_and_no_devices():
    """Partitions are devices that take from counters, which may have a slice of their own."""
    body = {"driver": "d", "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 2}, "sharedCounters": [{}]}
    assert device_slice(msgspec.convert({"spec": body}, SliceObject)) == Slice("d", "n1", 1, 2, {})


@pytest.mark.parametrize(
    "claim",
    [
        claim_object(),
        claim_object(GPU, reserved=()),
        claim_object(GPU, reserved=[{"apiGroup": "example.com", "resource": "pods", "uid": "g"}]),
        msgspec.convert({"metadata": {"name": "c"}}, DeviceClaimObject),
    ],
    ids=["without devices", "for no pod", "for something else", "not allocated"],
)
def test_a_claim_by_which_no_pod_has_a_device_is_ignored(claim):
    assert device_claim(claim) is None


# -- handlers ---------------------------------------------------------------------------------------------------------


class Fed:
    def __init__(self, kind: type[DeviceHandler[Any, Any]], *more: Any) -> None:
        self.events: list[Event] = []
        self.metrics = Metrics()
        self.handler = kind("things", self.events.append, self.metrics, *more)

    @property
    def kinds(self) -> list[str]:
        """The kind of each event, with ``gone`` for a deleted object."""
        return [type(one).__name__ + " gone" * (getattr(one, "found", 0) is None) for one in self.events]


def test_a_slice_without_changes_is_not_passed_on():
    fed = Fed(SliceHandler, EVERY)
    for _ in range(3):
        fed.handler.seen(slice_object({"name": "gpu-0", "taints": [TAINT]}))
    assert fed.kinds == ["SliceChanged"]


def test_a_rule_that_a_list_does_not_name_is_gone():
    fed = Fed(TaintRuleHandler)
    fed.handler.seen(rule_object(deviceSelector={}))
    fed.handler.list_began()
    fed.handler.listed([])
    fed.handler.list_ended("7")
    assert fed.events[1:] == [device_events.TaintRuleChanged("r", None)]


@pytest.mark.parametrize(
    ("handler", "obj"),
    [
        ((SliceHandler, EVERY), slice_object({"name": "gpu-0", "taints": [TAINT]})),
        ((TaintRuleHandler,), rule_object(deviceSelector={})),
    ],
)
def test_events_of_a_list_are_marked_as_listed(handler, obj):
    listed, watched = Fed(*handler), Fed(*handler)
    listed.handler.list_began()
    listed.handler.listed([obj])
    listed.handler.list_ended("7")
    watched.handler.seen(obj)
    assert (listed.events[0].listed, watched.events[0].listed) == (True, False)
    listed.handler.seen(obj)
    assert len(listed.events) == 1


@pytest.mark.parametrize(
    "status",
    [
        {"allocation": {"devices": {"results": [{"driver": 7}]}}},
        {"allocation": {"devices": {"results": {}}}},
        {"allocation": [], "reservedFor": [POD]},
        {"reservedFor": "all"},
        {"allocation": {"devices": {"results": [GPU | {"tolerations": [{"tolerationSeconds": "soon"}]}]}}},
    ],
)
def test_an_allocation_that_cannot_be_read_is_counted_and_allocates_nothing(status):
    """The stream of claims delivers it together with a claim that can be read."""
    metadata = {"name": "c", "namespace": "shop"}
    good = msgspec.to_builtins(claim_object(GPU)) | {"metadata": metadata | {"name": "good"}}
    page = {"metadata": {"resourceVersion": "7"}, "items": [good, {"metadata": metadata, "status": status}]}
    found, unread = read(FrameDecoder(CLAIMS).page(msgspec.json.encode(page)))
    fed = Fed(ClaimHandler, EVERY)
    fed.handler.seen(claim_object(GPU))
    fed.handler.list_began()
    fed.handler.listed(found)
    for one in unread:
        fed.handler.undecodable(one.identity, one.reason)
    fed.handler.list_ended("7")
    assert fed.kinds == ["ClaimChanged", "ClaimChanged", "ClaimChanged gone"]
    assert fed.events[-1] == device_events.ClaimChanged("shop/c", None)
    assert fed.metrics.registry.get_sample_value("taintwarden_undecodable_objects_total", {"resource": "things"}) == 1


def test_an_outdated_view_is_reported_once_for_its_stream():
    fed = Fed(TaintRuleHandler)
    fed.handler.live(live=False)
    fed.handler.live(live=False)
    assert fed.events == [device_events.StreamChanged("things", live=False)]


@pytest.mark.parametrize(("reason", "problems"), [("refused", ["403"]), ("unreachable", ["403"]), ("ended", [])])
def test_a_failure_of_the_server_is_reported_with_its_reason(reason, problems):
    found: list[str] = []
    handler = TaintRuleHandler("things", lambda _: None, Metrics(), report_problem=found.append)
    handler.restarted(reason, "403")
    assert found == problems


# -- bounds on kept objects -------------------------------------------------------------------------------------------


TOLERATED = [{"key": f"k-{index}", "operator": "Exists"} for index in range(2)]
CLAIM = claim_object(
    *({**GPU, "device": f"gpu-{index}", "tolerations": TOLERATED} for index in range(8)),
    reserved=[POD | {"uid": f"uid-{index}"} for index in range(239)],
)
DEVICES = [{"name": f"gpu-{index}", "taints": [TAINT]} for index in range(64)]
SLICES = {node: slice_object(*DEVICES, node=node) for node in ("n1", "other", "")}


def of_node(number: int, node: str = "n1") -> SliceObject:
    return msgspec.structs.replace(SLICES[node], metadata=Metadata(f"{node}-{number}"))


def large(taints: int) -> SliceObject:
    made = [{"name": f"gpu-{index}", "taints": [TAINT] * taints} for index in range(128)]
    return slice_object(*made, name="n1-0", node="n1")


def of_namespace(number: int, namespace: str = "shop") -> DeviceClaimObject:
    return msgspec.structs.replace(CLAIM, metadata=Metadata(f"c-{number}", namespace))


def of_selector(number: int, pool: str = "n1") -> TaintRuleObject:
    found = rule_object(deviceSelector={"pool": pool})
    return msgspec.structs.replace(found, metadata=Metadata(f"{pool}-{number}"))


SLICE_WEIGHT, CLAIM_WEIGHT = 1 + 64 + 64, 1 + 239 + 8 + 2
KEPT: dict[str, tuple[Any, Any, int]] = {
    "node": ((SliceHandler, EVERY), of_node, MAX_PER_NODE // SLICE_WEIGHT),
    "namespace": ((ClaimHandler, EVERY), of_namespace, MAX_PER_NAMESPACE // CLAIM_WEIGHT),
    "selector": ((TaintRuleHandler,), of_selector, MAX_PER_SELECTOR),
}


@pytest.mark.parametrize(("handler", "make", "most"), KEPT.values(), ids=KEPT)
def test_the_kept_objects_of_one_owner_are_bounded_in_number_and_cost(handler, make, most):
    fed = Fed(*handler)

    def cost(number: int) -> int:
        return steps(lambda: fed.handler.seen(make(number)))

    fed.handler.seen(make(0))
    first = cost(1)
    for number in range(2, most - 1):
        fed.handler.seen(make(number))
    assert cost(most - 1) < 1.5 * first
    left_out = cost(most)
    for number in range(most + 1, 2 * most):
        fed.handler.seen(make(number))
    assert cost(2 * most) < 1.5 * left_out
    assert len(fed.events) == most
    counted = fed.metrics.registry.get_sample_value("taintwarden_undecodable_objects_total", {"resource": "things"})
    assert counted == most + 1


@pytest.mark.parametrize(("handler", "make", "most"), KEPT.values(), ids=KEPT)
def test_an_owner_of_too_many_does_not_affect_others_and_deletions_free_its_limit(handler, make, most):
    fed = Fed(*handler)
    for number in range(most + 1):
        fed.handler.seen(make(number))
    fed.handler.seen(make(0, "other"))
    assert len(fed.events) == most + 1
    fed.handler.lost(Identity(make(0).metadata.name, make(0).metadata.namespace))
    fed.handler.seen(make(most))
    assert len(fed.events) == most + 3
    assert fed.handler.key(make(most)) in fed.handler._passed_on


def test_objects_that_are_left_out_are_logged_once():
    fed = Fed(TaintRuleHandler)
    with capture_logs() as logs:
        for number in range(MAX_PER_SELECTOR + 10):
            fed.handler.seen(of_selector(number))
    assert [(one["event"], one["name"]) for one in logs] == [("object-undecodable", "selector (None, 'n1', None)")]


def test_a_slice_that_grows_beyond_the_limit_of_its_node_is_gone():
    fed = Fed(SliceHandler, EVERY)
    fed.handler.seen(of_node(0))
    fed.handler.seen(large(MAX_PER_NODE // 128))
    fed.handler.seen(of_node(1))
    assert fed.kinds == ["SliceChanged", "SliceChanged gone", "SliceChanged"]


def test_a_slice_that_is_written_again_counts_once():
    fed = Fed(SliceHandler, EVERY)
    for number in range(10):
        fed.handler.seen(large(20 + number % 2))
    assert fed.kinds == ["SliceChanged"] * 10


def test_a_slice_that_names_another_node_counts_for_the_limit_of_that_node():
    fed = Fed(SliceHandler, EVERY)
    fed.handler.seen(large(30))  # 127 less than its node may have
    fed.handler.seen(of_node(0, "other"))
    fed.handler.seen(slice_object(*DEVICES, name="other-0", node="n1"))
    assert fed.kinds == ["SliceChanged", "SliceChanged", "SliceChanged gone"]


def test_slices_of_no_node_are_all_kept():
    """No kubelet may write such slices, and a fabric may have any number of devices."""
    fed = Fed(SliceHandler, EVERY)
    for number in range(100):
        fed.handler.seen(of_node(number, ""))
    assert len(fed.events) == 100


@pytest.mark.parametrize(("drivers", "kept"), [({"gpu.example.com"}, 1), ({""}, 1), ({"nic.example.com"}, 0)])
def test_slices_and_devices_of_drivers_that_no_policy_names_are_not_kept(drivers, kept):
    for handler, obj in (
        (SliceHandler, slice_object({"name": "gpu-0", "taints": [TAINT]})),
        (ClaimHandler, claim_object(GPU)),
    ):
        fed = Fed(handler, frozenset(drivers))
        fed.handler.seen(obj)
        assert len(fed.events) == kept


@pytest.mark.parametrize(
    ("drivers", "named"),
    [((), set()), (("a", "b"), {"a", "b"}), (("a", ""), {""})],
)
def test_policies_name_their_drivers_or_all(drivers, named):
    policies = [Policy(name=one, devices=(DeviceTaintSelector("*", one or None),)) for one in drivers]
    assert named_drivers(policies) == named


def test_tolerations_that_all_devices_of_a_claim_have_are_kept_once():
    found = device_claim(of_namespace(0))
    assert len({id(one.tolerations) for one in found.uses}) == 1

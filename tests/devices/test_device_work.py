"""The cost of one object about devices does not depend on the number of other objects of its writer.

A kubelet writes slices of its node, of any driver and pool; a driver those of pools without a node; a scheduler
writes claims; and rules are written by people and by tools that watch devices. Steps are counted instead of time.
"""

from collections.abc import Callable

import msgspec
import pytest

from devices.rig import DRIVER, KEY, Devices, Taints, for_devices, tainted
from taintwarden.engine import events
from taintwarden.engine.events import Event
from taintwarden.engine.model import DeviceId, DeviceUse
from taintwarden.engine.policy import Timing
from taintwarden_devices import events as device_events
from taintwarden_devices.inventory import (
    MAX_DEVICES_OF_A_POD,
    DeviceClaim,
    DeviceTaint,
    Slice,
    TaintRule,
)
from work import steps

FEW, MANY = 280, 840
"""Numbers of objects: more than the claims of a pod that count, and three times as many."""
RATIO = 1.5
"""Maximum growth of the cost, since the sizes of hash tables are powers of two."""
POLICY = for_devices(timing=Timing(violation_grace_seconds=10**6))
Make = Callable[[int, str], Event]


def ground() -> Devices:
    """A node with a pod that has one device."""
    rig = Devices(POLICY)
    rig.node("n0")
    rig.pod("p", node="n0")
    rig.process(claimed("shop/c", "gpu-0"))
    return rig


def claimed(key: str, *devices: str) -> Event:
    """A claim of the pod for devices of its node."""
    uses = tuple(DeviceUse(DeviceId(DRIVER, "n0", device)) for device in devices)
    return device_events.ClaimChanged(key, DeviceClaim(uses, frozenset({"uid-p"})))


def sick(value: str) -> dict[str, Taints]:
    return {"gpu-0": tainted(value), "gpu-1": ()}


def in_one_pool(number: int, value: str) -> Event:
    return device_events.SliceChanged(f"s{number}", Slice(DRIVER, "n0", 1, MANY, sick(value), "n0"))


def complete(number: int, value: str) -> Event:
    return device_events.SliceChanged(f"s{number}", Slice(DRIVER, "n0", 1, 1, sick(value), "n0"))


def in_pools_of_their_own(number: int, value: str) -> Event:
    return device_events.SliceChanged(f"s{number}", Slice(DRIVER, f"pool-{number}", 1, 1, sick(value), "n0"))


def in_generations_of_their_own(number: int, value: str) -> Event:
    return device_events.SliceChanged(f"s{number}", Slice(DRIVER, "n0", number, 1, sick(value), "n0"))


def on_no_node(number: int, value: str) -> Event:
    return device_events.SliceChanged(
        f"s{number}", Slice(DRIVER, "fabric", 1, MANY, {f"link-{number}": tainted(value)})
    )


def of_one_pod(number: int, value: str) -> Event:
    return claimed(f"shop/more-{number}", *(f"{value}-{number}-{index}" for index in range(32)))


def of_one_device(number: int, value: str) -> Event:
    return claimed(f"shop/same-{number}", f"of-all-{value}")


def of_another_namespace(number: int, value: str) -> Event:
    return claimed(f"tenant/c-{number}", f"{value}-{number}")


def rule_for_a_device(number: int, value: str) -> Event:
    taint = DeviceTaint(KEY, value, "NoExecute")
    return device_events.TaintRuleChanged(f"r{number}", TaintRule(taint, DRIVER, f"n{number}", "gpu-0"))


def rule_for_a_name(number: int, value: str) -> Event:
    return device_events.TaintRuleChanged(
        f"r{number}", TaintRule(DeviceTaint(KEY, value, "NoExecute"), device=f"x-{number}")
    )


KINDS = [
    in_one_pool,
    complete,
    in_pools_of_their_own,
    in_generations_of_their_own,
    on_no_node,
    of_one_pod,
    of_one_device,
    of_another_namespace,
    rule_for_a_device,
    rule_for_a_name,
]


@pytest.mark.parametrize("make", KINDS, ids=lambda one: one.__name__)
def test_an_object_that_is_added_changed_or_removed_costs_no_more_among_many(make):
    few, many = costs(make, FEW), costs(make, MANY)
    assert all(many[what] < RATIO * few[what] for what in few)


def costs(make: Make, known: int) -> dict[str, int]:
    """Steps of the events of one more object while `known` objects are known."""
    rig = ground()
    for number in range(known):
        rig.process(make(number, "1"))
    return {
        "comes": steps(lambda: rig.feed(make(known, "2"))),
        "changes": steps(lambda: rig.feed(make(0, "2"), make(1, "2"))),
        "goes": steps(lambda: rig.feed(gone(make(known - 1, "1")))),
    }


def gone(seen: Event) -> Event:
    return msgspec.structs.replace(seen, found=None)


def steps_among(pods: int, pool: str, *happens: Event) -> int:
    """Steps of some events while `pods` pods, each on its own node, have a device of this pool."""
    rig = Devices(POLICY)
    for number in range(pods):
        rig.process(events.PodSeen(rig.make_pod(f"p{number}", node=f"n{number}")))
        use = DeviceUse(DeviceId(DRIVER, pool.format(number), f"link-{number}"))
        rig.feed(device_events.ClaimChanged(f"shop/c{number}", DeviceClaim((use,), frozenset({f"uid-p{number}"}))))
    return steps(lambda: rig.feed(*happens))


def test_a_generation_of_a_pool_costs_no_more_if_pods_of_other_nodes_have_its_devices():
    """A slice may name any pool, such as that of another driver's fabric."""
    found = [Slice(DRIVER, "fabric", generation, 2, sick("1"), "n1") for generation in (1, 2)]
    few, many = (
        steps_among(pods, "fabric", *(device_events.SliceChanged("s", one) for one in found)) for pods in (FEW, MANY)
    )
    assert many < RATIO * few


def test_a_rule_for_a_device_costs_no_more_among_many_pools():
    rule = device_events.TaintRuleChanged("r", TaintRule(DeviceTaint(KEY, "1", "NoExecute"), DRIVER, "n1", "link-1"))
    few, many = (steps_among(pods, "n{}", rule) for pods in (FEW, MANY))
    assert many < RATIO * few


def test_the_devices_of_a_pod_that_count_are_bounded():
    rig = ground()
    for number in range(20):
        rig.feed(of_one_pod(number, "x"))
    [pod] = rig.view.pods("n0")
    assert len(pod.shared.devices) == MAX_DEVICES_OF_A_POD

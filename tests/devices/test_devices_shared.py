"""Devices that several pods share, in each possible way, and the pods that their taints evict."""

import pytest

from devices.rig import DRIVER, GPU_1, KEY, POOL, Devices, for_devices, native, tainted
from engine.kept import kept
from engine.rig import START
from taintwarden.engine import commands
from taintwarden.engine.history import MAX_TEXT_LENGTH
from taintwarden.engine.model import DeviceId, DeviceUse, SchedulingGroup
from taintwarden.engine.policy import Timing
from taintwarden_devices import events as device_events
from taintwarden_devices.inventory import DeviceClaim, DeviceTaint, Slice

LINK = DeviceId(DRIVER, "fabric", "link")


def test_each_claim_on_a_device_tolerates_for_itself():
    """The device allows several allocations."""
    rig = Devices()
    for name in ("a", "b", "c"):
        rig.claim(name, key=f"shop/{name}", tolerations=[native()] if name == "b" else [])
        rig.pod(name)
    rig.slice(gpu_0=tainted())
    assert sorted(rig.evicted) == ["a", "c"]


def test_a_pod_that_loses_the_claim_stays_and_the_others_leave():
    rig = Devices(for_devices(timing=Timing(violation_grace_seconds=60)))
    for name in ("a", "b"):
        rig.pod(name)
    rig.claim("a", "b")
    rig.slice(gpu_0=tainted())
    rig.claim("a")
    assert rig.claimed() == ["a"]
    rig.claim("a", "b")
    assert rig.claimed() == ["a", "b"]


# -- many taints ------------------------------------------------------------------------------------------------------


def test_a_slice_may_have_128_taints():
    """All taints count, and their stored histories are bounded."""
    rig = Devices(for_devices("*", timing=Timing(violation_grace_seconds=60)))
    devices = {f"gpu-{number}": tuple(taint(f"{KEY}-{index}") for index in range(16)) for number in range(8)}
    rig.slice("s", Slice(DRIVER, POOL, 1, 1, devices))
    for name in devices:
        rig.claim(name, device=DeviceId(DRIVER, POOL, name), key=f"shop/{name}", tolerations=())
        rig.pod(name)
    assert len(rig.view.node("n1").device_taints) == 128
    stored = [one.text for one in rig.ordered if isinstance(one, commands.SaveHistory)]
    assert 0 < len(stored[-1]) <= MAX_TEXT_LENGTH
    rig.advance(61)
    assert sorted(rig.evicted) == sorted(devices)


def taint(key: str) -> DeviceTaint:
    return DeviceTaint(key, "v" * 63, "NoExecute", START)


# -- PodGroups --------------------------------------------------------------------------------------------------------

TRAINING = SchedulingGroup("training", ("links", "own"))


def of_group(rig: Devices, *, name: str = "shop/links", group: str = "shop/training", device: DeviceId = LINK) -> None:
    rig.process(device_events.ClaimChanged(name, DeviceClaim((DeviceUse(device),), frozenset({group}))))


def broken(rig: Devices) -> None:
    rig.slice("fabric", Slice(DRIVER, LINK.pool, 1, 1, {LINK.device: tainted()}))


@pytest.mark.parametrize(
    "other",
    [
        {"group": SchedulingGroup("training", ("own",))},
        {"group": SchedulingGroup("serving", ("links",))},
        {"group": TRAINING, "namespace": "other"},
        {},
    ],
    ids=["names no such claim", "is in another group", "is in another namespace", "is in no group"],
)
def test_a_claim_of_a_group_is_not_that_of_a_pod_that(other):
    rig = Devices()
    rig.pod("a", **other)
    of_group(rig)
    broken(rig)
    assert rig.evicted == []


def test_a_pod_of_a_group_has_its_own_claims_too():
    rig = Devices(for_devices(timing=Timing(violation_grace_seconds=60)))
    rig.pod("a", group=TRAINING)
    of_group(rig)
    rig.claim("a", device=GPU_1, key="shop/own")
    [pod] = rig.view.pods("n1")
    assert {use.device for use in pod.shared.devices} == {LINK, GPU_1}


def test_nothing_is_left_of_a_group_whose_pods_and_claim_are_gone():
    rig = Devices()
    for name in ("a", "b"):
        rig.pod(name, group=TRAINING)
    of_group(rig)
    for name in ("a", "b"):
        rig.gone(name)
    rig.feed(device_events.ClaimChanged("shop/links", None))
    rig.out = []
    assert kept(rig.machine, "training") == []

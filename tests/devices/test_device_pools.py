"""Slices of a pool, as drivers rewrite them, against a model that combines all slices after every change."""

from hypothesis import example, given
from hypothesis import strategies as st

from taintwarden.engine.model import DeviceId
from taintwarden_devices.inventory import DeviceInventory, DeviceTaint, Slice, TimedTaint

Taints = tuple[DeviceTaint, ...]
NAMES = ("a", "b", "c")
DEVICES = [DeviceId("driver", "pool", f"{name}-{number}") for name in NAMES for number in range(2)]
WELL: Taints = ()
BAD: Taints = (DeviceTaint("health", "bad", "NoExecute"),)


@st.composite
def changes(draw):
    """A change of one slice, whose devices are in no other slice, as the API requires."""
    name = draw(st.sampled_from(NAMES))
    if draw(st.integers(0, 4)) == 0:
        return name, None
    devices = draw(st.dictionaries(st.sampled_from([f"{name}-0", f"{name}-1"]), st.sampled_from([WELL, BAD])))
    return name, Slice("driver", "pool", draw(st.integers(1, 3)), draw(st.integers(1, 3)), devices)


def combined(slices: dict[str, Slice], before: dict[str, int]) -> dict[str, int]:
    """Number of taints of each device. In an incomplete pool, a device that is in no slice keeps its number."""
    newest = max((one.generation for one in slices.values()), default=0)
    current = [one for one in slices.values() if one.generation == newest]
    found = {name: len(taints) for one in current for name, taints in one.devices.items()}
    is_complete = len(current) >= max((one.slices for one in current), default=0)
    return found if is_complete else before | found


def slice_of(name: str, slices: int, device: Taints = WELL, generation: int = 1) -> Slice:
    return Slice("driver", "pool", generation, slices, {f"{name}-0": device})


@given(st.lists(changes(), max_size=25))
@example([("a", slice_of("a", 2)), ("b", slice_of("b", 2, BAD)), ("b", None), ("a", slice_of("a", 1))])
@example([("a", slice_of("a", 1)), ("a", slice_of("a", 2, BAD)), ("b", slice_of("b", 2, generation=2))])
@example([*((name, slice_of(name, 1, generation=number)) for number, name in enumerate("abc")), ("c", None)])
def test_a_pool_has_the_devices_of_all_its_slices(history):
    inventory, slices, expected = DeviceInventory(), {}, {}
    taints: dict[DeviceId, tuple[TimedTaint, ...]] = {}
    for name, found in history:
        slices.pop(name, None)
        if found is not None:
            slices[name] = found
        expected = combined(slices, expected)
        changed = inventory.put_slice(name, found)
        for device in DEVICES:
            now = inventory.taints(device, "n1", taints.get(device, ()))
            assert len(now) == expected.get(device.device, 0)
            is_named = any(one.devices is None or device.device in one.devices for one in changed)
            assert now == taints.get(device, ()) or is_named
            taints[device] = now


def test_a_device_that_is_in_two_slices_stays_until_it_is_in_none():
    inventory = DeviceInventory()
    for name in NAMES:
        inventory.put_slice(name, Slice("driver", "pool", 1, 1, {"a-0": BAD}))
    for name, number in (("b", 1), ("a", 1), ("c", 0)):
        inventory.put_slice(name, None)
        assert len(inventory.taints(DEVICES[0], "n1")) == number

"""Slices of a pool, as drivers rewrite them, against a model that combines all slices after every change."""

from hypothesis import example, given
from hypothesis import strategies as st

from taintwarden.engine.device_inventory import Device, DeviceInventory, DeviceTaint, Slice
from taintwarden.engine.model import DeviceId

NAMES = ("a", "b", "c")
WELL, BAD = Device(), Device((), (DeviceTaint("health", "bad", "NoExecute"),))


@st.composite
def changes(draw):
    """What one slice becomes: its devices are its own, as the API asks of drivers."""
    name = draw(st.sampled_from(NAMES))
    if draw(st.integers(0, 4)) == 0:
        return name, None
    devices = draw(st.dictionaries(st.sampled_from([f"{name}-0", f"{name}-1"]), st.sampled_from([WELL, BAD])))
    return name, Slice("driver", "pool", draw(st.integers(1, 2)), draw(st.integers(1, 3)), devices)


def combined(slices: dict[str, Slice], settled: dict[str, Device]) -> tuple[dict[str, Device], dict[str, Device]]:
    """The devices of a pool, and those that it had when it was complete last."""
    newest = max((one.generation for one in slices.values()), default=0)
    current = [one for one in slices.values() if one.generation == newest]
    found = {name: device for one in current for name, device in one.devices.items()}
    is_complete = len(current) >= max((one.slices for one in current), default=0)
    return (found, found) if is_complete else (settled | found, settled)


def slice_of(name: str, slices: int, device: Device = WELL, generation: int = 1) -> Slice:
    return Slice("driver", "pool", generation, slices, {f"{name}-0": device})


@given(st.lists(changes(), max_size=25))
@example([("a", slice_of("a", 2)), ("b", slice_of("b", 2, BAD)), ("b", None), ("a", slice_of("a", 1))])
@example([("a", slice_of("a", 1)), ("a", slice_of("a", 2, BAD)), ("b", slice_of("b", 2, generation=2))])
def test_a_pool_is_what_all_its_slices_say(history):
    inventory, slices, known, settled = DeviceInventory(), {}, {}, {}
    for name, found in history:
        slices.pop(name, None)
        if found is not None:
            slices[name] = found
        before = known
        known, settled = combined(slices, settled)
        changed = inventory.put_slice(name, found)
        assert {one.device for one in changed} == {
            one for one in before.keys() | known.keys() if before.get(one) != known.get(one)
        }
        for device in (f"{one}-{number}" for one in NAMES for number in range(2)):
            taints = inventory.taints(DeviceId("driver", "pool", device))
            assert len(taints) == len(known.get(device, WELL).taints)


def test_a_slice_that_is_rewritten_is_not_combined_with_the_others(monkeypatch):
    inventory = DeviceInventory()
    for name in NAMES:
        inventory.put_slice(name, slice_of(name, 3))
    monkeypatch.delattr("taintwarden.engine.device_inventory._Pool._combined")
    changed = inventory.put_slice("a", slice_of("a", 3, BAD))
    assert list(changed) == [DeviceId("driver", "pool", "a-0")]


def test_a_slice_of_a_pool_that_is_not_complete_is_not_combined_with_the_others(monkeypatch):
    inventory = DeviceInventory()
    inventory.put_slice("a", slice_of("a", 4))
    monkeypatch.delattr("taintwarden.engine.device_inventory._Pool._combined")
    for name in ("b", "c"):
        assert list(inventory.put_slice(name, slice_of(name, 4))) == [DeviceId("driver", "pool", f"{name}-0")]

"""A machine whose nodes have devices, and the slices, claims and rules about them."""

from typing import Any, Self

from engine.rig import NO_LIMITS, Rig
from taintwarden.engine import commands
from taintwarden.engine.model import DeviceId, DeviceUse, Node, Toleration
from taintwarden.engine.policy import DeviceTaintSelector, Policy
from taintwarden_devices import events as device_events
from taintwarden_devices import source
from taintwarden_devices.inventory import DeviceClaim, DeviceTaint, Slice, TaintRule

Taints = tuple[DeviceTaint, ...]
WELL: Taints = ()
DRIVER, POOL, KEY = "gpu.example.com", "n1", "gpu.example.com/health"
GPU_0, GPU_1 = DeviceId(DRIVER, POOL, "gpu-0"), DeviceId(DRIVER, POOL, "gpu-1")


def for_devices(key: str = KEY, *, name: str = "p", **more: Any) -> Policy:
    of_selector = {field: more.pop(field) for field in ("driver", "effects", "value_type") if field in more}
    return Policy(name=name, devices=(DeviceTaintSelector(key, **of_selector),), limits=NO_LIMITS, **more)


def tainted(value: str = "bad", effect: str = "NoExecute", key: str = KEY, added_at: float | None = None) -> Taints:
    return (DeviceTaint(key, value, effect, added_at),)


def slice_of(generation: int = 1, slices: int = 1, **devices: Taints) -> Slice:
    named = {name.replace("_", "-"): device for name, device in devices.items()}
    return Slice(DRIVER, POOL, generation, slices, named)


class Devices(Rig):
    """A machine that follows devices of the pods of its nodes."""

    def __init__(self, *policies: Policy, known: bool = True, history: str = "", **more: Any) -> None:
        super().__init__(*(policies or (for_devices(),)), source=source.Devices, **more)
        self.node(history=history)
        if known:
            self.feed(device_events.DevicesKnown(known=True))
            self.wake()

    def make_node(self, history: str) -> Node:
        return Node("n1", "uid-n1", {}, (), self.version(), history)

    def slice(self, name: str = "s", found: Slice | None = None, **devices: Taints) -> None:
        self.process(device_events.SliceChanged(name, found or slice_of(**devices)))

    def rule(self, name: str = "r", *, value: str = "bad", effect: str = "NoExecute", **selected: Any) -> None:
        self.process(device_events.TaintRuleChanged(name, TaintRule(DeviceTaint(KEY, value, effect), **selected)))

    def claim(self, *uids: str, device: DeviceId = GPU_0, tolerations: Any = (), key: str = "shop/c") -> None:
        found = DeviceClaim((DeviceUse(device, tuple(tolerations)),), frozenset(f"uid-{uid}" for uid in uids))
        self.process(device_events.ClaimChanged(key, found))

    def with_device(self, taints: Taints, *tolerations: Toleration, **more: Any) -> Self:
        """Add the pod ``a`` with the device ``gpu-0``, which has these taints, by a claim with these tolerations."""
        self.slice(gpu_0=taints)
        self.claim("a", tolerations=tolerations)
        self.pod("a", **more)
        return self

    @property
    def evicted(self) -> list[str]:
        return [one.pod.name for one in self.out if isinstance(one, commands.Evict)]


def native(operator: str = "Exists", value: str = "", seconds: int | None = None, effect: str = "") -> Toleration:
    return Toleration(KEY, operator, value, effect, seconds)


def above(value: str) -> Toleration:
    return Toleration(KEY, "Gt", value)

"""The cases of Kubernetes' own tests for taints of devices, of 1.37, about the pods that leave and their times.

They are those of ``pkg/controller/devicetainteviction`` (``TestController``, ``TestEviction``, ``TestDeviceTaintRule``,
``TestCancelEviction``) and of the tracker of ``k8s.io/dynamic-resource-allocation`` (``resourceslice/tracker``), which
adds the taints of rules to slices. As there, the events of a case are tried in every order, except those that follow
from others. All taints are added at the beginning unless a case says otherwise.

The policy has a grace, so that a pod that has to leave at once in Kubernetes leaves after it here, and may stay if the
taint goes before.

Not here:

* the status and the counts of DeviceTaintRules (``rule-status``, ``none-*``): Kubernetes' controller writes them;
* pods without a node (``*-not-scheduled``, ``*-after-scheduling``): the engine never sees them;
* retries, parallel deletions, Events and metrics: nothing there is about devices;
* pods in a PodGroup that use no claim: for the engine they are in none (``tests/controller/test_decoding.py``);
* a toleration with a value and neither key nor operator (``TestDeviceTaintRule``): the API server rejects it;
* a claim that is reserved for a pod which does not name it, or which it was not made for
  (``*-resourceclaimtemplate-no-*``, ``no-evict-wrong-resourceclaim``): Kubernetes spares the pod. Here
  ``status.reservedFor`` decides, which only the scheduler and controllers write. It is how pods with extended resources
  are found, too, which Kubernetes never evicts.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import pytest

from devices.rig import DRIVER, KEY, POOL, Devices, Taints, for_devices
from engine.rig import START
from taintwarden.engine import commands, events
from taintwarden.engine.model import DeviceEffect, SchedulingGroup, Toleration
from taintwarden.engine.policy import Timing
from taintwarden_devices import events as device_events
from taintwarden_devices.handlers import device_claim
from taintwarden_devices.inventory import DeviceTaint, Slice, TaintRule
from taintwarden_devices.objects import DeviceClaimObject

GRACE = 10
AT_ONCE = GRACE
LONG = 3_600
NEVER = 2 * LONG
OTHER_KEY = f"{KEY}-other"
ALL_EFFECTS = tuple(DeviceEffect)

Act = Callable[[Devices], None]


class Case(NamedTuple):
    """Events, in any order except within a list, and the seconds from the beginning until each pod leaves."""

    happens: Sequence[Act | list[Act]]
    leaves: Mapping[str, float] = {}
    before: Sequence[Act] = ()
    effects: Sequence[str] = (DeviceEffect.NO_EXECUTE,)


# -- events -----------------------------------------------------------------------------------------------------------


def taint(value: str = "bad", effect: str = "NoExecute", key: str = KEY, later: float = 0) -> DeviceTaint:
    return DeviceTaint(key, value, effect, START + later)


def seen(*taints: DeviceTaint, name: str = "s", device: str = "gpu-0", others: Sequence[str] = (), **pool: Any) -> Act:
    """A change to a slice with a device that has these taints, and with others."""
    devices: dict[str, Taints] = {device: taints} | dict.fromkeys(others, ())
    found = Slice(pool.get("driver", DRIVER), pool.get("pool", POOL), pool.get("generation", 1), 1, devices)
    return lambda rig: rig.feed(device_events.SliceChanged(name, found))


def slice_gone(name: str = "s") -> Act:
    return lambda rig: rig.feed(device_events.SliceChanged(name, None))


def rule(given: DeviceTaint | None = None, *, name: str = "r", **selected: Any) -> Act:
    return lambda rig: rig.feed(device_events.TaintRuleChanged(name, TaintRule(given or taint(), **selected)))


def rule_gone(name: str = "r") -> Act:
    return lambda rig: rig.feed(device_events.TaintRuleChanged(name, None))


def claim(
    *pods: str, device: str = "gpu-0", name: str = "shop/c", tolerates: Sequence[Toleration] = (), group: str = ""
) -> Act:
    """A change of a claim as its stream delivers it."""
    result = {"driver": DRIVER, "pool": POOL, "device": device, "tolerations": msgspec.to_builtins(tolerates)}
    reserved = [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"} for pod in pods]
    if group:
        reserved = [{"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": group, "uid": f"uid-{group}"}]
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": reserved}
    body = {"metadata": {"namespace": "shop"}, "status": status}
    found = device_claim(msgspec.convert(body, DeviceClaimObject))
    return claim_gone(name) if found is None else lambda rig: rig.feed(device_events.ClaimChanged(name, found))


def claim_gone(name: str = "shop/c") -> Act:
    return lambda rig: rig.feed(device_events.ClaimChanged(name, None))


def pod(name: str, **more: Any) -> Act:
    return lambda rig: rig.feed(events.PodSeen(rig.make_pod(name, **more)))


def pod_gone(name: str) -> Act:
    return lambda rig: rig.feed(events.PodGone(f"uid-{name}", "n1"))


def after(seconds: float, act: Act) -> Act:
    def done(rig: Devices) -> None:
        rig.advance(seconds)
        act(rig)

    return done


def equal(value: str = "bad", seconds: int | None = None, key: str = KEY) -> Toleration:
    return Toleration(key, "Equal", value, "NoExecute", seconds)


def exists(seconds: int | None = None, key: str = "") -> Toleration:
    return Toleration(key, "Exists", "", "NoExecute", seconds)


# -- the cases --------------------------------------------------------------------------------------------------------

TAINTED, WELL = seen(taint()), seen()
NEIGHBOUR = seen(name="neighbour", pool="n2", generation=2)
USED = [claim("a"), pod("a")]
LATER = 40

BY_SLICES = {
    "an untainted device": Case([WELL, NEIGHBOUR, *USED]),
    "a tainted device": Case([TAINTED, NEIGHBOUR, *USED], {"a": AT_ONCE}),
    "a taint on another device": Case([seen(taint(), device="other"), NEIGHBOUR, *USED]),
    "the same slice again": Case([WELL], before=[WELL, *USED]),
    "a slice with one more device": Case(
        [seen(taint(), others=["more"]), claim("a"), pod("a")], {"a": AT_ONCE}, before=[TAINTED, *USED]
    ),
    "a slice that is created again": Case([[slice_gone(), TAINTED]], {"a": AT_ONCE}, before=[TAINTED, *USED]),
    "the taint goes": Case([WELL], before=[TAINTED, *USED]),
    "the taint becomes weaker": Case([seen(taint(effect="NoSchedule"))], before=[TAINTED, *USED]),
    "the slice goes": Case([slice_gone()], before=[TAINTED, *USED]),
    "another slice without the taint replaces it": Case(
        [slice_gone(), seen(name="new", generation=2)], before=[TAINTED, *USED]
    ),
    "a newer generation without the taint goes": Case(
        [slice_gone("new"), [claim_gone(), claim("a")]],
        {"a": AT_ONCE},
        before=[TAINTED, seen(name="new", generation=101), *USED],
    ),
    "without effect": Case([seen(taint(effect="None")), *USED]),
    "an effect that is not known": Case([seen(taint(effect="unknown")), *USED], effects=ALL_EFFECTS),
    "another value that is not tolerated": Case(
        [seen(taint("worse"))],
        {"a": AT_ONCE},
        before=[TAINTED, claim("a", tolerates=[equal(seconds=LONG)]), pod("a")],
    ),
}

BY_TOLERATIONS = {
    "for a time": Case([TAINTED, claim("a", tolerates=[equal(seconds=LONG)]), pod("a")], {"a": LONG}),
    "for the shortest of several times": Case(
        [TAINTED, claim("a", tolerates=[equal(seconds=20, key=OTHER_KEY), exists(60), exists(30)]), pod("a")],
        {"a": 30},
    ),
    "for another key": Case(
        [TAINTED, claim("a", tolerates=[equal(seconds=60, key=OTHER_KEY)]), pod("a")], {"a": AT_ONCE}
    ),
    "for ever": Case([TAINTED, claim("a", tolerates=[exists()]), pod("a")]),
    "for ever, whatever else": Case([TAINTED, claim("a", tolerates=[exists(60), exists()]), pod("a")]),
    "one taint of two": Case(
        [seen(taint(""), taint("", key=OTHER_KEY)), claim("a", tolerates=[exists(key=KEY)]), pod("a")], {"a": AT_ONCE}
    ),
    "each taint for a time of its own": Case(
        [
            rule(driver=DRIVER),
            rule(name="other", device="gpu-0"),
            seen(taint(""), taint("", key=OTHER_KEY)),
            claim("a", tolerates=[exists(60, KEY), exists(30, OTHER_KEY)]),
            pod("a"),
        ],
        {"a": 30},
    ),
    "the pod is gone before": Case([pod_gone("a")], before=[TAINTED, claim("a", tolerates=[exists(60)]), pod("a")]),
    "the slice is gone before": Case([slice_gone()], before=[TAINTED, claim("a", tolerates=[exists(60)]), pod("a")]),
}

BY_RULES = {
    "by a rule": Case([*USED, rule(driver=DRIVER)], {"a": AT_ONCE}),
    "by a rule, after a time": Case(
        [claim("a", tolerates=[equal(seconds=LONG)]), pod("a"), rule(driver=DRIVER)], {"a": LONG}
    ),
    "pods of two namespaces": Case(
        [*USED, claim("b", device="gpu-1", name="bar/c"), pod("b", namespace="bar"), rule(driver=DRIVER)],
        {"a": AT_ONCE, "b": AT_ONCE},
    ),
    "two pods of a namespace": Case(
        [*USED, claim("b", device="gpu-1", name="shop/d"), pod("b"), rule(driver=DRIVER)],
        {"a": AT_ONCE, "b": AT_ONCE},
    ),
    "a rule without effect": Case([WELL, *USED, rule(taint(effect="None"), driver=DRIVER)]),
    "a pod with two claims": Case(
        [claim("a"), claim("a", "b", device="gpu-1", name="shop/d"), pod("a"), rule(driver=DRIVER)], {"a": AT_ONCE}
    ),
    "two claims, and rules of which one begins later": Case(
        [
            claim("a"),
            claim("a", "b", device="gpu-1", name="shop/d"),
            pod("a"),
            rule(device="gpu-0"),
            rule(taint(later=LATER), name="later", device="gpu-1"),
        ],
        {"a": AT_ONCE},
    ),
    "a rule gets an effect": Case(
        [after(20, rule(taint(later=20), driver=DRIVER))],
        {"a": 50},
        before=[rule(taint(effect="None"), driver=DRIVER), claim("a", tolerates=[equal(seconds=30)]), pod("a")],
    ),
    "a rule for every device": Case([WELL, *USED, rule()], {"a": AT_ONCE}),
    "a rule for a pool": Case(
        [[*USED, claim("b", device="gpu-1", name="shop/d")], pod("b"), rule(pool="n2"), rule(name="own", pool=POOL)],
        {"a": AT_ONCE, "b": AT_ONCE},
    ),
    "a rule that names all of a device": Case(
        [*USED, claim("b", device="gpu-1", name="shop/d"), pod("b"), rule(driver=DRIVER, pool=POOL, device="gpu-0")],
        {"a": AT_ONCE},
    ),
    "a rule for another driver": Case([WELL, *USED, rule(driver="nic.example.com")]),
    "a rule for another pool": Case([WELL, *USED, rule(pool="n2")]),
    "a rule is changed and selects another pool": Case([[rule(pool=POOL), rule(pool="n2")], WELL, *USED]),
    "a rule is changed and selects this pool": Case([[rule(pool="n2"), rule(pool=POOL)], WELL, *USED], {"a": AT_ONCE}),
    "a rule is deleted": Case([[rule(pool=POOL), WELL, *USED, rule_gone()]]),
    "a rule adds to the taints of the slice": Case(
        [rule(), seen(taint(key=OTHER_KEY)), claim("a", tolerates=[exists(key=OTHER_KEY)]), pod("a")], {"a": AT_ONCE}
    ),
    "a rule for a device of a slice that grows": Case(
        [rule(device="gpu-0"), [WELL, seen(others=["gpu-1", "gpu-2"])], claim("a", device="gpu-1"), pod("a")]
    ),
    "a rule for a device of a slice that shrinks": Case(
        [rule(device="gpu-0"), [seen(others=["gpu-1", "gpu-2"]), WELL], claim("a"), pod("a")], {"a": AT_ONCE}
    ),
}

BY_PODS = {
    "another pod of the same name": Case([TAINTED, NEIGHBOUR, claim("a"), pod("a", uid="uid-other")]),
    "the pod replaces another one of its name": Case(
        [[pod_gone("other"), pod("a")]], {"a": AT_ONCE}, before=[TAINTED, claim("a"), pod("a", uid="uid-other")]
    ),
    "the claim replaces that of an earlier pod": Case(
        [claim("a")], {"a": AT_ONCE}, before=[TAINTED, claim("earlier"), pod("a")]
    ),
    "the claim is not allocated any more": Case([claim_gone()], before=[TAINTED, *USED]),
    "the claim is for nobody any more": Case([claim()], before=[TAINTED, *USED]),
    "the claim of a PodGroup": Case(
        [TAINTED, NEIGHBOUR, claim(group="g"), pod("a", group=SchedulingGroup("g", ("c",)))], {"a": AT_ONCE}
    ),
    "the claim of a PodGroup, which the pod does not name": Case([TAINTED, NEIGHBOUR, claim(group="g"), pod("a")]),
    "the claim of a PodGroup, and a rule without effect": Case(
        [
            WELL,
            claim(group="g"),
            pod("a", group=SchedulingGroup("g", ("c",))),
            rule(taint(effect="None"), driver=DRIVER),
        ]
    ),
}


def orders(happens: Sequence[Act | list[Act]]) -> Iterator[list[Act]]:
    for order in itertools.permutations(happens):
        yield [act for one in order for act in (one if isinstance(one, list) else [one])]


def left(rig: Devices) -> set[str]:
    return {one.pod.name for one in rig.out if isinstance(one, commands.Evict)}


def until(rig: Devices, seconds: float) -> None:
    rig.advance(START + seconds - rig.wall, step=START + seconds - rig.wall)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=name)
        for cases in (BY_SLICES, BY_TOLERATIONS, BY_RULES, BY_PODS)
        for name, case in cases.items()
    ],
)
def test_pods_leave_as_with_kubernetes(case: Case) -> None:
    for order in orders(case.happens):
        rig = Devices(for_devices("*", effects=case.effects, timing=Timing(violation_grace_seconds=GRACE)))
        for act in (*case.before, *order):
            act(rig)
            rig.wake()
        assert left(rig) == set()
        for seconds in sorted(set(case.leaves.values())):
            until(rig, seconds - 0.25)
            assert left(rig) == {name for name, at in case.leaves.items() if at < seconds}
            until(rig, seconds + 0.25)
            assert left(rig) == {name for name, at in case.leaves.items() if at <= seconds}
        until(rig, NEVER)
        assert left(rig) == set(case.leaves)

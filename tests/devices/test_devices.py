"""Taints of devices: the pods that they concern, their tolerations, and the times from which they count."""

from typing import Any

import msgspec
import pytest

from devices.rig import (
    DRIVER,
    GPU_0,
    GPU_1,
    KEY,
    POOL,
    WELL,
    Devices,
    above,
    for_devices,
    native,
    slice_of,
    tainted,
)
from engine.kept import kept
from engine.rig import NO_LIMITS, START, exists, limited
from simulated import policy
from taintwarden.engine import commands, events
from taintwarden.engine.evaluate import Evaluator
from taintwarden.engine.history import Span, TaintHistory, decode_histories, encode_histories
from taintwarden.engine.limit_settings import ALL_PODS, GuardSettings, Limits
from taintwarden.engine.limits.refusal import VIEW
from taintwarden.engine.machine import NOT_LISTED
from taintwarden.engine.model import DeviceId, DeviceUse, Toleration
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.policy import DeviceTaintSelector, Policy, TaintSelector, Timing, ValueType
from taintwarden_devices import events as device_events
from taintwarden_devices.inventory import DeviceClaim, DeviceInventory, DeviceTaint, Slice, TaintRule
from taintwarden_devices.node_taints import MAX_ABSENT
from taintwarden_devices.source import MAX_EVALUATED_AT_ONCE


def test_before_devices_are_listed_a_report_shows_them_as_unknown():
    rig = Devices(known=False)
    assert rig.report()[0].devices.problem == NOT_LISTED
    rig.feed(device_events.DevicesKnown(known=True))
    assert rig.report()[0].devices.problem == ""


def test_verdicts_follow_the_newest_taints_before_pods_are_evaluated():
    rig = Devices(for_devices(timing=Timing(violation_grace_seconds=60)))
    rig.node("n1", "other=1")
    rig.claim("a", tolerations=[native("Equal", "good")])
    rig.slice(gpu_0=tainted("good"))
    rig.pod("a")
    rig.rule(value="good", driver=DRIVER)
    [pod] = rig.view.pods("n1")
    rule = device_events.TaintRuleChanged("r", TaintRule(DeviceTaint(KEY, "bad", "NoExecute"), driver=DRIVER))
    found = []
    for event in (rule, device_events.DevicesKnown(known=False)):
        rig.feed(event)
        found.append([one.evicts for one in rig.view.verdicts("n1", pod.shared)])
    assert found == [[False, True], []]


def test_a_claim_of_another_namespace_concerns_no_pod():
    rig = Devices()
    rig.slice(gpu_0=tainted())
    rig.pod("a")
    rig.claim("a", key="tenant/c")
    assert rig.evicted == []


@pytest.mark.parametrize("nodes", [1, MAX_EVALUATED_AT_ONCE, MAX_EVALUATED_AT_ONCE + 1])
def test_pods_of_all_nodes_that_a_slice_concerns_leave(nodes):
    rig = Devices()
    for number in range(nodes):
        rig.node(f"m{number}")
        rig.pod(f"p{number}", node=f"m{number}")
    rig.claim(*(f"p{number}" for number in range(nodes)))
    rig.slice(gpu_0=tainted())
    assert sorted(rig.evicted) == sorted(f"p{number}" for number in range(nodes))


def test_devices_of_many_nodes_are_updated_in_steps(monkeypatch):
    """A rule concerns every pod of the cluster: no step may take as long as all of them."""
    rig = Devices()
    pods = [f"p{number}" for number in range(200)]
    for name in pods:
        rig.node(f"on-{name}")
        rig.pod(name, node=f"on-{name}")
    rig.claim(*pods)
    asked = []
    taints = DeviceInventory.taints
    monkeypatch.setattr(DeviceInventory, "taints", lambda self, *args: asked.append(rig.now) or taints(self, *args))
    rig.feed(device_events.TaintRuleChanged("r", TaintRule(DeviceTaint(KEY, "bad", "NoExecute"))))
    assert asked == []
    rig.process(events.NodeGone("on-p0"))
    assert len(rig.claimed()) == 199
    assert rig.world.source._late == {}


# -- tolerations ------------------------------------------------------------------------------------------------------


def test_tolerations_of_the_pod_do_not_count_for_devices():
    rig = Devices()
    rig.slice(gpu_0=tainted())
    rig.claim("a")
    rig.pod("a", exists(KEY))
    assert rig.evicted == ["a"]


@pytest.mark.parametrize(("value", "leaves"), [("960", False), ("940", True)])
def test_the_annotation_narrows_what_the_claim_tolerates(value, leaves):
    """KEP-5471, story 4."""
    rig = Devices(for_devices(value_type=ValueType.INTEGER)).with_device(
        tainted(value), native(), extended=[above("950")]
    )
    assert rig.evicted == (["a"] if leaves else [])


def test_after_a_restore_that_binds_a_pod_to_another_node_it_has_its_device_there():
    rig = Devices(for_devices(timing=Timing(violation_grace_seconds=60)))
    rig.node("n2")
    rig.claim("a")
    rig.pod("a")
    moved = rig.make_pod("a", node="n2")
    rig.feed(events.PodsSeen((moved,)), events.PodsListed({"uid-a": "n2"}))
    rig.slice(gpu_0=tainted())
    [pod] = rig.machine.view.pods("n2")
    assert [use.device for use in pod.shared.devices] == [GPU_0]
    rig.advance(61)
    assert rig.evicted == ["a"]
    rig.feed(device_events.ClaimChanged("shop/c", None))
    [pod] = rig.machine.view.pods("n2")
    assert pod.shared is moved.shared


def test_a_value_that_cannot_be_compared_evicts_no_pod():
    rig = Devices(for_devices(value_type=ValueType.INTEGER)).with_device(tainted("9x0"), extended=[above("950")])
    assert rig.evicted == []
    [invalid] = rig.report()[0].status.invalid_taints
    assert (invalid.node, invalid.taint) == ("n1", f"{KEY}=9x0:NoExecute of device {GPU_0}")


# -- which taints -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selector", "leaves"),
    [
        ({"key": "*"}, True),
        ({"key": "gpu.example.com/*"}, True),
        ({"key": "other"}, False),
        ({"driver": DRIVER}, True),
        ({"driver": "nic.example.com"}, False),
        ({"effects": ("NoSchedule",)}, False),
    ],
)
def test_a_policy_selects_taints_of_devices_by_key_driver_and_effect(selector, leaves):
    rig = Devices(for_devices(**selector)).with_device(tainted())
    assert rig.evicted == (["a"] if leaves else [])


def test_a_policy_for_nodes_does_not_act_on_devices():
    rig = Devices(Policy(name="p", taints=(TaintSelector("*"),), limits=NO_LIMITS)).with_device(tainted())
    assert rig.evicted == []


def test_a_policy_for_devices_does_not_act_on_nodes():
    rig = Devices(for_devices("*"))
    rig.node("n1", "sla=1")
    rig.claim("a")
    rig.pod("a")
    assert rig.evicted == []


def test_a_rule_and_the_driver_may_add_the_same_taint():
    rig = Devices(for_devices(timing=Timing(violation_grace_seconds=60)))
    rig.slice(gpu_0=tainted("1"))
    rig.rule(value="2")
    rig.claim("a", tolerations=[native("Equal", "1")])
    rig.pod("a")
    assert [str(taint) for taint, _ in rig.machine.view.node("n1").device_taints] == [
        f"{KEY}=1:NoExecute of device {GPU_0}",
        f"{KEY}=2:NoExecute of device {GPU_0}",
    ]
    rig.feed(device_events.TaintRuleChanged("r", None))
    rig.advance(120)
    assert rig.evicted == []


def test_a_device_may_have_both_taints_that_share_a_history_on_nodes():
    rig = Devices(for_devices("*", timing=Timing(violation_grace_seconds=60)))
    keys = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    rig.claim("a")
    rig.pod("a")
    for value in "12":
        rig.slice(gpu_0=tuple(DeviceTaint(key, value, "NoExecute") for key in keys))
    assert [history.value for _, history in rig.machine.view.node("n1").device_taints] == ["2", "2"]


# -- slices and pools -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["a slice", "its slices"])
def test_the_order_of_taints_of_one_key_moves_no_deadline(by):
    rig = Devices(for_devices(timing=Timing(violation_grace_seconds=60)))
    rig.claim("a", tolerations=[native("Equal", "31")])
    rig.pod("a")
    taints = (DeviceTaint(KEY, "79", "NoExecute"), DeviceTaint(KEY, "31", "NoExecute"))
    for generation in range(1, 8):
        name = f"s{generation}" if by == "its slices" else "s"
        rig.slice(name, slice_of(generation, gpu_0=taints))
        rig.advance(10)
        taints = taints[::-1]
    assert rig.evicted == ["a"]


HARMLESS, HARMFUL = DeviceTaint(KEY, "31", "NoExecute", START), DeviceTaint(KEY, "79", "NoExecute", START)


def two_of_a_key(**more: Any) -> Devices:
    rig = Devices(for_devices(timing=Timing(violation_grace_seconds=60)), **more)
    rig.claim("a", tolerations=[native("Equal", "31")])
    rig.pod("a")
    return rig


def leaves_after(rig: Devices, seconds: float) -> bool:
    rig.advance(seconds - 5)
    was_there = rig.evicted == []
    rig.advance(10)
    return was_there and rig.evicted == ["a"]


def test_the_removal_of_a_taint_before_another_of_its_key_moves_no_deadline():
    rig = two_of_a_key()
    rig.slice(gpu_0=(HARMLESS,))
    rig.slice(gpu_0=(HARMLESS, HARMFUL))
    rig.advance(40)
    rig.slice(gpu_0=(HARMFUL,))
    assert leaves_after(rig, 20)


@pytest.mark.parametrize("taints", [(HARMLESS, HARMFUL), (HARMFUL, HARMLESS), (HARMFUL,)])
def test_taints_of_one_key_are_distinguished_after_a_restart(taints):
    before = two_of_a_key()
    before.slice(gpu_0=(HARMLESS,))
    before.slice(gpu_0=(HARMFUL, HARMLESS))
    rig = two_of_a_key(history=stored(before))
    rig.wall += 40
    rig.slice(gpu_0=taints)
    assert leaves_after(rig, 20)


def test_of_two_new_values_of_a_key_one_continues_the_history_and_the_other_begins():
    rig = two_of_a_key()
    rig.slice(gpu_0=(HARMFUL,))
    rig.advance(40)
    rig.slice(gpu_0=(DeviceTaint(KEY, "80", "NoExecute"), DeviceTaint(KEY, "81", "NoExecute")))
    histories = [history for _, history in rig.view.node("n1").device_taints]
    assert [len(one.spans) for one in histories] == [2, 1]
    assert histories[1].spans[0].since == rig.wall


def test_a_rule_that_is_gone_is_removed_from_a_device_of_an_incomplete_pool():
    known = DeviceInventory()
    known.put_slice("one", slice_of(1, 2))
    known.put_rule("r", TaintRule(DeviceTaint(KEY, "bad", "NoExecute")))
    before = known.taints(GPU_0)
    known.put_rule("r", None)
    assert len(before) == 1
    assert known.taints(GPU_0, before=before) == ()


def test_a_pool_that_is_never_complete_does_not_grow_with_names():
    known = DeviceInventory()
    for number in range(5):
        known.put_slice("one", slice_of(1, 2, **{f"gpu_{number}": WELL}))
    assert [number for number in range(5) if known.has(DeviceId(DRIVER, POOL, f"gpu-{number}"), "n1")] == [4]


@pytest.mark.parametrize(("node", "leaves"), [("", True), ("n1", True), ("n2", False)])
def test_a_slice_of_a_node_concerns_pods_on_that_node(node, leaves):
    """A kubelet writes slices of its node, and names any driver, pool and generation in them."""
    rig = Devices()
    rig.claim("a")
    rig.pod("a")
    rig.slice(found=msgspec.structs.replace(slice_of(gpu_0=WELL), node="n1"))
    rig.slice("other", msgspec.structs.replace(slice_of(generation=99, gpu_0=tainted()), node=node))
    assert rig.evicted == (["a"] if leaves else [])


@pytest.mark.parametrize("by", ["slice", "rule"])
def test_a_taint_that_was_removed_and_added_again_begins_again(by):
    rig = Devices(for_devices(timing=Timing(violation_grace_seconds=60)))
    rig.slice(gpu_0=WELL)
    rig.claim("a")
    rig.pod("a")
    for _ in range(2):
        begun = float(rig.now.wall)
        if by == "slice":
            rig.slice(gpu_0=tainted())
        else:
            rig.rule(device="gpu-0")
        rig.advance(50)
        assert rig.evicted == []
        if by == "slice":
            rig.slice(gpu_0=WELL)
        else:
            rig.feed(device_events.TaintRuleChanged("r", None))
            rig.wake()
    assert begun == START + 50
    assert rig.machine.view.node("n1").device_taints == ()


def test_a_taint_that_was_removed_while_devices_were_not_known_begins_again():
    rig = Devices(for_devices(timing=Timing(violation_grace_seconds=60))).with_device(tainted())
    rig.process(device_events.DevicesKnown(known=False))
    rig.slice(gpu_0=WELL)
    rig.claim("a")
    rig.feed(device_events.DevicesKnown(known=True))
    rig.advance(50)
    rig.slice(gpu_0=tainted())
    rig.advance(50)
    assert rig.evicted == []
    rig.advance(20)
    assert rig.evicted == ["a"]


def test_a_taint_that_was_added_while_devices_were_not_known_counts_from_its_time():
    rig = Devices(for_devices(timing=Timing(violation_grace_seconds=60))).with_device(WELL)
    rig.process(device_events.DevicesKnown(known=False))
    rig.advance(50)
    rig.slice(gpu_0=tainted(added_at=START + 10))
    rig.claim("a")
    rig.process(device_events.DevicesKnown(known=True))
    rig.advance(15)
    assert rig.evicted == []
    rig.advance(10)
    assert rig.evicted == ["a"]


@pytest.mark.parametrize("by", ["slice", "rule"])
@pytest.mark.parametrize(("added", "leaves_after"), [(START, 610), (START + 580, 1180)])
def test_a_taint_with_another_time_after_a_gap_was_added_again(by, added, leaves_after):
    rig = Devices(for_devices(timing=Timing(violation_grace_seconds=600)))
    rig.claim("a")
    rig.pod("a")

    def put(added_at: float, *, listed: bool) -> None:
        if by == "slice":
            rig.feed(device_events.SliceChanged("s", slice_of(gpu_0=tainted(added_at=added_at)), listed))
        else:
            rule = TaintRule(DeviceTaint(KEY, "bad", "NoExecute", added_at))
            rig.feed(device_events.TaintRuleChanged("r", rule, listed))
        rig.wake()

    put(START, listed=False)
    rig.advance(10, step=10)
    rig.feed(device_events.StreamChanged("of devices", live=False))
    rig.advance(580, step=10)
    put(added, listed=True)
    rig.feed(device_events.StreamChanged("of devices", live=True))
    rig.advance(leaves_after - 600, step=10)
    assert (rig.evicted == ["a"]) == (added == START)
    rig.advance(20, step=10)
    assert rig.evicted == ["a"]


def test_a_pod_that_has_just_come_is_not_evicted_because_of_a_device():
    """The stream of pods may be ahead of that of slices: the taint may be gone."""
    rig = Devices()
    rig.with_device(tainted(), bound_at=rig.now.wall)
    rig.advance(1)
    assert rig.evicted == []
    rig.advance(1.5)
    assert rig.evicted == ["a"]


# -- time -------------------------------------------------------------------------------------------------------------


def stored(rig: Devices) -> str:
    """The newest history, once it is stored."""
    text = ""
    while orders := [one for one in rig.ordered if isinstance(one, commands.SaveHistory)]:
        text = orders[0].text
        rig.ordered.remove(orders[0])
        rig.written(orders[0])
        rig.node(history=text)
    return text


def test_an_old_time_removes_no_grace_where_the_device_was_seen_without_the_taint():
    rig = Devices(for_devices(timing=Timing(violation_grace_seconds=15)))
    rig.slice(gpu_0=WELL)
    rig.claim("a")
    rig.pod("a")
    rig.advance(20)
    rig.slice(gpu_0=tainted(added_at=START - 600))
    rig.advance(14)
    assert rig.evicted == []
    rig.advance(2)
    assert rig.evicted == ["a"]


@pytest.mark.parametrize("first", ["devices", "synced", "devices before pods"])
def test_a_restart_moves_no_deadline(first):
    policy = for_devices(value_type=ValueType.INTEGER, timing=Timing(violation_grace_seconds=60))
    before = Devices(policy)
    before.slice(gpu_0=tainted("990", added_at=START - 5_000))
    before.claim("a", tolerations=[native()])
    before.pod("a", extended=[above("950")])
    before.slice(gpu_0=tainted("900", added_at=START - 5_000))
    rig = Devices(policy, known=False, synced=False, history=stored(before))
    rig.wall += 40
    rig.feed(device_events.SliceChanged("s", slice_of(gpu_0=tainted("900", added_at=START - 5_000))))
    rig.claim("a", tolerations=[native()])
    if first == "devices before pods":
        rig.feed(device_events.DevicesKnown(known=True))
        rig.claim("b", device=GPU_1, key="shop/d")
        rig.pod("b")
    rig.pod("a", extended=[above("950")])
    known, synced = device_events.DevicesKnown(known=True), events.Synced()
    for event in (synced, known) if first == "synced" else (known, synced):
        rig.feed(event)
        rig.wake()
    rig.advance(19)
    assert rig.evicted == []
    rig.advance(2)
    assert rig.evicted == ["a"]


OLD = START - 5_000


def fallen() -> Devices:
    """A machine ten seconds after a value fell, with a minute of grace."""
    rig = Devices(for_devices(value_type=ValueType.INTEGER, timing=Timing(violation_grace_seconds=60))).with_device(
        tainted("990", added_at=OLD), native(), extended=[above("950")]
    )
    rig.slice(gpu_0=tainted("900", added_at=OLD))
    rig.advance(10)
    return rig


def slice_created_again(rig: Devices) -> None:
    rig.feed(device_events.SliceChanged("s", None))
    rig.advance(1)
    rig.slice(gpu_0=tainted("900", added_at=OLD))


def a_generation_without_it(rig: Devices) -> None:
    rig.slice("s", slice_of(2, 1, gpu_1=WELL))
    rig.slice("s", slice_of(3, 1, gpu_0=tainted("900", added_at=OLD)))


def claim_read_again(rig: Devices) -> None:
    rig.process(device_events.ClaimChanged("shop/c", None))
    rig.claim("a", tolerations=[native()])


def node_created_again(rig: Devices) -> None:
    rig.node(uid="other")


def node_gone_and_created_again(rig: Devices) -> None:
    rig.feed(events.NodeGone("n1"))
    rig.node(uid="other")


def an_older_annotation_while_devices_are_not_known(rig: Devices) -> None:
    rig.feed(device_events.DevicesKnown(known=False))
    history = TaintHistory.begin("900", OLD, OLD)
    node = rig.make_node(history=encode_histories({f"{KEY}:NoExecute@{GPU_0}": history}))
    rig.feed(events.NodeSeen(node, listed=True))
    rig.slice(gpu_0=tainted("900", added_at=OLD))
    rig.claim("a", tolerations=[native()])
    rig.process(device_events.DevicesKnown(known=True))


def absent_while_devices_become_unknown(rig: Devices) -> None:
    """Another device of the node is in a slice."""
    other = tainted("900", added_at=OLD)
    rig.claim("b", device=GPU_1, tolerations=[native()], key="shop/d")
    rig.pod("b", extended=[above("100")])
    rig.slice("s", slice_of(2, 1, gpu_1=other))
    rig.feed(device_events.DevicesKnown(known=False))
    rig.slice("s", slice_of(3, 1, gpu_0=tainted("900", added_at=OLD), gpu_1=other))
    rig.claim("a", tolerations=[native()])
    rig.claim("b", device=GPU_1, tolerations=[native()], key="shop/d")
    rig.process(device_events.DevicesKnown(known=True))


@pytest.mark.parametrize(
    "happens",
    [
        absent_while_devices_become_unknown,
        slice_created_again,
        a_generation_without_it,
        claim_read_again,
        node_created_again,
        node_gone_and_created_again,
        an_older_annotation_while_devices_are_not_known,
    ],
    ids=lambda one: one.__name__,
)
def test_the_time_of_a_changed_value_is_kept(happens):
    rig = fallen()
    happens(rig)
    rig.advance(40)
    assert rig.evicted == []
    rig.advance(11)
    assert rig.evicted == ["a"]


def test_the_value_of_a_device_counts_again_after_an_annotation_ahead_of_its_slice():
    policy = for_devices(value_type=ValueType.INTEGER, timing=Timing(violation_grace_seconds=60))
    rig, leader = Devices(policy, leading=False), Devices(policy)
    for one in (rig, leader):
        one.slice(gpu_0=tainted("990"))
        one.claim("a", tolerations=[native()])
        one.pod("a", extended=[above("950")])
        one.advance(10)
    leader.slice(gpu_0=tainted("900"))
    rig.advance(10)
    rig.node(history=stored(leader), listed=True)
    [(_, history)] = rig.view.node("n1").device_taints
    assert history.spans[-1] == Span(rig.wall, ("990",))


def test_the_histories_that_a_kubelet_writes_are_bounded():
    rig = Devices(Policy(name="p", taints=(TaintSelector("sla"),), limits=NO_LIMITS), known=False)
    for number in range(10):
        names = {f"k:NoExecute@forged-{number}-{index}": TaintHistory.begin("1", START) for index in range(100)}
        rig.feed(events.NodeSeen(rig.make_node(history=encode_histories(names)), listed=True))
    assert len(rig.world.cluster.nodes["n1"].source_taints.absent) == MAX_ABSENT


def test_histories_of_devices_do_not_displace_those_of_the_node():
    spans = tuple(Span(START + number, ("9" * 60,)) for number in range(16))
    many = {f"{KEY}:NoExecute@{DRIVER}/{'p' * 100}/{number}": TaintHistory(spans) for number in range(500)}
    assert "sla:NoExecute" in decode_histories(encode_histories(many | {"sla:NoExecute": TaintHistory(spans)}))


def test_of_many_histories_those_that_taints_do_not_show_are_stored():
    """A rule taints all devices, and one value changed."""
    told = {f"{KEY}:NoExecute@{DRIVER}/{'p' * 99}/{n}": TaintHistory.begin("1", START, OLD) for n in range(500)}
    changed = TaintHistory.begin("990", START, OLD).with_value("900", START)
    name = f"{KEY}:NoExecute@{DRIVER}/z/z"
    stored = decode_histories(encode_histories(told | {name: changed}))
    assert stored[name] == changed.shortened(1)
    assert 0 < len(stored) < 500


def test_with_a_history_that_is_too_long_a_restart_makes_no_eviction_early():
    policy = for_devices("*", timing=Timing(violation_grace_seconds=600))

    def begun(value: str, history: str = "") -> Devices:
        rig = Devices(policy, history=history)
        many = [DeviceId(DRIVER, POOL, f"{number}-{'x' * 60}") for number in range(500)]
        rig.feed(device_events.ClaimChanged("shop/b", DeviceClaim(tuple(map(DeviceUse, many)), frozenset({"uid-b"}))))
        rig.slice("many", slice_of(**{one.device: tainted(added_at=START + 0.5) for one in many}))
        rig.slice(found=Slice(DRIVER, "z", 1, 1, {"gpu-0": tainted(value, added_at=OLD)}))
        rig.claim("a", device=DeviceId(DRIVER, "z", "gpu-0"), tolerations=[native("Equal", "990")], key="shop/z")
        rig.pod("b", extended=[exists(KEY)])
        rig.pod("a")
        return rig

    before = begun("990")
    before.slice(found=Slice(DRIVER, "z", 1, 1, {"gpu-0": tainted("900", added_at=OLD)}))
    rig = begun("900", stored(before))
    rig.advance(595, step=5)
    assert rig.evicted == []
    rig.advance(10, step=5)
    assert rig.evicted == ["a"]


# -- what protects ----------------------------------------------------------------------------------------------------


def test_nothing_is_evicted_while_devices_are_out_of_date():
    rig = Devices(for_devices(timing=Timing(violation_grace_seconds=60))).with_device(tainted())
    rig.feed(device_events.StreamChanged("resourceslices", live=False))
    rig.advance(120)
    assert rig.evicted == []
    assert rig.machine.view.claims("uid-a")[0].limit == VIEW
    assert rig.report()[0].devices.blind == ("resourceslices",)
    rig.process(device_events.StreamChanged("resourceslices", live=True))
    assert rig.evicted == ["a"]


def test_a_call_that_is_not_sent_yet_ends_when_devices_are_out_of_date():
    rig = Devices().with_device(tainted())
    [order] = rig.take(commands.Evict)
    assert rig.machine.is_still_valid(order, rig.now)
    rig.feed(device_events.StreamChanged("resourceslices", live=False))
    assert not rig.machine.is_still_valid(order, rig.now)


@pytest.mark.parametrize("seconds", [0, 60])
def test_a_taint_of_its_node_evicts_a_pod_while_devices_are_out_of_date(seconds):
    rig = Devices(limited(spec={"devices": [{"key": "*"}]}))
    rig.feed(device_events.StreamChanged("resourceslices", live=False))
    rig.with_device(tainted())
    rig.pod("a", Toleration("sla", "Gt", "950", violation_grace_seconds=seconds))
    assert rig.evicted == []
    rig.node("n1", "sla=940")
    rig.advance(seconds)
    assert rig.evicted == ["a"]


def test_pods_that_came_while_no_policy_was_about_devices_have_theirs():
    rig = Devices()
    rig.slice(gpu_0=tainted())
    rig.claim("a")
    rig.change()
    rig.pod("a")
    rig.change(for_devices())
    assert rig.evicted == ["a"]


def test_a_node_is_not_written_as_drained_while_devices_are_out_of_date():
    rig = Devices(policy(devices=[{"key": "*"}]), drained_condition=True)
    rig.node("n1", "sla=0")
    [order] = rig.take(commands.SaveCondition)
    assert rig.machine.is_still_valid(order, rig.now)
    rig.feed(device_events.StreamChanged("resourceslices", live=False))
    assert not rig.machine.is_still_valid(order, rig.now)


@pytest.mark.parametrize("is_seen", [True, False])
def test_a_pod_that_leaves_while_no_policy_is_about_devices_uses_none_any_more(is_seen):
    rig = Devices().with_device(WELL)
    rig.change()
    if is_seen:
        rig.pod("a")
    rig.gone("a")
    found = rig.machine._intake._source
    assert kept(found, "uid-a", without=found._inventory) == []
    assert found._nodes_with == rig.world.cluster.nodes["n1"].source_taints.uses == {}


def test_streams_are_not_outdated_while_devices_are_not_known():
    rig = Devices(known=False)
    rig.feed(device_events.StreamChanged("resourceslices", live=False))
    rig.process(device_events.DevicesKnown(known=False, problem="a right is missing"))
    assert (rig.report()[0].devices.problem, rig.report()[0].devices.blind) == ("a right is missing", ())


def test_a_stream_that_is_not_followed_any_more_is_not_outdated():
    rig = Devices(for_devices()).with_device(tainted())
    rig.feed(device_events.StreamChanged("resourceslices", live=False))
    rig.process(device_events.DevicesKnown(known=False), device_events.DevicesKnown(known=True))
    assert rig.report()[0].devices.blind == ()


def test_the_taints_of_a_device_cost_nothing_for_pods_without_it(monkeypatch):
    """There may be as many pods as devices, and all are evaluated again with each pod that leaves."""
    rig = Devices(for_devices("*"))
    for number in range(20):
        rig.pod(f"a{number}")
        rig.claim(
            f"a{number}", device=DeviceId(DRIVER, POOL, f"gpu-{number}"), tolerations=[native()], key=f"shop/{number}"
        )
    asked = []
    act = Evaluator.acting_on
    monkeypatch.setattr(
        Evaluator, "acting_on", lambda self, taint, policies: asked.append(taint) or act(self, taint, policies)
    )
    rig.rule()
    assert len(asked) == 20


def crowded(*selected: DeviceTaintSelector, known: bool = True, **more: Any) -> Devices:
    """A machine with 440 pods, of which 40 have a device."""
    guarded = Limits(per_workload=ALL_PODS, zone_health=None, guard=GuardSettings())
    rig = Devices(Policy(name="p", devices=selected, limits=guarded, **more), known=known)
    for number in range(400):
        rig.feed(events.PodSeen(rig.make_pod(f"other-{number}", node=f"n{number % 40}")))
    for number in range(40):
        rig.pod(f"a{number}", node=f"n{number}")
        rig.claim(f"a{number}", device=DeviceId(DRIVER, f"n{number}", "gpu-0"), key=f"shop/c{number}")
        rig.node(f"n{number}")
    return rig


def test_a_guard_for_devices_counts_pods_that_have_some():
    rig = crowded(DeviceTaintSelector("*"))
    rig.rule()
    rig.advance(5)
    assert rig.evicted == []
    assert any(isinstance(one, commands.GuardTripped) for one in rig.out)
    guard = rig.world.limiter.guards.by_policy["p"]
    assert guard.population() == 40
    rig.process(device_events.DevicesKnown(known=False, problem="a right is missing"))
    rig.store()
    assert guard.latch.is_tripped, "its cause may be there still"


@pytest.mark.parametrize(
    ("drivers", "more", "pods"),
    [
        (("nic.example.com",), {}, 0),
        (("nic.example.com", DRIVER), {}, 40),
        ((DRIVER,), {"taints": (TaintSelector("sla"),)}, 440),
    ],
)
def test_a_policy_for_devices_may_evict_pods_with_devices_of_its_drivers(drivers, more, pods):
    rig = crowded(*(DeviceTaintSelector("*", driver) for driver in drivers), **more)
    assert rig.world.limiter.guards.by_policy["p"].population() == pods


def test_the_population_of_a_guard_is_counted_again_once_devices_are_known():
    rig = crowded(DeviceTaintSelector("*"), known=False)
    assert rig.world.limiter.guards.by_policy["p"].population() == 0
    rig.process(device_events.DevicesKnown(known=True))
    assert rig.world.limiter.guards.by_policy["p"].population() == 40


def sick(number: int) -> Slice:
    return Slice(DRIVER, f"n{number}", 1, 1, {"gpu-0": tainted()})


def tripped_and_half_repaired(**more: Any) -> Devices:
    """A guard that allows 20 of 40 pods and has tripped because of 30, of which 15 still have to leave."""
    rig = Devices(for_devices_guarded(min_pods=20), **more)
    for number in range(40):
        rig.pod(f"a{number}", node=f"n{number}", namespace=f"ns{number}")
        rig.claim(f"a{number}", device=DeviceId(DRIVER, f"n{number}", "gpu-0"), key=f"ns{number}/c")
        rig.node(f"n{number}")
    for number in range(30):
        rig.feed(device_events.SliceChanged(f"s{number}", sick(number)))
    rig.advance(5)
    for number in range(15):
        rig.slice(f"s{number}", Slice(DRIVER, f"n{number}", 1, 1, {"gpu-0": WELL}))
    assert rig.machine.view.guard("p").halts
    return rig


def for_devices_guarded(**settings: Any) -> Policy:
    limits = Limits(per_workload=ALL_PODS, zone_health=None, guard=GuardSettings(**settings))
    return Policy(name="p", devices=(DeviceTaintSelector("*"),), limits=limits)


def test_a_guard_stays_tripped_while_devices_are_not_known():
    rig = tripped_and_half_repaired()
    rig.feed(device_events.DevicesKnown(known=False))
    rig.advance(5)
    assert rig.machine.view.guard("p").halts
    for number in range(40):
        rig.claim(f"a{number}", device=DeviceId(DRIVER, f"n{number}", "gpu-0"), key=f"ns{number}/c")
    for number in range(15, 30):
        rig.feed(device_events.SliceChanged(f"s{number}", sick(number)))
    rig.feed(device_events.DevicesKnown(known=True))
    rig.advance(5)
    assert rig.machine.view.guard("p").halts


@pytest.mark.parametrize(("problem", "halts"), [("", True), ("forbidden", False)])
def test_a_guard_stays_tripped_while_devices_are_unknown_without_a_problem(problem, halts):
    policy = msgspec.structs.replace(for_devices_guarded(min_pods=2), taints=(TaintSelector("sla"),))
    rig = Devices(policy, known=False)
    for number in range(6):
        rig.pod(f"a{number}", node=f"n{number}", namespace=f"ns{number}")
        rig.node(f"n{number}", "sla=1")
    rig.store()
    rig.feed(device_events.DevicesKnown(known=False, problem=problem))
    for number in range(6):
        rig.node(f"n{number}")
    rig.store()
    assert rig.machine.view.guard("p").halts == halts


@pytest.mark.parametrize("known", [True, False])
def test_a_guard_with_other_settings_is_armed_once_devices_are_known(known):
    rig = tripped_and_half_repaired()
    rig.feed(device_events.DevicesKnown(known=False))
    rig.feed(events.PoliciesChanged((for_devices_guarded(min_pods=25),)))
    rig.advance(1)
    for number in range(40):
        rig.claim(f"a{number}", device=DeviceId(DRIVER, f"n{number}", "gpu-0"), key=f"ns{number}/c")
    for number in range(15, 30):
        rig.feed(device_events.SliceChanged(f"s{number}", sick(number)))
    rig.feed(device_events.DevicesKnown(known=known))
    rig.store()
    assert rig.machine.view.guard("p").halts != known


def test_nothing_is_kept_of_a_pod_that_is_gone():
    rig = Devices()
    rig.claim("a")
    rig.pod("a")
    rig.feed(events.PodGone("uid-a", "n1"), device_events.ClaimChanged("shop/c", None))
    assert kept(rig.machine, "uid-a") == []


def test_in_a_quarantine_no_toleration_of_a_claim_counts():
    rig = Devices(for_devices(quarantine=True)).with_device(tainted(), native())
    assert rig.evicted == ["a"]


def test_a_node_loses_the_taints_of_a_device_with_the_last_pod_that_has_it():
    rig = Devices().with_device(tainted(), native())
    rig.process(events.PodGone("uid-a", "n1"))
    assert rig.machine.view.node("n1").taints == ()


def test_the_view_of_a_node_has_its_taints_and_those_of_devices_apart():
    rig = Devices()
    rig.node("n1", "sla=1")
    rig.slice(gpu_0=tainted())
    rig.claim("a")
    rig.pod("a")
    view = rig.machine.view.node("n1")
    assert [taint.key for taint, _ in view.taints] == ["sla"]
    assert [taint.origin.device for taint, _ in view.device_taints] == [GPU_0]


# -- changes that concern many nodes -----------------------------------------------------------------------------------

MANY_NODES = 9


def on_many_nodes(policy: Policy | None = None) -> Devices:
    """A machine with nodes whose pods have a device each, and n0 with a pod that a policy for nodes selects."""
    rig = Devices(policy or for_devices(), limited("nodes", spec={"taints": [{"key": "sla"}]}))
    rig.node("n0")
    rig.pod("other", node="n0")
    for number in range(MANY_NODES):
        rig.node(f"m{number}")
        rig.pod(f"p{number}", node=f"m{number}")
        rig.claim(f"p{number}", device=DeviceId(DRIVER, f"m{number}", "gpu-0"), key=f"shop/c{number}")
    rig.wake()
    return rig


def put_rule(rig: Devices, value: str) -> None:
    found = TaintRule(DeviceTaint(KEY, value, "NoExecute", rig.wall), driver=DRIVER)
    rig.feed(device_events.TaintRuleChanged("r", found))


def test_a_rule_of_many_nodes_that_changes_continually_delays_no_other_eviction():
    rig = on_many_nodes()
    rig.node("n0", "sla=1")
    for number in range(10):
        put_rule(rig, str(number))
        rig.wake()
        put_rule(rig, str(number))
    assert "other" in rig.evicted


def test_a_taint_removed_and_added_between_two_evaluations_begins_again():
    """The device may have been without the taint in between, so its time begins again."""
    rig = on_many_nodes(for_devices(timing=Timing(violation_grace_seconds=100)))
    put_rule(rig, "bad")
    rig.advance(90, step=10.0)
    rig.feed(device_events.TaintRuleChanged("r", None))
    put_rule(rig, "bad")
    rig.advance(20, step=5.0)
    assert rig.evicted == []


def test_a_pod_that_its_claim_does_not_name_any_more_has_no_device() -> None:
    rig = Devices().with_device(tainted("900", added_at=OLD))
    rig.pod("b")
    rig.claim("b")
    rig.advance(1)
    assert rig.claimed() == ["b"]


def test_a_deleted_node_is_not_named_as_the_cause_of_a_trip():
    limits = msgspec.structs.replace(NO_LIMITS, guard=GuardSettings(1, min_pods=1, settle_seconds=0))
    rig = Devices(msgspec.structs.replace(for_devices(), limits=limits))
    rig.node("n2")
    rig.slice(gpu_0=tainted())
    rig.claim("a", "b", "c")
    rig.pod("a")
    rig.store()
    rig.settle("a", Outcome.ACCEPTED)
    rig.feed(events.NodeGone("n1"))
    rig.slice(gpu_0=tainted("2"))
    rig.pod("b", node="n2")
    rig.pod("c", node="n2")
    rig.advance(5)
    [trip] = rig.take(commands.GuardTripped)
    assert trip.guard.record.cause.endswith(f" on 1 node: {KEY}=2:NoExecute of device {GPU_0} on n2")

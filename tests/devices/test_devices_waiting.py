"""Pods, nodes and claims that come, go or move while a node waits for the devices of its pods."""

from devices.rig import GPU_0, KEY, Devices, for_devices, tainted
from devices.test_devices import on_many_nodes, put_rule
from engine.kept import kept
from engine.rig import START
from taintwarden.engine.history import Span, TaintHistory, encode_histories
from taintwarden.engine.machine import commands, events
from taintwarden.engine.model import Node, SchedulingGroup, Timing
from taintwarden_devices import events as device_events
from taintwarden_devices.inventory import DeviceClaim, DeviceUse

STORED = encode_histories({f"{KEY}:NoExecute@{GPU_0}": TaintHistory((Span(START - 500, ("bad",)),))})


def test_a_node_that_changes_before_its_pods_have_their_devices_keeps_its_histories():
    """A restart in this moment must not move a deadline."""
    rig = Devices(for_devices(timing=Timing(violation_grace_seconds=3_600)), known=False, history=STORED)
    rig.pod("a")
    rig.claim("a")
    rig.slice(gpu_0=tainted())
    rig.feed(device_events.DevicesKnown(known=True))
    rig.feed(events.NodeSeen(Node("n1", "uid-n1", {"zone": "a"}, (), rig.version(), STORED)))
    assert rig.take(commands.SaveHistory) == []
    rig.wake()
    assert rig.take(commands.SaveHistory) == []
    assert rig.view.claims("uid-a")[0].due_at == START - 500 + 3_600


def test_nothing_is_kept_of_a_node_that_goes_while_its_devices_wait():
    rig = on_many_nodes()
    put_rule(rig, "bad")
    rig.feed(events.PodGone("uid-p3", "m3"), device_events.ClaimGone("shop/c3"), events.NodeGone("m3"))
    rig.wake()
    assert kept(rig.machine, "m3") == []


def test_nothing_is_kept_of_a_device_that_a_pod_loses_while_its_node_waits():
    rig = on_many_nodes()
    put_rule(rig, "bad")
    rig.feed(device_events.TaintRuleGone("r"), device_events.ClaimGone("shop/c3"))
    rig.wake()
    assert "m3" not in {pool for _, pool in rig.machine._intake._source._nodes_with}


def test_a_pod_that_is_on_another_node_now_stays_in_its_group():
    """After a restore of etcd: that it is gone from its old node may be delivered last."""
    rig = Devices()
    rig.node("n2")
    group = SchedulingGroup("g", ("c",))
    rig.pod("a", group=group)
    rig.pod("a", node="n2", group=group)
    rig.gone("a", node="n1")
    rig.slice(gpu_0=tainted())
    rig.feed(device_events.ClaimSeen("shop/c", DeviceClaim((DeviceUse(GPU_0, ()),), frozenset({"shop/g"}))))
    rig.wake()
    assert rig.evicted == ["a"]

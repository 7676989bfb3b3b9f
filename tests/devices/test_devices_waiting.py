"""Pods, nodes and claims that are added, removed or moved while a node waits for the devices of its pods."""

from devices.rig import GPU_0, KEY, Devices, for_devices, tainted
from devices.test_devices import on_many_nodes, put_rule
from engine.kept import kept
from engine.rig import START, limited
from taintwarden.engine import commands, events
from taintwarden.engine.history import Span, TaintHistory, encode_histories
from taintwarden.engine.model import Node, SchedulingGroup
from taintwarden.engine.policy import Timing
from taintwarden_devices import events as device_events
from taintwarden_devices.inventory import DeviceClaim, DeviceUse

STORED = encode_histories({f"{KEY}:NoExecute@{GPU_0}": TaintHistory((Span(START - 500, ("bad",)),))})


def test_a_node_that_changes_before_its_pods_have_their_devices_keeps_its_histories():
    """A restart at this moment must not move a deadline."""
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


def test_nothing_is_kept_of_a_node_that_is_deleted_while_its_devices_wait():
    rig = on_many_nodes()
    put_rule(rig, "bad")
    rig.process(events.PodGone("uid-p3", "m3"), device_events.ClaimChanged("shop/c3", None), events.NodeGone("m3"))
    assert kept(rig.machine, "m3") == []


def test_nothing_is_kept_of_a_device_that_a_pod_loses_while_its_node_waits():
    rig = on_many_nodes()
    put_rule(rig, "bad")
    rig.process(device_events.TaintRuleChanged("r", None), device_events.ClaimChanged("shop/c3", None))
    assert "m3" not in {pool for _, pool in rig.machine._intake._source._nodes_with}


def test_a_pod_that_moved_to_another_node_stays_in_its_group():
    """After a restore of etcd, the deletion from the old node may be delivered last."""
    rig = Devices()
    rig.node("n2")
    group = SchedulingGroup("g", ("c",))
    rig.pod("a", group=group)
    rig.pod("a", node="n2", group=group)
    rig.gone("a", node="n1")
    rig.slice(gpu_0=tainted())
    rig.process(device_events.ClaimChanged("shop/c", DeviceClaim((DeviceUse(GPU_0, ()),), frozenset({"shop/g"}))))
    assert rig.evicted == ["a"]


def test_losing_devices_while_a_pod_is_on_two_nodes_drops_the_node_that_is_gone():
    """This happens after a restore of etcd, while a call for the pod is in progress and its node is gone."""
    rig = Devices(for_devices(), limited("nodes", spec={"taints": [{"key": "sla"}]}))
    rig.node("n2")
    rig.pod("a")
    rig.pod("a", node="n2")
    rig.claim("a")
    rig.node("n1", "sla=1")
    rig.process(events.NodeGone("n1"), device_events.DevicesKnown(known=False))
    assert list(rig.world.cluster.nodes) == ["n2"]


def test_a_node_whose_pods_have_no_devices_is_not_written_to_when_devices_are_lost():
    rig = Devices(for_devices(timing=Timing(violation_grace_seconds=3_600))).with_device(tainted())
    order = rig.answer(commands.SaveHistory)
    rig.node(history=order.text)
    rig.gone("a")
    rig.answer(commands.SaveHistory)
    rig.node()
    rig.out = []
    rig.process(device_events.DevicesKnown(known=False, problem="not served"))
    assert rig.take(commands.SaveHistory) == []

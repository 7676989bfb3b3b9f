"""Pods, nodes and claims that come, go or move while a node waits for the devices of its pods."""

from devices.rig import GPU_0, KEY, Devices, for_devices, tainted
from engine.rig import START
from taintwarden.engine.history import Span, TaintHistory, encode_histories
from taintwarden.engine.machine import commands, events
from taintwarden.engine.model import Node, Timing
from taintwarden_devices import events as device_events

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

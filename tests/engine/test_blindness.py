"""Nobody is evicted on what may be long past: a cut stream holds everything."""

import pytest

from simulated import Simulation, policy
from taintwarden.engine.machine import events

TAINT = {"key": "sla", "value": "1", "effect": "NoExecute"}


@pytest.fixture
def sim():
    sim = Simulation([policy()])
    sim.create_node("n1")
    sim.create_pod("a", "n1")
    sim.start()
    sim.feed(events.ViewChanged("nodes", live=False))
    sim.set_taints("n1", [TAINT])
    return sim


def test_a_cut_stream_holds_due_pods(sim):
    sim.run(60)
    assert sim.calls == []


def test_status_says_what_holds_them(sim):
    sim.run(60)
    assert [entry.status.limited_by for entry in sim.machine.view.report(sim.instant)] == ["view"]


def test_they_go_when_the_stream_is_back(sim):
    sim.run(60)
    sim.feed(events.ViewChanged("nodes", live=True))
    sim.run(61)
    assert len(sim.evicted) == 1


def test_one_stream_that_is_back_does_not_make_up_for_another(sim):
    sim.feed(events.ViewChanged("pods", live=False))
    sim.feed(events.ViewChanged("nodes", live=True))
    sim.run(60)
    assert sim.calls == []


def test_what_was_mended_meanwhile_evicts_nobody(sim):
    sim.run(60)
    sim.set_taints("n1", [])
    sim.feed(events.ViewChanged("nodes", live=True))
    sim.run(120)
    assert sim.calls == []

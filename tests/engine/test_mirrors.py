"""The machine keeps labels of nodes in step with the values of taints that have `placement`."""

from typing import Any

import pytest

from engine.rig import Rig
from simulated import policy
from taintwarden.engine.machine import WriteOutcome, commands, events
from taintwarden.engine.model import Policy

SLA = "value.taintwarden.io/sla"
EFFECT = "effect.taintwarden.io/sla"
NOT_THERE = {EFFECT: "None"}


def placing(name: str = "p", *, key: str = "sla", **spec: Any) -> Policy:
    return policy(name, taints=[{"key": key, "placement": True, "effects": ["NoExecute", "NoSchedule"]}], **spec)


def written(rig: Rig) -> list[tuple[str, dict[str, str | None]]]:
    return [(command.node, command.labels) for command in rig.take(commands.SaveLabels)]


def mirrored(rig: Rig, outcome: WriteOutcome = WriteOutcome.DONE) -> None:
    """The write of a node's labels that is under way ended."""
    order = next(one for one in rig.ordered if isinstance(one, commands.SaveLabels))
    rig.ordered.remove(order)
    rig.written(order, outcome)


def test_value_of_a_new_taint_is_written():
    rig = Rig(placing())
    rig.node("n1", "sla=950")
    assert written(rig) == [("n1", {SLA: "950", "version.taintwarden.io/sla": "9500000000000001"})]


def test_taint_that_no_placement_selects_is_left_alone():
    rig = Rig(policy())
    rig.node("n1", "sla=950")
    assert written(rig) == []


def test_other_labels_of_the_node_are_not_touched():
    rig = Rig(placing())
    rig.node("n1", "sla=x", labels={"zone": "a"})
    assert written(rig) == [("n1", {SLA: "x"})]


def test_changed_value_is_written():
    rig = Rig(placing())
    rig.node("n1", "sla=x", labels={SLA: "y"})
    assert written(rig) == [("n1", {SLA: "x"})]


def test_label_goes_with_the_taint():
    rig = Rig(placing())
    rig.node("n1", labels={SLA: "x", "zone": "a"})
    assert written(rig) == [("n1", {SLA: None, **NOT_THERE})]


def test_label_comes_with_the_taint():
    rig = Rig(placing())
    rig.node("n1", "sla=x", labels=NOT_THERE)
    assert written(rig) == [("n1", {SLA: "x", EFFECT: None})]


def test_labels_that_are_right_are_not_written():
    rig = Rig(placing())
    rig.node("n1", "sla=x", labels={SLA: "x"})
    assert written(rig) == []


def test_label_that_somebody_removed_comes_back():
    rig = Rig(placing())
    rig.node("n1", "sla=x", labels={SLA: "x"})
    rig.node("n1", "sla=x")
    assert written(rig) == [("n1", {SLA: "x"})]


def test_only_one_write_of_a_node_is_under_way():
    rig = Rig(placing())
    rig.node("n1", "sla=x")
    rig.node("n1", "sla=y")
    assert written(rig) == [("n1", {SLA: "x"})]


def test_what_changed_during_a_write_is_written_after_it():
    rig = Rig(placing())
    rig.node("n1", "sla=x")
    rig.node("n1", "sla=y")
    rig.out = []
    mirrored(rig)
    assert written(rig) == [("n1", {SLA: "y"})]


def test_label_that_is_being_written_is_removed_when_its_taint_went_meanwhile():
    rig = Rig(placing())
    rig.node("n1", "sla=x")
    rig.node("n1")
    rig.out = []
    mirrored(rig)
    assert written(rig) == [("n1", {SLA: None, **NOT_THERE})]


def test_what_was_written_is_not_written_again_before_the_stream_shows_it():
    rig = Rig(placing())
    rig.node("n1", "sla=x")
    rig.out = []
    mirrored(rig)
    assert written(rig) == []


def test_refused_write_is_tried_again_much_later():
    rig = Rig(placing())
    rig.node("n1", "sla=x")
    mirrored(rig, WriteOutcome.REFUSED)
    rig.out = []
    rig.node("n1", "sla=x", labels={"changed": "too"})
    rig.advance(20)
    assert written(rig) == []
    rig.advance(20)
    assert written(rig) == [("n1", {SLA: "x"})]


def test_other_labels_are_what_is_tried_after_a_refused_write():
    rig = Rig(placing())
    rig.node("n1", "sla=x")
    mirrored(rig, WriteOutcome.REFUSED)
    rig.out = []
    rig.node("n1", "sla=y")
    rig.advance(40)
    assert written(rig) == [("n1", {SLA: "y"})]


def test_new_leader_tries_what_was_refused():
    rig = Rig(placing())
    rig.node("n1", "sla=x")
    mirrored(rig, WriteOutcome.REFUSED)
    rig.feed(events.LeadershipChanged(leading=False))
    rig.out = []
    rig.feed(events.LeadershipChanged(leading=True))
    rig.wake()
    assert written(rig) == [("n1", {SLA: "x"})]


def test_follower_writes_nothing():
    rig = Rig(placing(), leading=False)
    rig.node("n1", "sla=x")
    assert written(rig) == []


@pytest.mark.parametrize(("mode", "labels"), [("Enforce", [{SLA: "x"}]), ("Paused", [{SLA: "x"}]), ("DryRun", [])])
def test_rehearsing_policy_writes_nothing(mode, labels):
    rig = Rig(placing(mode=mode))
    rig.node("n1", "sla=x")
    assert [wanted for _, wanted in written(rig)] == labels


def test_labels_go_with_the_policy():
    rig = Rig(placing())
    rig.node("n1", "sla=x", labels={SLA: "x"})
    rig.change(policy())
    assert written(rig) == [("n1", {SLA: None})]


def test_node_on_which_the_policy_evicts_nobody_is_labelled_too():
    rig = Rig(placing(nodeSelector={"matchLabels": {"pool": "spot"}}))
    rig.node("n1", "sla=x")
    assert written(rig) == [("n1", {SLA: "x"})]


def test_two_policies_place_by_a_key_each():
    rig = Rig(placing("p"), placing("q", key="cni"))
    rig.node("n1", "sla=x", "cni=y")
    assert written(rig) == [("n1", {SLA: "x", "value.taintwarden.io/cni": "y"})]


def test_another_node_of_the_same_name_is_labelled_afresh():
    rig = Rig(placing())
    rig.node("n1", "sla=x")
    rig.out = []
    rig.node("n1", "sla=x", uid="another")
    assert written(rig) == [("n1", {SLA: "x"})]


def test_answer_about_a_node_that_is_gone_changes_nothing():
    rig = Rig(placing())
    rig.node("n1", "sla=x")
    rig.feed(events.NodeGone("n1"))
    rig.out = []
    mirrored(rig)
    assert written(rig) == []


def test_what_labels_cannot_say_is_told_once():
    rig = Rig(placing())
    rig.node("n1", "sla=900", "sla=990:NoSchedule")
    rig.node("n1", "sla=900", "sla=990:NoSchedule")
    told = rig.take(commands.NotMirrored)
    assert [(notice.node, notice.subject.key) for notice in told] == [("n1", "sla")]


def test_labels_are_written_before_pods_are_evicted():
    rig = Rig(placing())
    rig.node("n1", labels=NOT_THERE)
    rig.pod("a")
    rig.out = []
    rig.node("n1", "sla=x", labels=NOT_THERE)
    kinds = [type(command) for command in rig.out]
    assert kinds.index(commands.SaveLabels) < kinds.index(commands.Evict)


DRIVER = "example.com/driver"
NUMBER = "example.com.label-version.taintwarden.io/driver"


def naming(*keys: str, **spec: Any) -> Policy:
    return policy(taints=[{"key": "other"}], versionLabels=list(keys), **spec)


def test_version_in_a_label_is_repeated_as_a_number():
    rig = Rig(naming(DRIVER))
    rig.node("n1", labels={DRIVER: "v3.27.2"})
    assert written(rig) == [("n1", {NUMBER: "30027000000021"})]


def test_number_follows_the_label():
    rig = Rig(naming(DRIVER))
    rig.node("n1", labels={DRIVER: "v3.27.2", NUMBER: "30027000000021"})
    rig.node("n1", labels={DRIVER: "v3.28.0", NUMBER: "30027000000021"})
    assert written(rig) == [("n1", {NUMBER: "30028000000001"})]


@pytest.mark.parametrize("labels", [{}, {DRIVER: "latest"}])
def test_number_goes_with_the_version(labels):
    rig = Rig(naming(DRIVER))
    rig.node("n1", labels={**labels, NUMBER: "30027000000021"})
    assert written(rig) == [("n1", {NUMBER: None})]


@pytest.mark.parametrize(("value", "reason"), [("latest", "it is no version"), ("1.10000.0", "too many digits")])
def test_label_that_no_number_can_repeat_is_told(value, reason):
    rig = Rig(naming(DRIVER))
    rig.node("n1", labels={DRIVER: value})
    [told] = rig.take(commands.NotMirrored)
    assert str(told.subject) == f"{DRIVER}={value}"
    assert reason in told.reason


def test_rehearsing_policy_repeats_no_version():
    rig = Rig(naming(DRIVER, mode="DryRun"))
    rig.node("n1", labels={DRIVER: "v3.27.2"})
    assert written(rig) == []

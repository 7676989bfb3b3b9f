"""The machine keeps labels of nodes in step with the values of taints that have `placement`."""

import itertools
from typing import Any

import pytest

from engine.rig import Rig
from simulated import policy
from taintwarden.engine.machine import WriteOutcome, commands, events
from taintwarden.engine.model import Policy
from taintwarden.engine.placement import neutral_labels
from work import steps

SLA = "value.taintwarden.io/sla"
NUMBER_OF_950 = "9500000000000001"
ORDER_OF_950 = "4610400139578703873"
NOT_THERE = neutral_labels(["sla"])


def says(value: str, key: str = "sla") -> dict[str, str]:
    """The labels of a value that is neither a number nor a version."""
    return {f"value.taintwarden.io/{key}": value, f"value-or-max.taintwarden.io/{key}": value}


def instead(value: str) -> dict[str, str | None]:
    """The same where the node had no such taint before."""
    return {**dict.fromkeys(NOT_THERE), **says(value)}


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
    assert written(rig) == [
        (
            "n1",
            {
                **says("950"),
                "value-or-min.taintwarden.io/sla": "950",
                "version.taintwarden.io/sla": NUMBER_OF_950,
                "version-or-min.taintwarden.io/sla": NUMBER_OF_950,
                "order.taintwarden.io/sla": ORDER_OF_950,
            },
        )
    ]


def test_taint_that_no_placement_selects_is_left_alone():
    rig = Rig(policy())
    rig.node("n1", "sla=950")
    assert written(rig) == []


WRITTEN = {
    "other labels of the node are not touched": ("x", {"zone": "a"}, says("x")),
    "a changed value is written": ("x", says("y"), says("x")),
    "a label goes with the taint": (None, {**says("x"), "zone": "a"}, {SLA: None, **NOT_THERE}),
    "a label comes with the taint": ("x", NOT_THERE, instead("x")),
    "labels that are right are not written": ("x", says("x"), None),
}


@pytest.mark.parametrize(("value", "labels", "expected"), WRITTEN.values(), ids=WRITTEN)
def test_labels_follow_the_taint(value, labels, expected):
    rig = Rig(placing())
    rig.node("n1", *([f"sla={value}"] if value else []), labels=labels)
    assert written(rig) == ([] if expected is None else [("n1", expected)])


def test_label_that_somebody_removed_comes_back():
    rig = Rig(placing())
    rig.node("n1", "sla=x", labels=says("x"))
    rig.node("n1", "sla=x")
    assert written(rig) == [("n1", says("x"))]


def test_only_one_write_of_a_node_is_under_way():
    rig = Rig(placing())
    rig.node("n1", "sla=x")
    rig.node("n1", "sla=y")
    assert written(rig) == [("n1", says("x"))]


def test_what_changed_during_a_write_is_written_after_it():
    rig = Rig(placing())
    rig.node("n1", "sla=x")
    rig.node("n1", "sla=y")
    rig.out = []
    mirrored(rig)
    assert written(rig) == [("n1", says("y"))]


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
    assert written(rig) == [("n1", says("x"))]


def test_other_labels_are_what_is_tried_after_a_refused_write():
    rig = Rig(placing())
    rig.node("n1", "sla=x")
    mirrored(rig, WriteOutcome.REFUSED)
    rig.out = []
    rig.node("n1", "sla=y")
    rig.advance(40)
    assert written(rig) == [("n1", says("y"))]


def test_new_leader_tries_what_was_refused():
    rig = Rig(placing())
    rig.node("n1", "sla=x")
    mirrored(rig, WriteOutcome.REFUSED)
    rig.feed(events.LeadershipChanged(leading=False))
    rig.out = []
    rig.feed(events.LeadershipChanged(leading=True))
    rig.wake()
    assert written(rig) == [("n1", says("x"))]


def test_follower_writes_nothing():
    rig = Rig(placing(), leading=False)
    rig.node("n1", "sla=x")
    assert written(rig) == []


@pytest.mark.parametrize(
    ("spec", "labels"),
    [({}, [says("x")]), ({"paused": True}, [says("x")]), ({"mode": "DryRun"}, [])],
)
def test_rehearsing_policy_writes_nothing(spec, labels):
    rig = Rig(placing(**spec))
    rig.node("n1", "sla=x")
    assert [wanted for _, wanted in written(rig)] == labels


def test_node_on_which_the_policy_evicts_nobody_is_labelled_too():
    rig = Rig(placing(nodeSelector={"matchLabels": {"pool": "spot"}}))
    rig.node("n1", "sla=x")
    assert written(rig) == [("n1", says("x"))]


def test_two_policies_place_by_a_key_each():
    rig = Rig(placing("p"), placing("q", key="cni"))
    rig.node("n1", "sla=x", "cni=y")
    assert written(rig) == [("n1", {**says("x"), **says("y", "cni")})]


def test_another_node_of_the_same_name_is_labelled_afresh():
    rig = Rig(placing())
    rig.node("n1", "sla=x")
    rig.out = []
    rig.node("n1", "sla=x", uid="another")
    assert written(rig) == [("n1", says("x"))]


def test_labels_that_failed_to_be_written_are_not_tried_again_when_the_value_is_back():
    rig = Rig(placing())
    rig.node("n1", "sla=x", labels=says("y"))
    mirrored(rig, WriteOutcome.FAILED)
    rig.node("n1", "sla=y", labels=says("y"))
    rig.out = []
    rig.advance(60)
    assert written(rig) == []


def test_what_labels_of_another_node_of_the_same_name_cannot_say_is_told_again():
    rig = Rig(placing())
    for uid in ("first", "second"):
        rig.out = []
        rig.node("n1", "sla=900", "sla=990:NoSchedule", uid=uid)
        assert [one.node_uid for one in rig.take(commands.NotMirrored)] == [uid]


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


# -- where another client changes labels -----------------------------------------------------------------------------


class Rival:
    """Another client that changes a label whenever it sees that the operator wrote it."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.writes: list[float] = []
        self.notices: list[commands.LabelsContested] = []

    def fight(self, seconds: float) -> None:
        end = self.rig.monotonic + seconds
        while self.rig.monotonic < end:
            self.notices += [one for one in self.rig.out if isinstance(one, commands.LabelsContested)]
            self.rig.out = []
            for order in [one for one in self.rig.ordered if isinstance(one, commands.SaveLabels)]:
                self.writes.append(self.rig.monotonic)
                self.rig.ordered.remove(order)
                self.rig.written(order)
                self.rig.node("n1", "sla=x", labels=says("theirs"))
            self.rig.advance(0.25)


def test_labels_that_another_client_keeps_changing_are_written_later_each_time():
    rig = Rig(placing())
    rig.node("n1", "sla=x")
    rival = Rival(rig)
    rival.fight(6)
    assert len(rival.writes) <= 7
    rival.fight(3_600)
    assert len(rival.writes) <= 30
    waits = [later - earlier for earlier, later in itertools.pairwise(rival.writes)]
    assert max(waits) <= 300 * 1.2 + 1


def test_a_change_that_the_stream_delivers_before_the_answer_is_corrected():
    """No other event of the node may come for minutes."""
    rig = Rig(placing())
    rig.node("n1", "sla=x")
    order = next(one for one in rig.ordered if isinstance(one, commands.SaveLabels))
    stored, changed = rig.version(), rig.version()
    rig.node("n1", "sla=x", labels=says("theirs"), version=changed)
    rig.out = []
    rig.feed(events.Written(order, WriteOutcome.DONE, stored))
    rig.wake()
    assert written(rig) == [("n1", says("x"))]


def test_it_is_told_what_is_changed_and_when_it_is_written_again():
    rig = Rig(placing())
    rig.node("n1", "sla=x")
    rival = Rival(rig)
    rival.fight(2)
    first = rival.notices[0]
    assert (first.node, first.number, first.labels) == ("n1", 4, tuple(sorted(says("x"))))
    assert 0.8 <= first.after <= 1.2


def test_a_label_that_is_changed_once_is_corrected_at_once():
    rig = Rig(placing())
    rig.node("n1", "sla=x")
    for _ in range(3):
        rig.answer(commands.SaveLabels)
        rig.out = []
        rig.node("n1", "sla=x", labels=says("theirs"))
        assert written(rig) == [("n1", says("x"))]


def test_a_value_that_changes_often_is_no_fight():
    rig = Rig(placing())
    for number in range(20):
        rig.out = []
        rig.node("n1", f"sla=x{number % 2}", labels=says("x1") if number else {})
        assert len(written(rig)) <= 1
        for _ in [one for one in rig.ordered if isinstance(one, commands.SaveLabels)]:
            rig.answer(commands.SaveLabels)
    assert rig.take(commands.LabelsContested) == []


def test_a_taint_that_changes_meanwhile_is_written_at_once():
    rig = Rig(placing())
    rig.node("n1", "sla=x")
    Rival(rig).fight(60)
    rig.out = []
    rig.node("n1", "sla=y", labels=says("theirs"))
    assert written(rig) == [("n1", says("y"))]


def test_a_rival_that_gives_up_is_forgotten():
    rig = Rig(placing())
    rig.node("n1", "sla=x")
    Rival(rig).fight(60)
    rig.advance(120, 1.0)
    rig.answer(commands.SaveLabels)
    rig.advance(2_000, 10.0)
    rig.out = []
    rig.node("n1", "sla=x", labels=says("theirs"))
    assert written(rig) == [("n1", says("x"))]


@pytest.mark.parametrize("gone", [False, True], ids=["they are right", "the node is gone"])
def test_labels_need_not_be_compared_later_when(gone):
    rig = Rig(placing())
    rig.node("n1", "sla=x")
    Rival(rig).fight(60)
    assert rig.machine._mirroring.next_at() is not None
    if gone:
        rig.feed(events.NodeGone("n1"))
    else:
        rig.node("n1", "sla=x", labels=says("x"))
    assert rig.machine._mirroring.next_at() is None


def test_labels_of_another_node_of_the_same_name_are_corrected_at_once():
    rig = Rig(placing())
    rig.node("n1", "sla=x")
    Rival(rig).fight(60)
    rig.node("n1", "sla=x", labels=says("x"))
    rig.out = []
    rig.node("n1", "sla=x", labels=says("theirs"), uid="another")
    assert written(rig) == [("n1", says("x"))]


def test_a_new_leader_corrects_at_once():
    rig = Rig(placing())
    rig.node("n1", "sla=x")
    Rival(rig).fight(60)
    rig.feed(events.LeadershipChanged(leading=False))
    rig.out = []
    rig.feed(events.LeadershipChanged(leading=True))
    rig.wake()
    assert written(rig) == [("n1", says("x"))]


# -- where placement has ended ---------------------------------------------------------------------------------------


def ended() -> Policy:
    """A policy that names the key, and does not place by it."""
    return policy(taints=[{"key": "sla"}])


@pytest.mark.parametrize("now", [ended(), placing(mode="DryRun")])
def test_where_placement_has_ended_labels_say_that_there_is_no_taint(now):
    """The affinity of a pod that runs then holds, whatever it requires."""
    rig = Rig(placing())
    rig.node("n1", "sla=x", labels=says("x"))
    rig.change(now)
    assert written(rig) == [("n1", {SLA: None, **NOT_THERE})]


def test_labels_of_a_key_that_no_policy_names_stay_as_they_are():
    rig = Rig(placing(), placing("q", key="other"))
    rig.node("n1", "sla=x", labels={**says("x"), **neutral_labels(["other"])})
    rig.change(placing("q", key="other"))
    rig.node("n1", "sla=y", labels={**says("x"), **neutral_labels(["other"])})
    assert written(rig) == []


def test_a_write_in_progress_about_a_key_that_no_policy_names_any_more_is_not_undone():
    rig = Rig(placing(), placing("q", key="other"))
    rig.node("n1", "sla=x")
    rig.change(placing("q", key="other"))
    rig.out = []
    mirrored(rig)
    assert [label for _, labels in written(rig) for label in labels if label.endswith("/sla")] == []


@pytest.mark.parametrize("is_answered", [True, False])
def test_what_was_written_counts_before_the_stream_shows_it(is_answered):
    """A pod may have been placed by it already."""
    rig = Rig(placing())
    rig.node("n1", "sla=x")
    if is_answered:
        mirrored(rig)
    rig.out = []
    rig.change(ended())
    if not is_answered:
        mirrored(rig)
    assert written(rig) == [("n1", {SLA: None, **NOT_THERE})]


def test_labels_settle_although_the_stream_is_late():
    """Each write is seen two writes later. What is seen then is no reason to write the opposite."""
    names = ("n1", "n2", "n3")
    rig, stored, stream = Rig(placing()), {name: dict[str, str]() for name in names}, list[tuple[str, int]]()
    for name in names:
        rig.node(name, "sla=x")
    rig.change(ended())
    writes, versions = 0, dict[int, dict[str, str]]()
    for _ in range(20):
        for order in [one for one in rig.ordered if isinstance(one, commands.SaveLabels)]:
            changed = stored[order.node] | order.labels
            stored[order.node] = {label: value for label, value in changed.items() if value is not None}
            rig.ordered.remove(order)
            rig.written(order)
            versions[rig.newest_version] = stored[order.node]
            stream.append((order.node, rig.newest_version))
            writes += 1
        if len(stream) > 2:
            name, version = stream.pop(0)
            rig.node(name, "sla=x", labels=versions[version], version=version)
    assert stored == dict.fromkeys(names, NOT_THERE)
    assert writes == 2 * len(names)


def test_labels_come_back_with_the_policy():
    rig = Rig(ended())
    rig.node("n1", "sla=x", labels=NOT_THERE)
    rig.change(placing())
    assert written(rig) == [("n1", instead("x"))]


def test_an_operator_that_was_away_reads_from_nodes_what_was_placed():
    rig = Rig(ended(), synced=False)
    rig.node("n1", "sla=x", labels=says("x"))
    rig.feed(events.Synced())
    rig.wake()
    assert written(rig) == [("n1", {SLA: None, **NOT_THERE})]


@pytest.mark.parametrize("now", [ended(), placing(mode="DryRun")])
def test_a_node_without_labels_gets_none_where_placement_has_ended(now):
    rig = Rig(now)
    rig.node("n1", labels=NOT_THERE)
    rig.node("n2", "sla=x")
    assert written(rig) == []


def test_labels_that_were_removed_do_not_come_back():
    rig = Rig(ended())
    rig.node("n1", labels=NOT_THERE)
    rig.node("n1")
    assert written(rig) == []


def test_what_a_kubelet_invents_costs_nothing():
    """It writes any number of labels on its own node. Only the keys that policies name are looked at."""
    rig = Rig(placing())
    rig.node("n1", labels=NOT_THERE)
    invented = NOT_THERE | neutral_labels(f"k{number}" for number in range(4_000))
    few = steps(lambda: rig.node("n1", "other=1", labels=NOT_THERE))
    many = steps(lambda: rig.node("n1", "other=2", labels=invented))
    assert written(rig) == []
    assert many < few + 100


def test_numbers_of_versions_follow_while_a_policy_lists_the_label():
    """A volume may name them, whose affinity never changes."""
    rig = Rig(naming(DRIVER))
    rig.node("n1", labels={DRIVER: "v3.27.2", NUMBER: "30027000000021"})
    rig.change(naming(DRIVER, mode="DryRun"))
    rig.node("n1", labels={DRIVER: "v3.28.0", NUMBER: "30027000000021"})
    assert written(rig) == [("n1", {NUMBER: "30028000000001"})]


def test_numbers_of_versions_stay_as_they_are_when_no_policy_lists_the_label():
    rig = Rig(naming(DRIVER))
    rig.node("n1", labels={DRIVER: "v3.27.2", NUMBER: "30027000000021"})
    rig.change(policy())
    rig.node("n1", labels={DRIVER: "v3.28.0", NUMBER: "30027000000021"})
    assert written(rig) == []


@pytest.mark.parametrize("mode", ["Enforce", "DryRun"])
def test_what_no_number_can_repeat_is_reported_only_where_a_policy_enforces_it(mode):
    rig = Rig(naming(DRIVER, mode=mode))
    rig.node("n1", labels={DRIVER: "latest", NUMBER: "30027000000021"})
    assert len(rig.take(commands.NotMirrored)) == (mode == "Enforce")

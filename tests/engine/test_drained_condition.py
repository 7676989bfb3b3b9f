"""The condition ``taintwarden.io/Drained``: what it says, when it is written, and when it must not be."""

from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from engine.rig import Rig, exists, gt, limited
from simulated import policy
from taintwarden.engine import commands, events
from taintwarden.engine.events import WriteOutcome
from taintwarden.engine.machine.conditions import DrainedConditions
from taintwarden.engine.model import Node, NodeCondition, Pod, Profile, SourceKind, SourceValue, StoredPod, ValueSource
from taintwarden.engine.policy import Mode, Window
from taintwarden.engine.selectors import LabelSelector

SETTLED = 6.0
"""Seconds after which a node was written since its last change, if it had to be."""


class Bench(Rig):
    """An API server that stores conditions, and pods that leave when a test says so."""

    def __init__(self, *policies: Any, **more: Any) -> None:
        self.delivers = True
        self.saved: list[tuple[float, commands.SaveCondition]] = []
        self.stored: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        super().__init__(*(policies or (limited(),)), drained_condition=True, **more)
        self.feed(events.NamespaceSeen("shop", {}))

    def taint(self, node: str = "n1", *taints: str, **more: Any) -> None:
        """The node has these taints, and the condition that is stored."""
        known = self.stored.get(node)
        pairs, uid = self.make_taints(*taints), more.get("uid", f"uid-{node}")
        seen = Node(node, uid, {}, pairs, self.version(), drained=known and known.drained)
        self.stored[node] = seen
        if self.delivers:
            self.process(events.NodeSeen(seen))

    def run(self, name: str, *tolerations: Any, **more: Any) -> None:
        self.pods[name] = self.pod(name, *tolerations, **more)

    def read(self, node: str = "n1") -> list[StoredPod]:
        """A fresh read of a node's pods."""
        return [StoredPod(one.uid, one.resource_version) for one in self.pods.values() if one.node == node]

    def serve(self, *, outcome: WriteOutcome = WriteOutcome.DONE) -> None:
        """Answer the writes that were issued, as the effector and the API server do."""
        for order in [one for one in self.ordered if isinstance(one, commands.SaveCondition)]:
            self.ordered.remove(order)
            stored = self.stored[order.node]
            is_read = not order.says_drained or self.machine.knows_pods(order, self.read(order.node))
            if not (is_read and self.machine.is_still_valid(order, self.now)):
                self.process(events.Written(order, WriteOutcome.OUTDATED if not is_read else WriteOutcome.FAILED))
            elif outcome is not WriteOutcome.DONE or order.version != stored.resource_version:
                failed = outcome if outcome is not WriteOutcome.DONE else WriteOutcome.OUTDATED
                self.process(events.Written(order, failed))
            else:
                self.store(order, stored)

    def store(self, order: commands.SaveCondition, stored: Node) -> None:  # type: ignore[override]
        self.saved.append((self.monotonic, order))
        self.stored[order.node] = new = replace(stored, drained=order.condition, resource_version=self.version())
        self.process(events.Written(order, WriteOutcome.DONE, new.resource_version))
        if self.delivers:
            self.process(events.NodeSeen(new))

    @property
    def conditions(self) -> DrainedConditions:
        """For what no view shows: that nothing is left behind."""
        found = self.machine._drained
        assert found is not None
        return found

    def pass_time(self, seconds: float = SETTLED) -> None:
        for _ in range(int(seconds * 4)):
            self.serve()
            self.advance(0.25)
        self.serve()

    def said(self, node: str = "n1") -> tuple[str, str] | None:
        """Status and reason of the stored condition."""
        found = self.stored[node].drained
        return None if found is None else (found.status, found.reason)

    def message(self, node: str = "n1") -> str:
        found = self.stored[node].drained
        assert found is not None
        return found.message


def writes(bench: Bench) -> list[commands.SaveCondition]:
    """Those that are in progress."""
    return [one for one in bench.ordered if isinstance(one, commands.SaveCondition)]


def in_use(**more: Any) -> Bench:
    """A node whose only pod has to leave after an hour."""
    bench = Bench(**more)
    bench.run("a", gt(violation_grace_seconds=3_600))
    bench.taint("n1", "sla=0")
    bench.pass_time()
    return bench


def drained() -> Bench:
    bench = in_use()
    bench.pods.pop("a")
    bench.gone("a")
    bench.pass_time()
    assert bench.said() == ("True", "Drained")
    return bench


# -- what it says -----------------------------------------------------------------------------------------------------


def test_a_pod_that_has_to_leave_makes_it_false():
    bench = in_use()
    assert bench.said() == ("False", "PodsLeave")
    assert bench.message() == "1 pod has to leave; taints: sla=0:NoExecute"


def test_a_pod_that_terminates_makes_it_false():
    bench = in_use()
    del bench.pods["a"]
    bench.gone("a", until=bench.wall + 60)
    bench.pass_time()
    assert bench.said() == ("False", "PodsLeave")
    assert bench.message() == "1 pod terminates; taints: sla=0:NoExecute"


def test_a_pod_that_does_not_end_is_stuck():
    bench = in_use()
    del bench.pods["a"]
    bench.gone("a", until=bench.wall + 10)
    bench.pass_time(32)
    assert bench.said() == ("False", "Stuck")
    assert bench.message() == "1 pod terminates (1 stuck); taints: sla=0:NoExecute"


def test_without_a_pod_that_has_to_leave_it_is_true():
    assert drained().message() == "no pod has to leave or leaves; taints: sla=0:NoExecute"


def test_a_pod_that_tolerates_the_taint_does_not_count():
    bench = Bench()
    bench.run("a", exists())
    bench.taint("n1", "sla=0")
    bench.pass_time()
    assert bench.said() == ("True", "Drained")


def test_a_budget_makes_it_blocked():
    bench = Bench()
    bench.budget(allowed=0)
    bench.run("a")
    bench.taint("n1", "sla=0")
    bench.pass_time()
    assert bench.said() == ("False", "Blocked")
    assert bench.message() == "1 pod has to leave (1 blocked); taints: sla=0:NoExecute"


def test_a_paused_policy_makes_it_held():
    bench = in_use()
    bench.change(replace(limited(), mode=Mode.PAUSED))
    bench.pass_time()
    assert bench.said() == ("False", "Held")


def test_a_window_makes_it_held():
    bench = Bench(replace(limited(), windows=(Window("0 0 1 1 *", 60),)))
    bench.run("a")
    bench.taint("n1", "sla=0")
    bench.pass_time()
    assert bench.said() == ("False", "Held")


@pytest.mark.parametrize("mode", [Mode.DRY_RUN, Mode.PAUSED])
def test_a_policy_in_dry_run_gives_no_condition_even_while_paused(mode):
    bench = Bench(replace(limited(), mode=mode, rehearses=True))
    bench.run("a")
    bench.taint("n1", "sla=0")
    bench.pass_time()
    assert not bench.saved


def test_an_untainted_node_has_none():
    bench = Bench()
    bench.run("a")
    bench.taint("n1")
    bench.pass_time()
    assert not bench.saved


def test_it_ends_with_the_taint():
    bench = drained()
    bench.taint("n1")
    bench.pass_time()
    assert bench.said() is None


def test_it_ends_with_the_policy():
    bench = in_use()
    bench.machine.step(events.PoliciesChanged(()), bench.now)
    bench.wake()
    bench.pass_time()
    assert bench.said() is None


def test_the_pods_of_all_policies_count():
    bench = Bench(policy("a", taints=[{"key": "sla"}]), policy("b", taints=[{"key": "gpu"}]))
    bench.run("a", exists("sla"), exists("gpu", toleration_seconds=3_600))
    bench.run("b", exists("sla"), exists("gpu"))
    bench.taint("n1", "gpu=0", "sla=0")
    bench.pass_time()
    assert bench.said() == ("False", "PodsLeave")
    assert bench.message() == "1 pod has to leave; taints: gpu=0:NoExecute, sla=0:NoExecute"


def test_taints_that_are_read_from_a_node_give_it_none():
    source = ValueSource(SourceKind.NODE_INFO, "kubeletVersion")
    bench = Bench(policy(taints=[{"key": "kubelet", "from": {"nodeInfo": "kubeletVersion"}}]))
    bench.process(events.NodeSeen(Node("n1", "uid-n1", {}, (), 1, values={source: SourceValue("v1")})))
    assert not writes(bench)


def test_a_pod_that_terminates_and_might_stay_does_not_count():
    bench = Bench()
    bench.run("a", exists())
    bench.taint("n1", "sla=0")
    del bench.pods["a"]
    bench.gone("a", until=bench.wall + 60)
    bench.pass_time()
    assert bench.said() == ("True", "Drained")


def test_a_wave_that_is_not_complete_is_not_held():
    bench = Bench(policy(limits={"guard": {"maxPercent": 50, "settleSeconds": 60}}))
    bench.run("a")
    bench.taint("n1", "sla=0")
    bench.pass_time(1)
    assert bench.said() == ("False", "PodsLeave")


@pytest.mark.parametrize(("taints", "end"), [(5, "t3=0:NoExecute, t4=0:NoExecute"), (6, "t4=0:NoExecute and 1 more")])
def test_of_many_taints_some_are_named(taints, end):
    bench = Bench()
    bench.taint("n1", *(f"t{number}=0" for number in range(taints)))
    bench.pass_time()
    assert bench.message().endswith(end)


def test_long_taints_are_shortened():
    bench = Bench()
    bench.taint("n1", *(f"{number}{'x' * 250}=0" for number in range(3)))
    bench.pass_time()
    assert len(bench.message()) <= 512


# -- when it is written -----------------------------------------------------------------------------------------------


def test_nothing_is_written_again_while_nothing_changes():
    bench = drained()
    written = len(bench.saved)
    bench.pass_time(60)
    bench.taint("n1", "sla=0")  # another version of the node, as its kubelet makes
    bench.pass_time(60)
    assert len(bench.saved) == written


def test_a_node_is_written_at_most_every_five_seconds():
    bench = in_use()
    for number in range(60):
        bench.run(f"p{number}", gt(violation_grace_seconds=3_600))
        bench.serve()
        bench.advance(0.25)
    bench.pass_time(10)
    times = [at for at, _ in bench.saved]
    assert len(times) == 5
    assert all(later - before >= 5.0 for before, later in pairwise(times))


def test_all_nodes_together_are_written_at_most_ten_times_a_second():
    bench = Bench()
    for number in range(60):
        bench.taint(f"n{number}", "sla=0")
    bench.pass_time(30)
    times = [at for at, _ in bench.saved]
    assert len(times) == 60
    assert all(later - before >= 0.1 for before, later in pairwise(times))


def test_true_is_withdrawn_before_others_are_written():
    bench = drained()
    for number in range(2, 60):
        bench.taint(f"n{number}", "sla=0")
    bench.run("late", gt(violation_grace_seconds=3_600))
    bench.pass_time(2)
    assert bench.said() == ("False", "PodsLeave")


def test_true_that_was_just_written_is_withdrawn_before_others_are_written():
    bench = Bench()
    bench.taint("n1", "sla=0")
    bench.serve()
    bench.run("late", gt(violation_grace_seconds=3_600))
    for number in range(2, 100):
        bench.taint(f"n{number}", "sla=0")
    bench.pass_time(5.5)
    assert bench.said() == ("False", "PodsLeave")


def test_few_writes_are_in_progress_at_once():
    bench = Bench()
    for number in range(20):
        bench.taint(f"n{number}", "sla=0")
    for _ in range(60):
        bench.monotonic += 0.5
        bench.feed(events.Tick())
    assert len(writes(bench)) == 4


def test_no_other_write_of_a_node_begins_before_the_last_one_has_ended():
    bench = Bench()
    bench.taint("n1", "sla=0")
    bench.run("a", gt(violation_grace_seconds=3_600))
    bench.advance(30)
    assert len(writes(bench)) == 1


def test_no_other_write_of_a_node_begins_before_the_stream_has_delivered_the_last_one():
    bench = Bench()
    bench.taint("n1", "sla=0")
    bench.delivers = False
    bench.serve()
    bench.run("a", gt(violation_grace_seconds=3_600))
    bench.advance(9)
    assert not writes(bench)
    bench.process(events.NodeSeen(bench.stored["n1"]))
    bench.advance(1)
    assert len(writes(bench)) == 1


def test_a_write_after_a_change_of_the_node_is_tried_again_soon():
    bench = Bench()
    bench.taint("n1", "sla=0")
    bench.serve(outcome=WriteOutcome.OUTDATED)
    bench.pass_time(3)
    assert bench.said() == ("True", "Drained")


def test_the_time_of_the_change_is_written_with_another_status_only():
    bench = in_use()
    bench.run("b", gt(violation_grace_seconds=3_600))
    bench.pass_time()
    assert [(order.changes_status, order.condition.reason) for _, order in bench.saved] == [
        (True, "PodsLeave"),
        (False, "PodsLeave"),
    ]
    assert bench.message() == "2 pods have to leave; taints: sla=0:NoExecute"


def test_without_leadership_nothing_is_written():
    bench = Bench(leading=False)
    bench.taint("n1", "sla=0")
    bench.pass_time()
    assert not bench.saved
    assert not bench.world.changed_nodes  # or the names of all nodes that ever were would stay


def test_a_new_leader_writes_only_what_differs():
    bench = drained()
    bench.saved.clear()
    bench.taint("n2", "sla=0")
    bench.feed(events.LeadershipChanged(leading=False), events.LeadershipChanged(leading=True, term=2))
    bench.pass_time(12)
    assert [order.node for _, order in bench.saved] == ["n2"]


def test_a_leader_that_leads_again_does_not_wait_for_the_answers_of_before():
    bench = empty()
    bench.ordered.clear()
    bench.feed(events.LeadershipChanged(leading=False), events.LeadershipChanged(leading=True, term=2))
    bench.pass_time()
    assert bench.said() == ("True", "Drained")


def test_a_condition_that_another_client_changes_is_written_again():
    bench = drained()
    wrong = NodeCondition("False", "Wrong", "")
    bench.stored["n1"] = other = replace(bench.stored["n1"], drained=wrong, resource_version=bench.version())
    bench.feed(events.NodeSeen(other))
    bench.pass_time()
    assert bench.said() == ("True", "Drained")


def test_a_refused_write_is_tried_again_a_minute_later():
    bench = Bench()
    bench.taint("n1", "sla=0")
    bench.serve(outcome=WriteOutcome.REFUSED)
    bench.pass_time(59)
    assert not bench.saved
    bench.pass_time(2)
    assert bench.said() == ("True", "Drained")


def test_a_node_that_is_gone_is_forgotten():
    bench = drained()
    bench.feed(events.NodeGone("n1"))
    bench.pass_time(60)
    assert not any([*bench.conditions._rests_until, *bench.conditions._unseen])
    bench.saved.clear()
    bench.stored["n1"] = replace(bench.stored["n1"], drained=None)
    bench.taint("n1", "sla=0", uid="other")
    bench.pass_time()
    assert [order.uid for _, order in bench.saved] == ["other"]


@pytest.mark.parametrize("outcome", [WriteOutcome.GONE, WriteOutcome.DONE])
def test_a_node_that_is_deleted_while_it_is_written_is_forgotten_when_the_write_ends(outcome):
    bench = Bench()
    bench.taint("n1", "sla=0")
    bench.advance(SETTLED)
    [order] = writes(bench)
    bench.process(events.NodeGone("n1"))
    bench.written(order, outcome)
    bench.advance(60)
    assert not any([*bench.conditions._rests_until, *bench.conditions._unseen, *bench.conditions._writing])


def test_a_restore_of_the_store_does_not_end_the_writes():
    bench = in_use()
    bench.delivers = False
    bench.gone("a")
    del bench.pods["a"]
    bench.pass_time()
    assert bench.said() == ("True", "Drained")  # the stream never delivers it
    bench.delivers = True
    before = replace(bench.stored["n1"], drained=None, resource_version=1)
    bench.stored["n1"] = before
    bench.feed(events.NodeSeen(before, listed=True), events.NodesListed(frozenset(["n1"]), 1))
    bench.pass_time(12)
    assert bench.said() == ("True", "Drained")


# -- when True must not be written ------------------------------------------------------------------------------------


def empty() -> Bench:
    """The write of True to a node is issued."""
    bench = Bench()
    bench.taint("n1", "sla=0")
    assert any(isinstance(one, commands.SaveCondition) for one in bench.ordered)
    return bench


def test_a_pod_that_the_stream_has_not_delivered_keeps_it_from_being_true():
    bench = empty()
    bench.pods["b"] = bench.make_pod("b", gt(violation_grace_seconds=3_600))
    bench.pass_time(30)
    assert bench.said() is None
    bench.process(events.PodSeen(bench.pods["b"]))
    bench.pass_time()
    assert bench.said() == ("False", "PodsLeave")


def test_another_version_of_a_pod_keeps_it_from_being_true():
    bench = Bench()
    bench.run("a", exists())
    bench.taint("n1", "sla=0")
    bench.pods["a"] = replace(bench.pods["a"], resource_version=bench.version())
    bench.pass_time(30)
    assert bench.said() is None


def test_a_pod_that_the_stream_has_delivered_since_it_was_read_is_known():
    bench = Bench()
    bench.run("a", exists())
    bench.taint("n1", "sla=0")
    pod, order = bench.pods["a"], writes(bench)[0]
    versions = [pod.resource_version + more for more in (-1, 0, 1)]
    known = [bench.machine.knows_pods(order, [StoredPod(pod.uid, version)]) for version in versions]
    assert known == [True, True, False]


def test_a_terminating_pod_that_the_stream_has_not_delivered_keeps_it_from_being_true():
    bench = empty()
    order = next(one for one in bench.ordered if isinstance(one, commands.SaveCondition))
    assert not bench.machine.knows_pods(order, [StoredPod("uid-x", 1, terminates=True)])
    bench.feed(events.PodGone("uid-x", "n1", bench.wall + 60, bench.make_pod("x", exists())))
    assert bench.machine.knows_pods(order, [StoredPod("uid-x", 1, terminates=True)])


def test_a_pod_that_is_first_seen_while_it_terminates_withdraws_it():
    bench = drained()
    pod = bench.make_pod("b")
    bench.process(events.PodGone("uid-b", "n1", bench.wall + 60, pod))
    bench.pass_time()
    assert bench.said() == ("False", "PodsLeave")


def test_other_policies_end_the_write_until_all_pods_are_evaluated():
    bench = Bench()
    bench.run("b", exists())
    bench.taint("n1", "sla=0")
    [order] = writes(bench)
    bench.feed(events.PoliciesChanged((limited(), limited("q"))))
    assert not bench.machine.is_still_valid(order, bench.now)


def test_unknown_devices_keep_it_from_being_true():
    bench = Bench(policy(devices=[{"key": "*"}]))
    bench.run("b", exists())
    bench.taint("n1", "sla=0")
    bench.pass_time(30)
    assert bench.said() is None


def test_a_pod_of_an_unknown_namespace_keeps_it_from_being_true():
    bench = Bench()
    bench.run("a", exists(), namespace="new")
    bench.taint("n1", "sla=0")
    bench.pass_time(30)
    assert bench.said() is None


def test_a_pod_that_comes_while_true_is_written_ends_the_write():
    bench = empty()
    bench.run("b")
    bench.pass_time(1)
    assert bench.said() is None


def test_another_version_of_the_node_ends_the_write():
    bench = empty()
    bench.delivers = False
    bench.taint("n1", "sla=0", "gpu=0")
    bench.pass_time(30)
    assert bench.said() is None


def test_a_cut_off_stream_ends_the_write():
    bench = empty()
    bench.feed(events.ViewChanged("pods", live=False))
    bench.pass_time(30)
    assert bench.said() is None
    bench.feed(events.ViewChanged("pods", live=True))
    bench.pass_time()
    assert bench.said() == ("True", "Drained")


def test_a_loss_of_leadership_ends_the_write():
    bench = empty()
    bench.feed(events.LeadershipChanged(leading=False))
    bench.pass_time()
    assert not bench.saved


def test_a_pod_that_waits_to_be_evaluated_keeps_it_from_being_true():
    bench = Bench()
    bench.run("b", exists())
    bench.taint("n1", "sla=0")
    order = next(one for one in bench.ordered if isinstance(one, commands.SaveCondition))
    assert bench.machine.is_still_valid(order, bench.now)
    bench.feed(events.ProfileSeen(Profile("shop", "x", LabelSelector(), (exists(toleration_seconds=60),))))
    assert not bench.machine.is_still_valid(order, bench.now)

"""The status of policies: conditions that keep their times, counts, and one write for each change."""

import asyncio
import itertools
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from controller import GT_950, NOW, Clock
from kube.scripted import ScriptedClient, refusal
from simulated import policy
from taintwarden.controller.loop import LONGEST_SLEEP_SECONDS, Loop
from taintwarden.controller.status.status_writer import (
    PAUSE,
    PROFILES_PER_ROUND,
    REFRESH_SECONDS,
    REPORT_SECONDS,
    REST,
    StatusWriter,
    holds_seconds,
    in_turns,
)
from taintwarden.controller.stores.object_store import ObservedObject
from taintwarden.engine import events, rfc3339
from taintwarden.engine.commands import GuardReport
from taintwarden.engine.interning import Interner
from taintwarden.engine.machine import Machine, PolicyReport
from taintwarden.engine.machine.reports import CLAIMS_AT_ONCE
from taintwarden.engine.model import Node, Pod, Profile, Taint, Tolerations
from taintwarden.engine.records import GuardRecord
from taintwarden.engine.reported_status import ReportedStatus
from taintwarden.engine.selectors import LabelSelector, Requirement, SelectorOperator
from taintwarden.kube.errors import Unreachable
from taintwarden.telemetry.metrics import Metrics

pytestmark = pytest.mark.looptime

Json = dict[str, Any]


GUARDED = {"guard": {}, "zoneHealth": {"unhealthy": [{"key": "sla"}]}}


class Stage:
    """A machine with one policy, and the writer of its status."""

    def __init__(self, *answers: Any, synced: bool = True, cost: float = 0.0, **spec: Any) -> None:
        self.client = ScriptedClient(*answers, default=lambda _: {})
        self.clock = Clock()
        self.machine = Machine()
        self.loop = Loop(self.machine, self.clock, lambda _: None, lambda _: None)
        self.metrics = Metrics()
        self.observed = {"p": ObservedObject(1)}
        self.profiles: dict[str, ObservedObject] = {}
        self.leads = True
        self.interner = Interner()
        self.cpu_seconds = itertools.count(0.0, cost)
        self.writer = StatusWriter(
            self.client,
            self.machine.view,
            self.metrics,
            self.clock,
            self.observed,
            self.profiles,
            lambda: self.leads,
            self.loop,
            cpu=lambda: next(self.cpu_seconds),
        )
        self.step(events.PoliciesChanged((policy(**spec),)))
        self.step(events.LeadershipChanged(leading=True))
        self.step(events.NodeSeen(self.node("n1")))
        self.step(events.NodesReached(100))
        if synced:
            self.step(events.Synced())
        self.wake()

    def node(self, name: str, value: str = "", version: int = 1) -> Node:
        taints = ((Taint("sla", value), None),) if value else ()
        return Node(name, f"uid-{name}", {}, taints, version)

    def pod(self, name: str, node: str = "n1") -> Pod:
        shared = self.interner.pod_class("shop", {}, Tolerations((GT_950,)))
        return Pod(f"uid-{name}", name, node, shared, NOW - 100, 1)

    def step(self, event: Any) -> None:
        self.loop.feed(event)

    def wake(self) -> None:
        while self.machine.wake_after(self.clock()) == 0.0:
            self.step(events.Tick())

    async def run(self, seconds: float = 0.5, also: Callable[[], None] = lambda: None) -> list[Json]:
        """Let the writer run for a while, and return the statuses that it wrote."""
        before = len(self.client.calls)
        task = asyncio.create_task(self.writer.run())
        await asyncio.sleep(0.01)
        also()
        await asyncio.sleep(seconds)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return [call.body["status"] for call in self.client.calls[before:]]

    def gauge(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(name, labels)


def conditions(status: Json) -> dict[str, Json]:
    return {one["type"]: one for one in status["conditions"]}


# -- conditions -------------------------------------------------------------------------------------------------------


async def test_a_policy_without_pods_to_evict_is_idle():
    [status] = await Stage().run()
    told = conditions(status)
    assert {kind: (one["status"], one["reason"]) for kind, one in told.items()} == {
        "Accepted": ("True", "Valid"),
        "Ready": ("True", "InForce"),
        "Enforcing": ("True", "Enforcing"),
        "Progressing": ("False", "Idle"),
        "GuardTripped": ("False", "NoGuard"),
    }
    assert status["observedGeneration"] == 1
    assert {one["observedGeneration"] for one in told.values()} == {1}
    assert (status["selectedNodes"], status["pending"], status["nextDeadline"]) == (1, 0, None)


@pytest.mark.parametrize(
    ("spec", "reason", "message"),
    [
        ({"mode": "DryRun"}, "DryRun", "mode is DryRun: nothing is evicted"),
        ({"paused": True}, "Paused", "it is paused: nothing is evicted"),
        ({"mode": "DryRun", "paused": True}, "Paused", "it is paused: nothing is evicted"),
    ],
)
async def test_a_policy_that_does_not_enforce_has_the_reason(spec, reason, message):
    [status] = await Stage(**spec).run()
    enforcing = conditions(status)["Enforcing"]
    assert (enforcing["status"], enforcing["reason"], enforcing["message"]) == ("False", reason, message)


async def test_an_invalid_policy_with_a_valid_version_is_not_accepted_and_enforces():
    stage = Stage()
    stage.observed["p"] = ObservedObject(2, "spec.mode: wrong")
    [status] = await stage.run()
    told = conditions(status)
    assert (told["Accepted"]["status"], told["Accepted"]["reason"]) == ("False", "Invalid")
    assert told["Accepted"]["message"] == "spec.mode: wrong"
    assert told["Enforcing"]["status"] == "True"
    assert status["observedGeneration"] == 2


async def test_a_long_message_is_cut():
    stage = Stage()
    stage.observed["p"] = ObservedObject(1, "x" * 50_000)
    [status] = await stage.run()
    assert len(conditions(status)["Accepted"]["message"]) == 1024


# -- transitions ------------------------------------------------------------------------------------------------------

THEN = "2020-01-01T00:00:00Z"
TODAY = "2023-11-14T22:13:20Z"


async def test_a_restart_is_no_transition():
    stage = Stage()
    stage.observed["p"] = ObservedObject(1, conditions={"Accepted": ("True", THEN), "Progressing": ("True", THEN)})
    told = conditions((await stage.run())[0])
    assert told["Accepted"]["lastTransitionTime"] == THEN
    assert told["Progressing"]["lastTransitionTime"] == TODAY  # it is False now


@pytest.mark.parametrize(("problem", "at"), [("", TODAY), ("wrong", "2023-11-14T22:15:00Z")], ids=["stays", "turns"])
async def test_a_condition_has_a_new_time_only_when_its_status_changes(problem, at):
    stage = Stage()
    await stage.run()
    stage.clock.advance(100)
    stage.observed["p"] = ObservedObject(2, problem)
    [status] = await stage.run()
    assert conditions(status)["Accepted"]["lastTransitionTime"] == at


async def test_another_policy_of_the_same_name_has_times_of_its_own():
    stage = Stage()
    await stage.run()
    stage.clock.advance(100)
    del stage.observed["p"]
    await stage.run(REFRESH_SECONDS)
    stage.observed["p"] = ObservedObject(1)
    [status] = await stage.run()
    assert conditions(status)["Accepted"]["lastTransitionTime"] == "2023-11-14T22:15:00Z"


async def test_another_policy_of_the_same_name_gets_its_status_written():
    """The new policy has no status yet, even if it would be equal to that of the one before."""
    stage = Stage()
    await stage.run(REFRESH_SECONDS * 2, also=lambda: stage.observed.pop("p"))
    stage.observed["p"] = ObservedObject(1)
    assert len(await stage.run()) == 1


# -- counts -----------------------------------------------------------------------------------------------------------


def stage_with_pods(**spec: Any) -> Stage:
    stage = Stage(**({"timing": {"violationGraceSeconds": 60}} | spec))
    for name in "abc":
        stage.step(events.PodSeen(stage.pod(name)))
    stage.step(events.NodeSeen(stage.node("n1", "940", 2)))
    stage.step(events.NodeSeen(stage.node("n2", "980", 2)))
    stage.wake()
    return stage


async def test_pods_that_have_to_leave_are_counted_and_named():
    [status] = await stage_with_pods().run()
    assert (status["pending"], status["evictingNodes"], status["selectedNodes"]) == (3, 1, 2)
    assert status["nextDeadline"] == "2023-11-14T22:14:20Z"
    assert [one["name"] for one in status["nextPods"]] == ["a", "b", "c"]
    assert status["nextPods"][0] == {
        "namespace": "shop",
        "name": "a",
        "node": "n1",
        "taint": "sla=940:NoExecute",
        "deadline": "2023-11-14T22:14:20Z",
        "state": "Scheduled",
    }
    progressing = conditions(status)["Progressing"]
    assert (progressing["status"], progressing["reason"]) == ("True", "Pending")


async def test_paused_policy_reports_pods_that_would_be_due():
    stage = stage_with_pods(paused=True)
    [status] = await stage.run()
    assert (status["pending"], status["evictingNodes"]) == (3, 1)
    assert status["nextDeadline"] == "2023-11-14T22:14:20Z"
    assert conditions(status)["Progressing"]["message"] == (
        "paused, 3 pods would have to leave, the first at 2023-11-14T22:14:20Z"
    )
    stage.clock.advance(61)
    [status] = await stage.run()
    progressing = conditions(status)["Progressing"]
    assert (progressing["status"], progressing["reason"]) == ("False", "Paused")
    assert progressing["message"] == "paused, 3 pods would be due"


async def test_paused_policy_counts_no_pods_that_another_policy_acts_on():
    stage = stage_with_pods(paused=True)
    closer = policy(name="other", taints=[{"key": "sla"}])
    stage.step(events.PoliciesChanged((policy(paused=True), closer)))
    stage.wake()
    [status] = await stage.run()
    assert status["pending"] == 0


async def test_pods_held_by_an_invalid_value_are_counted():
    stage = Stage()
    stage.step(events.PodSeen(stage.pod("a")))
    stage.step(events.NodeSeen(stage.node("n1", "high", 2)))
    stage.wake()
    [status] = await stage.run()
    assert status["retained"] == 1
    assert status["invalidTaints"] == [{"node": "n1", "taint": "sla=high:NoExecute", "pods": 1}]


# -- how often ---------------------------------------------------------------------------------------------------------


async def rounds(stage: Stage, also: Callable[[], None] = lambda: None) -> int:
    """Number of times that pods are counted in two turns, with the call of `also` between them."""
    found, view = [], stage.machine.view
    count = view.report_in_slices
    view.report_in_slices = lambda at: (found.append(at), count(at))[1]  # type: ignore[method-assign]
    await stage.run(REFRESH_SECONDS * 1.5, also)
    return len(found)


async def test_pods_are_not_counted_again_while_nothing_happens():
    assert await rounds(stage_with_pods()) == 1


async def test_pods_are_not_counted_again_after_a_heartbeat_of_a_node():
    stage = stage_with_pods()

    def beat() -> None:
        stage.step(events.NodeSeen(stage.node("n1", "940", 3)))
        stage.step(events.NodesReached(300))

    assert await rounds(stage, beat) == 1


async def test_pods_are_counted_again_after_a_change():
    stage = stage_with_pods()
    assert await rounds(stage, lambda: stage.step(events.PodSeen(stage.pod("d")))) == 2


@pytest.mark.parametrize("is_paused", [False, True])
async def test_pods_are_counted_again_when_the_first_deadline_has_passed(is_paused):
    stage = stage_with_pods(paused=is_paused, timing={"violationGraceSeconds": 20})
    assert await rounds(stage, lambda: stage.clock.advance(19)) == 1
    assert await rounds(stage, lambda: stage.clock.advance(21)) == 2


async def test_pods_are_counted_again_after_a_minute_since_the_clock_may_have_been_set():
    stage = stage_with_pods(timing={"violationGraceSeconds": 600})
    assert await rounds(stage, lambda: stage.clock.advance(LONGEST_SLEEP_SECONDS - 1)) == 1
    assert await rounds(stage, lambda: stage.clock.advance(LONGEST_SLEEP_SECONDS)) == 2


async def test_pods_that_are_due_are_counted_in_each_turn():
    assert await rounds(stage_with_pods(paused=True, timing={"violationGraceSeconds": 0})) == 2


REPORT = PolicyReport(policy(), ReportedStatus())
TRIPPED = GuardReport(GuardRecord(tripped_at=NOW), halts=True, due=0, evicted=0, allowance=50)


@pytest.mark.parametrize(
    ("report", "wake_after", "seconds"),
    [
        (REPORT, None, LONGEST_SLEEP_SECONDS),
        (REPORT, 5.0, 5.0),
        (replace(REPORT, status=ReportedStatus(pending=1, next_deadline=rfc3339.at(NOW + 30))), None, 30.0),
        (replace(REPORT, bouncing=1), None, 0.0),
        (replace(REPORT, guard=TRIPPED), None, 0.0),
    ],
)
async def test_reports_hold_until_time_alone_changes_them(report, wake_after, seconds):
    assert holds_seconds([REPORT, report], NOW, wake_after) == seconds


async def test_pods_that_leave_are_counted_in_each_turn():
    stage = stage_with_pods(timing={"violationGraceSeconds": 0})
    for name in "abc":
        stage.step(events.PodGone(f"uid-{name}", "n1", until=NOW + 100))
    assert await rounds(stage) == 2


# -- writing ----------------------------------------------------------------------------------------------------------


async def test_a_status_that_did_not_change_is_not_written_again():
    stage = Stage()
    assert len(await stage.run(REFRESH_SECONDS * 5)) == 1


async def test_status_that_does_not_change_is_refreshed_now_and_then():
    stage = Stage()
    [first] = await stage.run()
    stage.clock.advance(REPORT_SECONDS)
    [second] = await stage.run()
    assert (first["observedAt"], second["observedAt"]) == (TODAY, "2023-11-14T22:13:40Z")
    assert first | {"observedAt": None} == second | {"observedAt": None}


async def test_many_changes_are_one_write():
    stage = Stage()

    def change() -> None:
        for number in range(50):
            stage.step(events.NodeSeen(stage.node(f"n{number}")))

    assert len(await stage.run(REFRESH_SECONDS * 2, also=change)) == 2


@pytest.mark.parametrize(
    ("cost", "waits"),
    [(0.0, REFRESH_SECONDS), (REFRESH_SECONDS / REST, REFRESH_SECONDS), (0.2, 0.2 * REST), (9.0, REPORT_SECONDS)],
)
async def test_slow_reports_are_written_less_often(cost, waits):
    stage = Stage(cost=cost)

    def change() -> None:
        stage.step(events.NodeSeen(stage.node("n2")))

    assert len(await stage.run(waits - 0.1, also=change)) == 1
    stage = Stage(cost=cost)
    assert len(await stage.run(waits + 0.1, also=change)) == 2


async def test_a_slow_report_pauses_between_its_parts():
    stage = Stage(cost=0.1)
    pods = tuple(stage.pod(str(number)) for number in range(3 * CLAIMS_AT_ONCE))
    stage.step(events.PodsSeen(pods))
    stage.step(events.NodeSeen(stage.node("n1", "900", 2)))
    stage.wake()
    pauses = 3 * PAUSE * 0.1  # between four parts: three of claims, and the rest
    assert await stage.run(pauses - 0.05) == []
    assert len(await stage.run(pauses + 0.05)) == 1


def while_it_is_written(seconds: float, stage: Stage) -> Callable[[Any], Json]:
    """The answer to a write that takes `seconds` seconds, during which a node is added."""

    def answer(_: Any) -> Json:
        stage.clock.advance(seconds)
        stage.step(events.NodeSeen(stage.node("n2")))
        stage.wake()
        return {}

    return answer


@pytest.mark.parametrize(
    ("seconds", "nodes", "at"),
    [(60.0, 2, "2023-11-14T22:14:20Z"), (REFRESH_SECONDS - 1, 1, TODAY)],
    ids=["slow", "fast"],
)
async def test_a_status_is_as_new_as_the_time_that_it_names(seconds, nodes, at):
    """The writes of other policies before it may take minutes, with many policies and a slow API server."""
    stage = Stage()
    stage.step(events.PoliciesChanged((policy("a"), policy("p"))))
    stage.observed.clear()
    stage.observed |= {"a": ObservedObject(1), "p": ObservedObject(1)}
    stage.wake()
    stage.client.answers.append(while_it_is_written(seconds, stage))
    first, second = (await stage.run())[:2]
    assert (first["selectedNodes"], first["observedAt"]) == (1, TODAY)
    assert (second["selectedNodes"], second["observedAt"]) == (nodes, at)


async def test_reports_are_no_more_frequent_while_many_statuses_are_written():
    stage = Stage(cost=0.25)
    names = [f"p{number}" for number in range(10)]
    stage.step(events.PoliciesChanged(tuple(map(policy, names))))
    stage.observed.clear()
    stage.observed |= {name: ObservedObject(1) for name in names}
    stage.client.default = while_it_is_written(0.25 * REST / 4, stage)
    written = await stage.run()
    assert [written[number]["observedAt"] for number in (0, 3, 4, 7, 8)] == [
        TODAY,
        TODAY,
        "2023-11-14T22:13:35Z",
        "2023-11-14T22:13:35Z",
        "2023-11-14T22:13:50Z",
    ]


async def test_a_write_that_failed_is_retried_and_logged_once_for_each_reason():
    stage = Stage(refusal(500), refusal(403), refusal(403))
    with capture_logs() as logs:
        assert len(await stage.run(REFRESH_SECONDS * 4)) == 4
    assert [entry["reason"][:3] for entry in logs if entry["event"] == "status-not-written"] == ["500", "403"]


async def test_a_policy_that_cannot_be_written_delays_no_other():
    stage = Stage(refusal(404))
    stage.observed["other"] = ObservedObject(1, "wrong")
    with capture_logs():
        await stage.run()
    assert [call.path.split("/")[-2] for call in stage.client.calls] == ["p", "other"]


@pytest.mark.parametrize(("leads", "synced"), [(False, True), (True, False)], ids=["follows", "does not know all yet"])
async def test_a_replica_that_follows_or_is_not_synced_writes_nothing(leads, synced):
    stage = Stage(synced=synced)
    stage.leads = leads
    assert await stage.run(REFRESH_SECONDS * 2) == []


async def test_a_replica_that_leads_again_writes_again():
    """Another leader may have written meanwhile."""
    stage = Stage()
    await stage.run()
    stage.leads = False
    await stage.run()
    stage.leads = True
    assert len(await stage.run()) == 1


async def test_a_replica_that_loses_the_lead_during_a_write_stops_writing():
    """Another replica may lead already, and its status must not be overwritten."""

    def lose(_: Any) -> Json:
        stage.leads = False
        return {}

    stage = Stage(lose)
    stage.observed["other"] = ObservedObject(1, "wrong")
    stage.profiles["shop/a"] = ObservedObject(1)
    with capture_logs() as logs:
        await stage.run()
    assert [call.path.split("/")[-2] for call in stage.client.calls] == ["p"]
    assert logs == []


async def test_a_condition_that_another_leader_changed_keeps_its_time():
    stage = Stage()
    await stage.run()
    stage.leads = False
    await stage.run()
    stage.observed["p"] = ObservedObject(1, conditions={"Accepted": ("True", THEN)})
    stage.leads = True
    [status] = await stage.run()
    assert conditions(status)["Accepted"]["lastTransitionTime"] == THEN


# -- the guard, which has a writer of its own -------------------------------------------------------------------------


async def test_the_record_of_a_guard_is_not_overwritten():
    [status] = await Stage(limits=GUARDED).run()
    assert "guard" not in status


async def test_the_guard_record_of_an_invalid_policy_is_kept():
    """The guard counts again as soon as the policy is corrected."""
    stage = Stage()
    stage.observed["broken"] = ObservedObject(1, "spec.mode: wrong")
    status = (await stage.run())[-1]
    assert conditions(status)["Accepted"]["status"] == "False"
    assert "guard" not in status


async def test_a_guard_that_appears_during_a_round_is_not_overwritten():
    stage = Stage()
    stage.step(events.PoliciesChanged((policy("a"), policy("p"))))
    stage.observed.clear()
    stage.observed |= {name: ObservedObject(1, records=("guard",)) for name in ("a", "p")}

    def change(_: Any) -> Json:
        stage.step(events.PoliciesChanged((policy("a"), policy("p", limits=GUARDED))))
        return {}

    stage.client.answers.append(change)
    first, second = await stage.run()
    assert first["guard"] is None
    assert "guard" not in second


async def test_records_that_ended_are_removed_only_from_the_version_that_was_seen():
    """The policy may get a guard again before the write, whose record must stay."""
    stage = Stage(refusal(409))
    stage.observed["p"] = ObservedObject(1, version="7", records=("guard", "places"))
    with capture_logs() as logs:
        statuses = await stage.run(REFRESH_SECONDS)
    assert [(one["guard"], one["places"]) for one in statuses] == [(None, None)] * 2
    assert [call.body["metadata"] for call in stage.client.calls] == [{"resourceVersion": "7"}] * 2
    assert logs == []


# -- metrics ----------------------------------------------------------------------------------------------------------


async def test_gauges_are_set_by_every_replica():
    stage = stage_with_pods()
    stage.leads = False
    await stage.run()
    assert stage.gauge("taintwarden_nodes") == 2
    assert stage.gauge("taintwarden_pods") == 3
    assert stage.gauge("taintwarden_pending_evictions", policy="p") == 3
    assert stage.gauge("taintwarden_evicting_nodes", policy="p") == 1


async def test_a_policy_that_is_gone_is_no_longer_measured():
    stage = stage_with_pods(limits=GUARDED)
    await stage.run()

    def delete() -> None:
        stage.step(events.PoliciesChanged(()))
        stage.observed.pop("p")
        stage.wake()

    await stage.run(REFRESH_SECONDS * 2, also=delete)
    assert stage.gauge("taintwarden_pending_evictions", policy="p") is None
    assert stage.gauge("taintwarden_evicting_nodes", policy="p") is None
    assert stage.gauge("taintwarden_guard_tripped", policy="p") is None
    assert stage.gauge("taintwarden_zone_state", policy="p", zone="none") is None


# -- profiles ---------------------------------------------------------------------------------------------------------


def give(stage: Stage, name: str, **labels: str) -> None:
    """A profile in force, for pods of ``shop``."""
    requirements = tuple(Requirement(key, SelectorOperator.IN, (value,)) for key, value in labels.items())
    stage.step(events.ProfileSeen(Profile("shop", name, LabelSelector(requirements), (GT_950,))))
    stage.profiles[f"shop/{name}"] = ObservedObject(1)


def of_profiles(stage: Stage, before: int = 0) -> dict[str, Json]:
    """The last written status of each profile."""
    calls = [call for call in stage.client.calls[before:] if "/tolerationprofiles/" in call.path]
    return {call.path.split("/")[-2]: call.body["status"] for call in calls}


async def test_a_profile_reports_the_number_of_pods_that_it_selects():
    stage = Stage()
    give(stage, "all")
    give(stage, "none", app="web")
    stage.step(events.PodSeen(stage.pod("a")))
    stage.step(events.PodSeen(stage.pod("b")))
    await stage.run()
    told = of_profiles(stage)
    assert {name: status["matchedPods"] for name, status in told.items()} == {"all": 2, "none": 0}
    assert (told["all"]["observedGeneration"], conditions(told["all"])["Accepted"]["status"]) == (1, "True")


async def test_a_profile_is_written_again_only_when_it_changed():
    stage = Stage()
    give(stage, "all")
    await stage.run(10 * REFRESH_SECONDS)
    assert len([call for call in stage.client.calls if "profiles" in call.path]) == 1


@pytest.mark.parametrize(("seconds", "at"), [(0, TODAY), (100, "2023-11-14T22:15:00Z")])
async def test_a_profile_that_replaces_one_of_its_name_within_a_round_gets_a_status(seconds, at):
    stage = Stage()
    give(stage, "all")
    await stage.run(also=lambda: stage.profiles.update({"shop/all": ObservedObject(1, uid="other")}))
    stage.clock.advance(seconds)
    before = len(stage.client.calls)
    await stage.run()
    assert conditions(of_profiles(stage, before)["all"])["Accepted"]["lastTransitionTime"] == at


async def test_another_number_of_pods_is_written_at_the_next_turn():
    stage = Stage()
    give(stage, "all")
    await stage.run(1.5 * REFRESH_SECONDS, also=lambda: stage.step(events.PodSeen(stage.pod("a"))))
    assert of_profiles(stage)["all"]["matchedPods"] == 1


@pytest.mark.parametrize(
    ("known", "told"),
    [(True, "its last valid version stays in force"), (False, "no version of it counts, so it does nothing")],
)
async def test_a_refused_profile_has_the_reason_and_the_version_in_force(known, told):
    stage = Stage()
    if known:
        give(stage, "p")
    stage.profiles["shop/p"] = ObservedObject(2, "spec.tolerations: wrong")
    await stage.run()
    told_conditions = conditions(of_profiles(stage)["p"])
    accepted = told_conditions["Accepted"]
    assert (accepted["status"], accepted["reason"]) == ("False", "Invalid")
    assert (told_conditions["Ready"]["status"], told_conditions["Stalled"]["status"]) == ("False", "True")
    assert accepted["message"] == f"spec.tolerations: wrong; {told}"


async def test_many_profiles_are_all_written_a_few_at_a_time():
    stage = Stage()
    for number in range(PROFILES_PER_ROUND + 3):
        give(stage, f"p{number}")
    await stage.run(0.5)
    assert len(of_profiles(stage)) == PROFILES_PER_ROUND
    await stage.run(0.5)
    assert len(of_profiles(stage)) == PROFILES_PER_ROUND + 3


async def test_profiles_that_change_continually_take_turns():
    stage = Stage()
    for number in range(PROFILES_PER_ROUND + 3):
        give(stage, f"p{number}")
    await stage.run(1.5 * REFRESH_SECONDS)
    stage.step(events.PodSeen(stage.pod("a")))
    before = len(stage.client.calls)
    await stage.run(1.5 * REFRESH_SECONDS)
    assert {status["matchedPods"] for status in of_profiles(stage, before).values()} == {1}
    assert len(of_profiles(stage, before)) == PROFILES_PER_ROUND + 3


async def test_slow_failures_of_profiles_delay_neither_policies_nor_other_profiles():
    """A tenant may have a webhook that does not answer."""
    stage = Stage()
    for name in (*(f"slow{number}" for number in range(20)), "quick"):
        give(stage, name)
    late = Unreachable("no answer")
    stage.client.default = lambda call: (stage.clock.advance(5.0), late)[1] if "slow" in call.path else {}
    with capture_logs():
        statuses = await stage.run(20 * REFRESH_SECONDS)
    seen = [rfc3339.read_time(status["observedAt"]) for status in statuses if "observedAt" in status]
    assert max(after - before for before, after in pairwise(seen)) < 60.0
    assert "quick" in of_profiles(stage)


def test_a_namespace_with_many_profiles_delays_no_other():
    keys = [*(f"loud/{number}" for number in range(1_000)), "quiet/a", "quiet/b", "other/a"]
    assert list(in_turns(keys))[:6] == ["loud/0", "quiet/a", "other/a", "loud/1", "quiet/b", "loud/2"]
    assert sorted(in_turns(keys)) == sorted(keys)


async def test_accepted_and_refused_profiles_are_counted():
    stage = Stage()
    give(stage, "a")
    give(stage, "b")
    stage.profiles["shop/c"] = ObservedObject(1, "wrong")
    await stage.run()
    assert stage.gauge("taintwarden_profiles", accepted="true") == 2
    assert stage.gauge("taintwarden_profiles", accepted="false") == 1


async def test_a_profile_that_was_deleted_meanwhile_is_no_fault():
    stage = Stage(refusal(404))
    stage.observed.clear()
    give(stage, "all")
    with capture_logs() as logs:
        await stage.run()
    assert logs == []

"""One round: its query, writes and reports, with an API server that a test scripts."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from publisher.answering import Answers, vector
from publisher.scene import body, node_object, record, taint
from taintwarden.telemetry.metrics import Metrics
from taintwarden_publisher.cluster import ClusterError, WriteOutcome
from taintwarden_publisher.nodes import Node
from taintwarden_publisher.prometheus import Access
from taintwarden_publisher.rounds import Rounds, Tools
from taintwarden_publisher.troubles import NoAnswerError, Trouble

YES = lambda: True  # noqa: E731


class Scripted:
    """Nodes in memory, and the writes to them."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.patches: list[str] = []
        self.statuses: list[Any] = []
        self.outcomes: dict[str, WriteOutcome] = {}
        self.is_away = self.has_no_status = False
        self.most_at_once = self._now = 0
        self.passes = lambda: None

    def has(self, *objects: Any) -> None:
        self.objects |= {one["metadata"]["name"]: one for one in objects}

    def taint(self, name: str) -> str:
        return " ".join(f"{one['key']}={one['value']}" for one in self.objects[name]["spec"]["taints"])

    async def nodes(self) -> list[Node]:
        if self.is_away:
            msg = "the nodes cannot be listed: away"
            raise ClusterError(msg)
        return [msgspec.convert(one, Node) for one in self.objects.values()]

    async def patch_node(self, name: str, patch: Any) -> tuple[WriteOutcome, str]:
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        await asyncio.sleep(0)
        self._now -= 1
        self.patches.append(name)
        outcome = self.outcomes.get(name, WriteOutcome.DONE)
        if outcome is WriteOutcome.DONE:
            one = self.objects[name]
            given = one["metadata"]["annotations"] | patch["metadata"]["annotations"]
            one["metadata"]["annotations"] = {key: value for key, value in given.items() if value is not None}
            one["spec"]["taints"] = patch["spec"]["taints"]
        self.passes()
        return outcome, {WriteOutcome.REFUSED: "no right", WriteOutcome.FAILED: "500 webhook"}.get(outcome, "")

    async def patch_status(self, name: str, status: Any) -> None:
        if self.has_no_status:
            msg = "the status cannot be written: away"
            raise ClusterError(msg)
        self.statuses.append(status)

    async def access(self, secret: str) -> Access:
        raise NoAnswerError(Trouble.SECRET_UNUSABLE, f"Secret {secret} cannot be read: 403")


class Stage:
    """A publisher, its nodes, and its Prometheus."""

    def __init__(self, prometheus: Answers, session: aiohttp.ClientSession) -> None:
        self.prometheus = prometheus
        self.cluster = Scripted()
        self.metrics = Metrics()
        self.clock = 0.0
        self.tools = Tools(self.cluster, session, self.metrics, lambda: time.time() + self.clock, lambda: self.clock)
        self.rounds = Rounds("sla", self.tools)
        self.fields: dict[str, Any] = {"mode": "Publish", "maxChangedNodes": "100%", "minDwellSeconds": 0}

    async def play(self, *, taken: str = "", may_write: Any = YES, **fields: Any) -> Any:
        given = body(**self.fields | {"url": self.prometheus.url} | fields)
        self.report, self.changed = await self.rounds.run(given, taken, may_write)
        return self.report

    def reasons(self) -> dict[str, str]:
        return {one.type: one.reason for one in self.report.conditions}

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(name, {"publisher": "sla", **labels})


@pytest.fixture
def stage(prometheus: Answers, session: aiohttp.ClientSession) -> Stage:
    stage = Stage(prometheus, session)
    stage.cluster.has(node_object("a1"), node_object("a2"))
    prometheus.says(vector({"a1": 985, "a2": 950}))
    return stage


async def test_values_become_taints(stage):
    with capture_logs() as logs:
        await stage.play()
    assert [one["change"] for one in logs if one["event"] == "taint-published"] == [
        "a1 sla=980 (from 985)",
        "a2 sla=940 (from 950)",
    ]
    assert (stage.cluster.taint("a1"), stage.cluster.taint("a2")) == ("sla=980", "sla=940")
    assert stage.reasons() == {"Accepted": "Accepted", "Answered": "Answered", "Publishing": "Publishing"}
    assert stage.report.summary == "2 nodes of 2 have the taint sla with its value"
    stage.cluster.patches.clear()
    await stage.play()
    assert (stage.cluster.patches, stage.changed) == ([], [])


async def test_a_dry_run_reports_what_it_would_write_and_writes_nothing(stage):
    await stage.play(mode="DryRun")
    assert stage.cluster.patches == []
    assert stage.report.summary == (
        "mode is DryRun: would change 2 nodes: a1 sla=980 (from 985), a2 sla=940 (from 950)"
    )
    assert stage.report.stuck == ""


async def test_a_dry_run_that_would_change_too_many_nodes_is_reported_as_dry_run(stage):
    await stage.play(mode="DryRun", maxChangedNodes=1)
    assert stage.reasons()["Publishing"] == "DryRun"
    assert stage.report.summary == (
        "mode is DryRun: would change nothing, since 2 nodes of 2 would change within ten minutes, more than "
        "maxChangedNodes allows (1: 1): a1 sla=980 (from 985), a2 sla=940 (from 950)"
    )
    assert stage.value("taintwarden_publisher_stuck") == 0


async def test_1000_nodes_that_fall_at_once_change_nothing_with_one_event(stage):
    stage.cluster.has(*(node_object(f"n{index:04}", taint("980"), record=record("980")) for index in range(998)))
    stage.prometheus.says(vector(dict.fromkeys(stage.cluster.objects, 0)))
    await stage.play(maxChangedNodes="10%")
    assert stage.cluster.patches == []
    assert stage.reasons()["Publishing"] == "TooManyChanges"
    assert "1000 nodes of 1000 would change within ten minutes" in stage.report.summary
    assert [one.reason for one in stage.changed if not one.status] == ["TooManyChanges"]
    await stage.play(maxChangedNodes="10%")
    assert stage.changed == []
    assert stage.value("taintwarden_publisher_stuck") == 1


async def test_a_refusal_ends_the_round(stage):
    stage.cluster.has(*(node_object(f"n{index:03}") for index in range(100)))
    stage.cluster.outcomes = dict.fromkeys(stage.cluster.objects, WriteOutcome.REFUSED)
    stage.prometheus.says(vector(dict.fromkeys(stage.cluster.objects, 985)))
    await stage.play()
    assert len(stage.cluster.patches) <= 8
    assert stage.report.summary == "the API server refuses to change nodes: no right"
    assert stage.report.stuck == "WriteRefused"


async def test_writes_that_fail_are_reported_and_stop_no_others(stage):
    stage.cluster.outcomes["a1"] = WriteOutcome.FAILED
    await stage.play()
    assert stage.cluster.taint("a2") == "sla=940"
    assert stage.report.summary == "1 node to be written again in the next round, since writes fail: 500 webhook"
    assert stage.report.stuck == "WriteFailed"
    assert stage.cluster.statuses[-1]["nodes"] | {"published": 1, "pending": 1} == stage.cluster.statuses[-1]["nodes"]
    stage.cluster.outcomes.clear()
    await stage.play()
    assert (stage.cluster.taint("a1"), stage.report.stuck) == ("sla=980", "")


async def test_writes_that_are_not_answered_end_the_round(stage):
    names = [f"n{index:03}" for index in range(100)]
    stage.cluster.has(*map(node_object, names))
    stage.cluster.outcomes = dict.fromkeys(names, WriteOutcome.FAILED)
    stage.cluster.passes = lambda: setattr(stage, "clock", stage.clock + 30)
    stage.prometheus.says(vector(dict.fromkeys(names, 985)))
    await stage.play()
    assert len(stage.cluster.patches) <= 16
    assert stage.report.stuck == "WriteFailed"


@pytest.mark.parametrize(
    ("outcome", "seconds"), [(WriteOutcome.FAILED, 0), (WriteOutcome.DONE, 30)], ids=["fails", "is slow"]
)
async def test_a_write_that_fails_or_is_slow_ends_no_round(stage, outcome, seconds):
    names = [f"n{index:03}" for index in range(30)]
    stage.cluster.has(*map(node_object, names))
    stage.cluster.outcomes["n000"], stage.clock = outcome, 1_000.0
    stage.cluster.passes = lambda: setattr(stage, "clock", stage.clock + seconds)
    stage.prometheus.says(vector(dict.fromkeys(names, 985), at=time.time() + stage.clock))
    await stage.play()
    assert len(stage.cluster.patches) == 30


async def test_nodes_whose_writes_fail_come_last_in_the_next_round(stage):
    stage.cluster.outcomes["a1"] = WriteOutcome.FAILED
    await stage.play()
    stage.cluster.has(node_object("a3"))
    stage.cluster.patches.clear()
    stage.prometheus.says(vector({"a1": 985, "a2": 950, "a3": 985}))
    await stage.play()
    assert stage.cluster.patches == ["a3", "a1"]


@pytest.mark.parametrize("outcome", [WriteOutcome.CONFLICT, WriteOutcome.FAILED])
async def test_a_failed_write_is_retried_in_the_next_round(stage, outcome):
    stage.cluster.outcomes["a1"] = outcome
    await stage.play()
    assert "1 node to be written again in the next round" in stage.report.summary
    stage.cluster.outcomes.clear()
    await stage.play()
    assert stage.cluster.taint("a1") == "sla=980"


async def test_an_object_that_is_deleted_during_a_round_writes_no_more(stage):
    await stage.play(may_write=lambda: False)
    assert stage.cluster.patches == []


@pytest.mark.parametrize(
    ("content", "status", "reason"),
    [
        (vector({}), 200, "Empty"),
        ("<html>", 200, "WrongContent"),
        (vector({"a1": 1}) | {"warnings": ["store 10.0.0.7 does not answer"]}, 200, "Partial"),
        (vector({"a1": 1}) | {"isPartial": True}, 200, "Partial"),
        (vector({"a1": 1}, at=1.0), 200, "ClockSkew"),
        ("", 302, "Redirected"),
    ],
)
async def test_without_an_answer_every_taint_stays(stage, content, status, reason):
    await stage.play()
    stage.prometheus.says(content, status)
    await stage.play()
    assert (stage.cluster.taint("a1"), stage.cluster.taint("a2")) == ("sla=980", "sla=940")
    assert stage.reasons()["Answered"] == reason
    assert stage.report.stuck == reason


@pytest.mark.parametrize("more", [{"warnings": ["PromQL warning: a mix"]}, {"warnings": None}, {"isPartial": False}])
async def test_a_complete_answer_with_warnings_is_used(stage, more):
    stage.prometheus.says(vector({"a1": 985, "a2": 950}) | more)
    await stage.play()
    assert stage.reasons()["Answered"] == "Answered"


async def test_without_an_answer_no_taint_follows_its_value(stage):
    """``kubectl wait --for=condition=Publishing`` must not end."""
    stage.prometheus.says("", 503)
    await stage.play()
    publishing = stage.report.condition("Publishing")
    assert (publishing.status, publishing.reason) == (False, "NotAnswered")
    assert publishing.message == (
        "no taint follows its value without an answer: 0 nodes of 2 have the taint sla of a recent value; "
        "2 nodes without a value (a1, a2)"
    )


async def test_a_dry_run_without_an_answer_is_not_stuck_and_reports_no_result(stage):
    stage.prometheus.says("", 503)
    await stage.play(mode="DryRun")
    assert (stage.reasons()["Answered"], stage.reasons()["Publishing"]) == ("WrongContent", "NotAnswered")
    assert stage.value("taintwarden_publisher_stuck") == 0


async def test_prometheus_down_for_long_keeps_taints_or_removes_them(stage):
    stage.clock = 50
    await stage.play()
    stage.prometheus.says("", 503)
    stage.clock = 349
    await stage.play(onStale="Remove")
    assert stage.cluster.taint("a1") == "sla=980"
    stage.clock = 350
    await stage.play(onStale="Hold")
    assert (
        "2 nodes without a value for too long, whose taint is held (a1, a2)"
        in stage.report.condition("Publishing").message
    )
    await stage.play(onStale="Remove", maxChangedNodes=1)
    assert stage.cluster.taint("a1") == "sla=980"
    await stage.play(onStale="Remove")
    assert stage.cluster.taint("a1") == ""


async def test_a_process_that_starts_while_prometheus_is_down_removes_nothing_early(stage):
    stage.cluster.has(node_object("a1", taint("980"), record=record("980")))
    stage.prometheus.says("", 503)
    await stage.play(onStale="Remove")
    assert stage.cluster.taint("a1") == "sla=980"


async def test_invalid_values_are_counted_and_the_others_are_published(stage):
    stage.prometheus.says(vector({"a1": "NaN", "a2": 950, "gone": 1}))
    await stage.play()
    assert (stage.cluster.taint("a1"), stage.cluster.taint("a2")) == ("", "sla=940")
    assert stage.report.condition("Answered").message == (
        "Prometheus answers; series that are not used: 1 of a node that does not exist, 1 with the value NaN"
    )


@pytest.mark.parametrize(
    ("values", "fields", "said"),
    [
        ({"a1": 985, "a2": 950}, {"nodeLabel": "kubernetes_node"}, "2 without the label"),
        ({"a1.example.com": 985, "a2.example.com": 950}, {}, "2 of a node that does not exist"),
        ({"a1": "NaN", "a2": "NaN"}, {}, "2 with the value NaN"),
    ],
)
async def test_an_answer_without_any_known_node_counts_as_none(stage, values, fields, said):
    await stage.play()
    stage.prometheus.says(vector(values))
    stage.clock += 30
    await stage.play(**fields)
    assert (stage.cluster.taint("a1"), stage.cluster.taint("a2")) == ("sla=980", "sla=940")
    assert stage.report.summary == f"no series has a usable value of a node: {said}"
    assert stage.report.stuck == "Empty"


async def test_nodes_that_claim_one_address_are_named(stage):
    stage.cluster.has(*(node_object(name, addresses=["10.0.0.9"]) for name in ("a1", "a2")))
    stage.prometheus.says(vector({"10.0.0.9:9100": 950, "a2:9100": 985}, label="instance"))
    await stage.play(nodeLabel="instance")
    assert stage.cluster.patches == ["a2"]
    assert stage.report.condition("Answered").message == (
        "Prometheus answers; series that are not used: 1 of an address that several nodes have (10.0.0.9: a1, a2)"
    )


async def test_a_query_that_does_not_parse_is_reported(stage):
    stage.prometheus.says({"status": "error", "errorType": "bad_data", "error": "parse error"}, 400)
    await stage.play()
    assert stage.reasons()["Accepted"] == "QueryInvalid"
    assert stage.report.summary == "Prometheus cannot answer the query: parse error"
    assert stage.cluster.patches == []


async def test_a_key_of_another_object_is_neither_queried_nor_written(stage):
    await stage.play(taken="TaintPublisher other has the key sla already")
    assert stage.reasons() == {"Accepted": "KeyTaken", "Answered": "NotAccepted", "Publishing": "NotAccepted"}
    assert (stage.prometheus.requests, stage.cluster.patches) == ([], [])


async def test_an_invalid_object_is_neither_queried_nor_written(stage):
    await stage.play(key="node.kubernetes.io/unreachable")
    assert stage.reasons()["Accepted"] == "InvalidSpec"
    assert "must not be a key of Kubernetes" in stage.report.summary
    assert (stage.prometheus.requests, stage.cluster.patches) == ([], [])


async def test_a_secret_that_cannot_be_read_is_reported(stage):
    await stage.play(auth={})
    assert stage.reasons()["Answered"] == "SecretUnusable"
    assert stage.prometheus.requests == []


async def test_without_the_nodes_nothing_is_decided(stage):
    stage.cluster.is_away = True
    await stage.play()
    assert stage.reasons()["Publishing"] == "ClusterUnreachable"


async def test_a_record_that_cannot_be_read_stops_nothing_on_other_nodes(stage):
    await stage.play()
    stage.cluster.has(node_object("evil", taint("940"), record='{"a":' * 20_000 + "1" + "}" * 20_000))
    stage.prometheus.says(vector({"a1": 100, "a2": 950, "evil": 985}))
    await stage.play()
    assert (stage.cluster.taint("a1"), stage.cluster.taint("evil")) == ("sla=0", "sla=940")
    assert await stage.rounds.withdraw("sla") == ""
    assert (stage.cluster.taint("a1"), stage.cluster.taint("evil")) == ("", "sla=940")


# -- the number of nodes that may change ------------------------------------------------------------------------------


@pytest.fixture
def fleet(stage: Stage) -> list[str]:
    """20 nodes with the taint 940 that a round has read; two of them may change within ten minutes."""
    names = [f"n{index:02}" for index in range(20)]
    stage.cluster.objects.clear()
    stage.cluster.has(*(node_object(name, taint("940"), record=record("940")) for name in names))
    stage.fields |= {"maxChangedNodes": "10%"}
    stage.prometheus.says(vector(dict.fromkeys(names, 945)))
    return names


async def test_removals_count_for_ten_minutes(stage, fleet):
    fields = {"onStale": "Remove", "staleAfterSeconds": 1}
    await stage.play(**fields)
    for stage.clock, first, removed in ((30, 2, 2), (60, 4, 2), (629, 4, 2), (630, 4, 4)):
        stage.prometheus.says(vector(dict.fromkeys(fleet[first:], 945), at=time.time() + stage.clock))
        await stage.play(**fields)
        assert sum(not stage.cluster.taint(name) for name in fleet) == removed


async def test_nodes_that_are_selected_no_more_count_for_ten_minutes(stage, fleet):
    def label(*names: str) -> None:
        for name in names:
            stage.cluster.objects[name]["metadata"]["labels"] = {"pool": "spot"}

    fields = {"nodeSelector": {"matchExpressions": [{"key": "pool", "operator": "DoesNotExist"}]}}
    for names in (fleet[:2], fleet[2:4]):
        label(*names)
        await stage.play(**fields)
    assert sum(not stage.cluster.taint(name) for name in fleet) == 2
    assert stage.reasons()["Publishing"] == "TooManyChanges"


async def test_all_nodes_may_be_selected_no_more_where_all_may_change(stage, fleet):
    """No node is still selected, of which a percentage could be taken."""
    await stage.play(nodeSelector={"matchLabels": {"pool": "none"}}, maxChangedNodes="50%")
    assert "20 nodes of 20 would change" in stage.report.summary
    assert "(50%: 10)" in stage.report.summary
    await stage.play(nodeSelector={"matchLabels": {"pool": "none"}}, maxChangedNodes="100%")
    assert not any(stage.cluster.taint(name) for name in fleet)


async def test_a_record_that_a_kubelet_writes_again_does_not_count(stage, fleet):
    await stage.play()
    renewed = record("940", at=datetime.now(UTC))
    stage.cluster.has(*(node_object(name, taint("940"), record=renewed) for name in fleet[:5]))
    stage.prometheus.says(vector(dict.fromkeys(fleet, 945) | {"n19": 10}))
    await stage.play()
    assert stage.cluster.taint("n19") == "sla=0"


async def test_a_process_that_starts_reads_recent_changes_from_records(stage, fleet):
    lately = record("940", at=datetime.now(UTC) - timedelta(minutes=9))
    stage.cluster.has(*(node_object(name, taint("940"), record=lately) for name in fleet[:2]))
    for stage.clock, value in ((0, "940"), (30, "940"), (60, "0")):
        moment = time.time() + stage.clock
        stage.prometheus.says(vector(dict.fromkeys(fleet, 945) | {"n19": 10}, at=moment))
        await stage.play()
        assert stage.cluster.taint("n19") == f"sla={value}"


async def test_the_first_values_of_new_nodes_do_not_count_later_either(stage, fleet):
    new = [f"new{index}" for index in range(3)]
    stage.cluster.has(*(node_object(name, created=datetime.now(UTC)) for name in new))
    for value in (945, 10):
        stage.prometheus.says(vector(dict.fromkeys([*fleet, *new], 945) | {"n00": value, "n01": value}))
        await stage.play()
    assert (stage.cluster.taint("new2"), stage.cluster.taint("n01")) == ("sla=940", "sla=0")


async def test_a_write_whose_outcome_is_not_known_counts(stage, fleet):
    stage.cluster.outcomes["n00"] = WriteOutcome.FAILED
    stage.prometheus.says(vector(dict.fromkeys(fleet, 945) | {"n00": 10}))
    await stage.play()
    stage.prometheus.says(vector(dict.fromkeys(fleet, 945) | {"n01": 10, "n02": 10}))
    await stage.play()
    assert stage.reasons()["Publishing"] == "TooManyChanges"


@pytest.mark.parametrize("outcome", [WriteOutcome.REFUSED, WriteOutcome.CONFLICT, WriteOutcome.GONE])
async def test_a_write_that_was_not_done_does_not_count(stage, fleet, outcome):
    stage.cluster.outcomes["n00"] = outcome
    stage.prometheus.says(vector(dict.fromkeys(fleet, 945) | {"n00": 10}))
    await stage.play()
    stage.prometheus.says(vector(dict.fromkeys(fleet, 945) | {"n01": 10, "n02": 10}))
    await stage.play()
    assert stage.cluster.taint("n02") == "sla=0"


# -- the status -------------------------------------------------------------------------------------------------------


async def test_the_status_is_written_when_it_changes_and_once_a_minute(stage):
    await stage.play()
    await stage.play()
    first = len(stage.cluster.statuses)
    stage.clock = 30
    await stage.play()
    assert len(stage.cluster.statuses) == first
    await stage.play(mode="DryRun")
    assert len(stage.cluster.statuses) == first + 1
    for stage.clock, more in ((89, 1), (90, 2)):
        stage.prometheus.says(vector({"a1": 985, "a2": 950}, at=time.time() + stage.clock))
        await stage.play(mode="DryRun")
        assert len(stage.cluster.statuses) == first + more


async def test_a_status_that_was_not_written_is_written_in_the_next_round(stage):
    stage.cluster.has_no_status = True
    await stage.play()
    stage.cluster.has_no_status = False
    await stage.play()
    assert len(stage.cluster.statuses) == 1


async def test_a_status_is_of_the_version_with_which_the_round_began(stage):
    """kopf may change the object during a round."""
    given = body(url=stage.prometheus.url, mode="Publish")

    async def edits(_: web.Request) -> web.Response:
        given["metadata"]["generation"] = 2
        return web.json_response(vector({"a1": 985}))

    stage.prometheus.handler = edits
    await stage.rounds.run(given, "", YES)
    assert stage.cluster.statuses[-1]["observedGeneration"] == 1
    assert {one["observedGeneration"] for one in stage.cluster.statuses[-1]["conditions"]} == {1}


async def test_the_status_counts_nodes(stage):
    stage.cluster.has(node_object("a3"), node_object("a4", taint("1")))
    await stage.play()
    assert stage.cluster.statuses[-1]["lastAnswerTime"]
    assert stage.cluster.statuses[-1]["nodes"] == {
        "selected": 4,
        "published": 2,
        "pending": 0,
        "stale": 0,
        "withoutValue": 1,
        "conflicting": 1,
    }


async def test_a_condition_keeps_its_transition_time(stage):
    await stage.play()
    first = stage.cluster.statuses[-1]["conditions"][0]["lastTransitionTime"]
    stage.clock = 3600
    stage.prometheus.says("", 503)
    await stage.play()
    accepted, answered, _ = stage.cluster.statuses[-1]["conditions"]
    assert accepted["lastTransitionTime"] == first
    assert answered["lastTransitionTime"] > first


async def test_a_process_that_starts_keeps_the_transition_time_of_a_condition(stage):
    await stage.play()
    stored = stage.cluster.statuses[-1]
    for one in stored["conditions"]:
        one["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    again = Rounds("sla", stage.tools)
    given = body(url=stage.prometheus.url, **stage.fields) | {"status": stored}
    await again.run(given, "", YES)
    assert stage.cluster.statuses[-1]["conditions"] == stored["conditions"]


async def test_a_publisher_that_works_is_not_stuck(stage):
    await stage.play()
    assert stage.value("taintwarden_publisher_stuck") == 0


# -- the end ----------------------------------------------------------------------------------------------------------


async def test_a_deleted_object_withdraws_its_taints_and_reports_those_left(stage):
    await stage.play()
    stage.cluster.outcomes["a1"] = WriteOutcome.REFUSED
    stage.cluster.outcomes["a2"] = WriteOutcome.REFUSED
    assert await stage.rounds.withdraw("sla") == "2 nodes still to lose the taint sla: no right"
    assert stage.value("taintwarden_publisher_stuck") == 1
    stage.cluster.is_away = True
    assert await stage.rounds.withdraw("sla") == "the nodes cannot be listed: away"
    assert stage.value("taintwarden_publisher_stuck") == 1
    stage.cluster.is_away = False
    stage.cluster.outcomes.clear()
    assert await stage.rounds.withdraw("sla") == ""
    assert (stage.cluster.taint("a1"), stage.cluster.objects["a1"]["metadata"]["annotations"]) == ("", {})
    assert stage.value("taintwarden_publisher_stuck") is None


async def test_an_object_that_is_deleted_before_its_first_round_withdraws_its_taints(stage):
    stage.cluster.has(node_object("a1", taint("980"), record=record("980")))
    assert await stage.rounds.withdraw("sla") == ""
    assert stage.cluster.taint("a1") == ""


async def test_a_node_that_changes_during_the_withdrawal_is_left(stage):
    await stage.play()
    stage.cluster.outcomes["a1"] = WriteOutcome.CONFLICT
    assert await stage.rounds.withdraw("sla") == "1 node still to lose the taint sla"


async def test_a_round_that_ends_after_the_deletion_measures_nothing(stage):
    """The handler of the deletion runs concurrently with the daemon."""
    asked, go = asyncio.Event(), asyncio.Event()

    async def late(_: web.Request) -> web.Response:
        asked.set()
        await go.wait()
        return web.Response(status=503)

    stage.prometheus.handler = late
    is_deleted = False
    playing = asyncio.create_task(stage.play(may_write=lambda: not is_deleted))
    await asked.wait()
    is_deleted = True
    assert await stage.rounds.withdraw("sla") == ""
    go.set()
    await playing
    assert stage.value("taintwarden_publisher_stuck") is None

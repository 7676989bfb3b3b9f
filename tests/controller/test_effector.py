"""The effector makes one call for each order, feeds one event back, and sends nothing without the lease."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from structlog.testing import capture_logs

from controller import NOW, pod, policy, verdict
from kube.scripted import Call, ScriptedClient, by_path, foreign_404, refusal
from taintwarden.controller.effector import HISTORY_WRITES, READS, RECORD_TRIES, Effector
from taintwarden.engine import commands, events
from taintwarden.engine.events import WriteOutcome
from taintwarden.engine.model import NodeCondition
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.records import GuardRecord, Place
from taintwarden.kube.errors import Unreachable
from taintwarden.telemetry.metrics import Metrics
from taintwarden_publisher.cluster import MANAGER

pytestmark = pytest.mark.looptime

SAVED = {"metadata": {"name": "n1", "uid": "uid-n1", "resourceVersion": "9"}}
SAVE = commands.SaveHistory("n1", "uid-n1", "text")
EVICT = commands.Evict(pod(), verdict())
BLOCKED = refusal(429, "disruption budget", retry_after=10.0)


class Held:
    is_held = True
    confirmed = True

    async def is_confirmed(self) -> bool:
        return self.confirmed


class Stage:
    def __init__(self, *answers: Any, default: Any = lambda _: SAVED, **more: Any) -> None:
        self.client = ScriptedClient(*answers, default=default)
        self.lease = Held()
        self.fed: list[Any] = []
        self.fallen: list[Any] = []
        """Orders that no longer stand."""
        self.known: list[str] = []
        """UIDs of the pods whose stored version is known."""
        self.metrics = Metrics()
        self.major: list[asyncio.Task[None]] = []
        self.minor: list[asyncio.Task[None]] = []
        self.version = 7
        self.effector = Effector(
            client=self.client,
            lease=self.lease,
            is_wanted=lambda order: order not in self.fallen,
            knows_pods=lambda _, pods: all(one.uid in self.known for one in pods),
            metrics=self.metrics,
            feed=self.fed.append,
            newest_version=lambda: self.version,
            spawn=self._spawning(self.major),
            spawn_minor=self._spawning(self.minor),
            **more,
        )

    @staticmethod
    def _spawning(tasks: list[asyncio.Task[None]]) -> Any:
        def spawn(work: Coroutine[Any, Any, None]) -> None:
            tasks.append(asyncio.create_task(work))

        return spawn

    async def carry_out(self, *orders: Any) -> list[Any]:
        for order in orders:
            self.effector.carry_out(order)
        await asyncio.gather(*self.major, *self.minor)
        return self.fed


# -- evictions --------------------------------------------------------------------------------------------------------


async def test_an_accepted_eviction_is_settled():
    stage = Stage()
    assert await stage.carry_out(EVICT) == [events.Settled("uid-web-1", Outcome.ACCEPTED)]
    assert stage.client.paths() == ["/api/v1/namespaces/shop/pods/web-1/eviction"]


async def test_a_refusal_is_settled_with_its_message_and_retry_time():
    stage = Stage(BLOCKED)
    assert await stage.carry_out(EVICT) == [events.Settled("uid-web-1", Outcome.BLOCKED, "disruption budget", 10.0)]


@pytest.mark.parametrize("is_held", [False, True], ids=["without the lease", "it no longer stands"])
async def test_an_eviction_without_lease_or_decision_is_not_sent(is_held):
    stage = Stage()
    stage.lease.is_held = is_held
    stage.fallen += [EVICT] * is_held
    assert await stage.carry_out(EVICT) == [events.Settled("uid-web-1", Outcome.NOT_SENT)]
    assert stage.client.calls == []


async def test_a_pod_is_not_deleted_if_the_decision_falls_while_its_condition_is_written():
    """Seconds may pass between the two requests: the node may recover, or another replica may lead."""

    def fall(_: Call) -> Any:
        stage.fallen.append(order)
        return {}

    order = commands.Evict(pod(), verdict(), delete=True)
    stage = Stage(fall)
    assert await stage.carry_out(order) == [events.Settled("uid-web-1", Outcome.NOT_SENT)]
    assert stage.client.paths("DELETE") == []


async def test_a_deletion_writes_its_reason_before():
    stage = Stage()
    await stage.carry_out(commands.Evict(pod(), verdict(), delete=True))
    patch, delete = stage.client.calls
    assert (patch.method, delete.method) == ("PATCH", "DELETE")
    [condition] = patch.body["status"]["conditions"]
    assert condition["message"] == "Taintwarden: taint sla=940:NoExecute is not tolerated (sla Gt '950' does not hold)"


@pytest.mark.parametrize("delete", [False, True])
async def test_a_grace_period_is_sent(delete):
    stage = Stage()
    await stage.carry_out(commands.Evict(pod(), verdict(), delete, 3))
    body = stage.client.calls[-1].body
    assert (body if delete else body["deleteOptions"])["gracePeriodSeconds"] == 3


@pytest.mark.parametrize("delete", [False, True])
async def test_a_pod_that_must_not_have_changed_is_named_by_its_version(delete):
    stage = Stage()
    await stage.carry_out(commands.Evict(pod(), verdict(), delete, as_seen=True))
    body = stage.client.calls[0].body  # before a deletion, its reason is written to this version
    assert "resourceVersion" in (body["metadata"] if delete else body["deleteOptions"]["preconditions"])


async def test_calls_are_measured():
    stage = Stage()
    await stage.carry_out(EVICT)
    count = stage.metrics.registry.get_sample_value("taintwarden_eviction_request_duration_seconds_count")
    assert count == 1


async def test_evictions_and_guards_are_major_work_and_reads_are_minor():
    stage = Stage(default=lambda _: STORED)
    await stage.carry_out(EVICT, SAVE_GUARD, CLEAR, commands.CheckNode("n1"), SAVE)
    assert (len(stage.major), len(stage.minor)) == (3, 2)


# -- fresh reads ------------------------------------------------------------------------------------------------------

NODE = {"metadata": {"name": "n1", "uid": "uid-n1", "resourceVersion": "5"}}


async def test_a_node_is_read_with_the_version_at_which_the_read_began():
    stage = Stage(NODE)
    [event] = await stage.carry_out(commands.CheckNode("n1"))
    assert isinstance(event, events.NodeChecked)
    assert event == events.NodeChecked("n1", 5, 7)


async def test_a_version_that_comes_during_the_read_is_not_covered_by_it():
    async def slow(_: Call) -> Any:
        stage.version = 99
        return NODE

    stage = Stage(slow)
    [event] = await stage.carry_out(commands.CheckNode("n1"))
    assert event.pods_version == 7


async def test_a_node_that_is_gone_is_checked_without_a_version():
    stage = Stage(refusal(404))
    assert await stage.carry_out(commands.CheckNode("n1")) == [events.NodeChecked("n1", None, 7)]


@pytest.mark.parametrize("error", [refusal(500), refusal(403), foreign_404(), Unreachable("reset")])
async def test_a_read_that_fails_is_reported_and_logged(error):
    stage = Stage(error)
    with capture_logs() as logs:
        assert await stage.carry_out(commands.CheckNode("n1")) == [events.NodeChecked("n1")]
    assert [(entry["event"], entry["node"]) for entry in logs] == [("node-check-failed", "n1")]
    assert logs[0]["reason"]


@pytest.mark.parametrize(
    ("change", "runs"),
    [
        ({}, True),
        ({"metadata": {"uid": "uid-namesake"}}, False),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, False),
        ({"status": {"phase": "Succeeded"}}, False),
    ],
    ids=["as it was", "a namesake", "terminating", "finished"],
)
async def test_a_pod_is_read_to_learn_if_it_runs(change, runs):
    stored = {"metadata": {"name": "a", "uid": pod().uid, "resourceVersion": "5"}, "status": {"phase": "Running"}}
    stage = Stage({"items": [{key: stored[key] | change.get(key, {}) for key in stored}]})
    assert await stage.carry_out(commands.CheckPod(pod())) == [events.PodChecked(pod().uid, runs)]


async def test_a_pod_that_cannot_be_read_may_run_or_not():
    assert await Stage(refusal(500)).carry_out(commands.CheckPod(pod())) == [events.PodChecked(pod().uid, None)]


@pytest.mark.parametrize(
    ("order", "at_once"),
    [(commands.CheckNode, READS), (lambda name: commands.SaveHistory(name, "u", "t"), HISTORY_WRITES)],
    ids=["reads", "writes"],
)
async def test_few_nodes_are_read_or_written_at_once(order, at_once):
    in_progress = most = 0

    async def slow(_: Call) -> Any:
        nonlocal in_progress, most
        in_progress += 1
        most = max(most, in_progress)
        await asyncio.sleep(1)
        in_progress -= 1
        return NODE

    stage = Stage(default=slow)
    await stage.carry_out(*[order(f"n{number}") for number in range(40)])
    assert (most, len(stage.fed)) == (at_once, 40)


FIND = commands.FindWriter("sla", "a taint", "n1", "sla")


def managed(manager: str, time: str = "2026-11-29T02:00:00Z", field: str = "f:taints") -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "time": time, "fieldsV1": {"f:spec": {field: {}}}}


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([managed("kubectl-taint")], "kubectl-taint (Update, 2026-11-29T02:00:00Z)"),
        ([managed("old", "2026-11-28T23:00:00Z"), managed("new")], "new (Update, 2026-11-29T02:00:00Z)"),
        ([managed("other", "2026-11-29T03:00:00Z", "f:podCIDR"), managed("new")], "new (Update, 2026-11-29T02:00:00Z)"),
        ([managed("")], "an unnamed client (Update, 2026-11-29T02:00:00Z)"),
        ([managed("\x1b" + "x" * 200)], f"\\x1b{'x' * 58} ... {'x' * 61} (Update, 2026-11-29T02:00:00Z)"),
        (
            [managed(MANAGER)],
            "taintwarden-publisher (Update, 2026-11-29T02:00:00Z): correct the TaintPublisher with key sla",
        ),
    ],
)
async def test_writer_of_the_taints_is_named(entries, said):
    stage = Stage({"metadata": {"name": "n1", "managedFields": entries}})
    assert await stage.carry_out(FIND) == [events.WriterFound(FIND, f"last written by {said}")]
    assert stage.client.paths() == ["/api/v1/nodes/n1"]


@pytest.mark.parametrize("answer", [NODE, {"metadata": {"managedFields": [{"fieldsV1": {"f:spec": 1}}]}}])
async def test_node_without_a_writer_of_taints_names_none(answer):
    assert await Stage(answer).carry_out(FIND) == []


@pytest.mark.parametrize("error", [refusal(403), refusal(404), Unreachable("reset")])
async def test_writer_that_cannot_be_read_is_logged_alone(error):
    with capture_logs() as logs:
        assert await Stage(error).carry_out(FIND) == []
    assert [(entry["event"], entry["node"]) for entry in logs] == [("writer-not-read", "n1")]


# -- writes -----------------------------------------------------------------------------------------------------------

RESET = {"taintwarden.io/guard-reset": "3"}
STORED = {"metadata": {"uid": "uid-sla", "resourceVersion": "7", "annotations": RESET}}
SAVE_GUARD = commands.SaveGuard(policy(uid="uid-sla"), GuardRecord(evicted=((NOW, (("shop", 10),)),)))
SAVE_PLACES = commands.SavePlaces(policy(uid="uid-sla"), (Place("a1", NOW),), 3)
CLEAR = commands.ClearGuardReset(policy(uid="uid-sla"))
EMPTY = NodeCondition("False", "PodsLeave", "")
SAY = commands.SaveCondition("n1", "uid-n1", EMPTY, 8, 0.0, changes_status=True)
CONFLICT = refusal(409, "the object has been modified")
NOT_SAVED = {
    commands.SaveHistory: "taint-history-not-saved",
    commands.SaveCondition: "drained-condition-not-saved",
    commands.SaveGuard: "guard-not-saved",
    commands.SavePlaces: "places-not-saved",
    commands.ClearGuardReset: "guard-reset-not-cleared",
}
by_kind = pytest.mark.parametrize(
    "order", [SAVE, SAY, SAVE_GUARD, SAVE_PLACES, CLEAR], ids=lambda order: type(order).__name__
)


def gone(order: commands.Write, error: Any = "") -> Any:
    return events.Written(order, WriteOutcome.GONE, error=str(error))


def outdated(order: commands.Write) -> Any:
    return events.Written(order, WriteOutcome.OUTDATED, error=str(CONFLICT))


def failed(order: commands.Write, error: Any = "") -> Any:
    return events.Written(order, WriteOutcome.FAILED, error=str(error))


def guard_stored(call: Call) -> Any:
    """The answer of an API server that stores the status that was sent."""
    return STORED | {"status": call.body["status"]}


@by_kind
async def test_a_write_is_answered_with_its_order(order):
    stage = Stage(default=lambda call: guard_stored(call) if "/status" in call.path else STORED)
    [event] = await stage.carry_out(order)
    assert (event.order, event.outcome) == (order, WriteOutcome.DONE)
    assert event.order is order


async def test_a_write_to_a_node_is_answered_with_the_version_that_it_made():
    assert await Stage(SAVED).carry_out(SAVE) == [events.Written(SAVE, WriteOutcome.DONE, 9)]


@by_kind
@pytest.mark.parametrize("is_held", [False, True], ids=["without the lease", "it no longer stands"])
async def test_nothing_is_written_without_lease_or_decision(order, is_held):
    stage = Stage(default=lambda _: STORED)
    stage.lease.is_held = is_held
    stage.fallen += [order] * is_held
    assert await stage.carry_out(order) == [failed(order)]
    assert stage.client.paths("PATCH") == []


@pytest.mark.parametrize("stored", [{"uid": "uid-sla"}, {"uid": "another", "annotations": RESET}])
async def test_a_reset_request_that_another_client_removed_is_gone(stored):
    stage = Stage(default=lambda _: {"metadata": {"resourceVersion": "7"} | stored})
    assert await stage.carry_out(CLEAR) == [gone(CLEAR)]
    assert stage.client.paths("PATCH") == []


async def test_writes_have_their_annotations_and_status():
    stage = Stage(default=lambda _: STORED)
    await stage.carry_out(SAVE, CLEAR)
    history, reset = (call.body["metadata"] for call in stage.client.calls if call.body)
    assert history["annotations"] == {"taintwarden.io/taint-history": "text"}
    assert reset == {"resourceVersion": "7", "annotations": {"taintwarden.io/guard-reset": None}}
    await stage.carry_out(SAVE_GUARD)
    guard = stage.client.calls[-1].body["status"]["guard"]
    assert guard["evicted"] == [
        {"until": "2023-11-14T22:13:20.000000Z", "namespaces": [{"namespace": "shop", "pods": 10}]}
    ]


@by_kind
@pytest.mark.parametrize("error", [refusal(500), refusal(503), refusal(408), refusal(429), Unreachable("reset")])
async def test_a_passing_failure_is_tried_once_and_retried_by_the_machine(order, error):
    stage = Stage(default=lambda _: error)
    with capture_logs() as logs:
        assert await stage.carry_out(order) == [failed(order, error)]
    assert len(stage.client.calls) == 1
    assert [entry["event"] for entry in logs] == [NOT_SAVED[type(order)]]


@by_kind
@pytest.mark.parametrize("code", [400, 403, 422])
async def test_a_refused_write_is_reported_as_refused(order, code):
    stage = Stage(default=lambda _: refusal(code))
    with capture_logs() as logs:
        assert await stage.carry_out(order) == [events.Written(order, WriteOutcome.REFUSED, error=str(refusal(code)))]
    assert [entry["event"] for entry in logs] == [NOT_SAVED[type(order)]]


NAMESAKE = refusal(422, causes=[{"field": "metadata.uid"}])


@pytest.mark.parametrize(
    ("order", "error"),
    [
        (SAVE, refusal(404)),
        (SAVE, refusal(409, "UID in precondition: a")),
        (SAVE, NAMESAKE),
        (CLEAR, refusal(404)),
        (CLEAR, NAMESAKE),
        (SAVE_GUARD, refusal(404)),
        (SAVE_PLACES, refusal(404)),
    ],
)
async def test_a_write_to_an_object_that_is_gone_is_not_logged(order, error):
    stage = Stage(default=lambda _: error)
    with capture_logs() as logs:
        [event] = await stage.carry_out(order)
    assert event in (gone(order), gone(order, error))
    assert logs == []


@by_kind
async def test_a_404_of_a_load_balancer_is_a_failure(order):
    """An object that counts as gone is not written again: a deadline would not outlive the process."""
    stage = Stage(default=lambda _: foreign_404())
    with capture_logs() as logs:
        assert await stage.carry_out(order) == [failed(order, foreign_404())]
    assert [entry["event"] for entry in logs] == [NOT_SAVED[type(order)]]


@pytest.mark.parametrize("order", [SAVE, CLEAR])
async def test_a_conflict_with_another_client_is_outdated_and_not_gone(order):
    """The API server tries a merge patch a few times itself; then it answers 409."""
    stage = Stage(CONFLICT)
    with capture_logs() as logs:
        assert await stage.carry_out(order) == [outdated(order)]
    assert logs == []


@by_kind
async def test_a_write_that_fails_for_long_is_logged_once_for_each_reason(order):
    answer: Any = refusal(500)
    stage = Stage(default=lambda call: guard_stored(call) if answer is STORED and "/status" in call.path else answer)
    with capture_logs() as logs:
        for answer in (refusal(500, "one"), refusal(500, "two"), refusal(403), STORED, refusal(403)):  # noqa: B007
            await stage.carry_out(order)
    assert len(logs) == 3


async def test_the_lease_is_checked_again_before_each_write():
    def lose(_: Call) -> Any:
        stage.lease.is_held = False
        return SAVED

    stage = Stage(default=lose)
    answers = await stage.carry_out(*[commands.SaveHistory(f"n{number}", "u", "t") for number in range(10)])
    assert len(stage.client.calls) == 1
    assert [event.outcome for event in answers].count(WriteOutcome.FAILED) == 9


# -- conditions -------------------------------------------------------------------------------------------------------

DRAINED = commands.SaveCondition("n1", "uid-n1", NodeCondition("True", "Drained", ""), 8, 0.0, changes_status=True)
PODS = {"items": [{"metadata": {"uid": "uid-a", "resourceVersion": "5"}}]}


async def test_a_node_is_drained_only_if_its_stored_pods_are_known():
    stage = Stage(PODS)
    assert await stage.carry_out(DRAINED) == [events.Written(DRAINED, WriteOutcome.OUTDATED)]
    assert [call.method for call in stage.client.calls] == ["GET"]
    stage = Stage(PODS)
    stage.known.append("uid-a")
    assert await stage.carry_out(DRAINED) == [events.Written(DRAINED, WriteOutcome.DONE, 9)]
    assert [call.method for call in stage.client.calls] == ["GET", "PATCH"]


async def test_a_node_is_drained_once_the_stream_has_delivered_the_pods_that_were_read():
    """The pods of a tenant may change all the time, and each read is some milliseconds ahead of the stream."""
    stage = Stage(PODS)
    asyncio.get_running_loop().call_later(0.4, stage.known.append, "uid-a")
    assert await stage.carry_out(DRAINED) == [events.Written(DRAINED, WriteOutcome.DONE, 9)]
    assert [call.method for call in stage.client.calls] == ["GET", "PATCH"]


async def test_pods_are_not_read_before_a_condition_that_a_node_is_not_drained():
    stage = Stage()
    await stage.carry_out(SAY)
    assert [call.method for call in stage.client.calls] == ["PATCH"]


# -- guards -----------------------------------------------------------------------------------------------------------


async def test_the_guard_of_a_namesake_is_gone_and_not_logged():
    stage = Stage({"metadata": {"uid": "another", "resourceVersion": "7"}})
    with capture_logs() as logs:
        assert await stage.carry_out(SAVE_GUARD) == [gone(SAVE_GUARD)]
    assert (logs, stage.client.paths("PATCH")) == ([], [])


async def test_a_conflict_makes_the_effector_read_the_policy_again():
    stage = Stage(STORED, CONFLICT, STORED, guard_stored)
    assert await stage.carry_out(SAVE_GUARD) == [events.Written(SAVE_GUARD, WriteOutcome.DONE)]


async def test_a_policy_that_conflicts_at_each_try_is_retried_by_the_machine():
    stage = Stage(default=by_path({"GET /sla": STORED, "PATCH /status": CONFLICT}))
    with capture_logs():
        assert await stage.carry_out(SAVE_GUARD) == [outdated(SAVE_GUARD)]
    assert len(stage.client.paths("PATCH")) == RECORD_TRIES


async def test_a_replica_that_lost_the_lease_does_not_overwrite_the_next_leader():
    stage = Stage(STORED, default=lambda _: STORED)

    def lose(_: Call) -> Exception:
        stage.lease.is_held = False
        return CONFLICT

    stage.client.answers.append(lose)
    with capture_logs():
        assert await stage.carry_out(SAVE_GUARD) == [failed(SAVE_GUARD)]
    assert len(stage.client.paths("PATCH")) == 1


LATER = STORED | {"status": {"guard": {"term": 8}}}


async def test_the_record_of_a_later_leader_is_not_overwritten():
    stage = Stage(default=by_path({"GET /sla": LATER, "PATCH /status": {}}))
    stage.lease.confirmed = False
    with capture_logs() as logs:
        [event] = await stage.carry_out(SAVE_GUARD)
    assert stage.client.paths("PATCH") == []
    assert event == failed(SAVE_GUARD, "the record is of term 0, and one of term 8 is stored")
    assert logs[0]["reason"] == event.error


async def test_a_leader_of_a_new_lease_continues_from_the_stored_term():
    """Terms count the holders of a Lease: a deleted Lease begins at 0 again, which must not end all evictions."""
    stage = Stage(default=by_path({"GET /sla": LATER, "PATCH /status": guard_stored}))
    assert await stage.carry_out(SAVE_GUARD) == [events.Written(SAVE_GUARD, WriteOutcome.DONE)]
    assert stage.client.calls[-1].body["status"]["guard"]["term"] == 8

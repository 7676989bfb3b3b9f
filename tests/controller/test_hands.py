"""Commands carried out: one call each, one event back, and nothing without the lease."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from structlog.testing import capture_logs

from controller import NOW, Clock, pod, policy, verdict
from kube.scripted import Call, ScriptedClient, by_path, refusal
from taintwarden.controller.cache import Translator
from taintwarden.controller.hands import GUARD_TRIES, HISTORY_WRITES, NODE_READS, SAVE_RETRY_SECONDS, Hands
from taintwarden.engine.limits.guard import GuardRecord
from taintwarden.engine.machine import commands, events
from taintwarden.engine.machine.events import Outcome
from taintwarden.kube.errors import Unreachable
from taintwarden.kube.evictor import Evictor
from taintwarden.telemetry.metrics import Metrics

pytestmark = pytest.mark.looptime

SAVE = commands.SaveHistory("n1", "uid-n1", "text")
EVICT = commands.Evict(pod(), verdict())
BLOCKED = refusal(429, "disruption budget", retry_after=10.0)


class Held:
    held = True


class Stage:
    def __init__(self, *answers: Any, default: Any = lambda _: {}) -> None:
        self.client = ScriptedClient(*answers, default=default)
        self.lease = Held()
        self.fed: list[Any] = []
        self.metrics = Metrics()
        self.major: list[asyncio.Task[None]] = []
        self.minor: list[asyncio.Task[None]] = []
        self.version = 7
        self.hands = Hands(
            client=self.client,
            evictor=Evictor(self.client),
            lease=self.lease,
            translator=Translator(Clock()),
            metrics=self.metrics,
            feed=self.fed.append,
            newest_version=lambda: self.version,
            spawn=self._spawning(self.major),
            spawn_minor=self._spawning(self.minor),
        )

    @staticmethod
    def _spawning(tasks: list[asyncio.Task[None]]) -> Any:
        def spawn(work: Coroutine[Any, Any, None]) -> None:
            tasks.append(asyncio.create_task(work))

        return spawn

    async def carry_out(self, *orders: Any) -> list[Any]:
        for order in orders:
            self.hands.carry_out(order)
        await asyncio.gather(*self.major, *self.minor)
        return self.fed


# -- evictions --------------------------------------------------------------------------------------------------------


async def test_an_eviction_is_answered():
    stage = Stage()
    assert await stage.carry_out(EVICT) == [events.Settled("uid-web-1", Outcome.EVICTED)]
    assert stage.client.paths() == ["/api/v1/namespaces/shop/pods/web-1/eviction"]


async def test_what_the_server_says_comes_back():
    stage = Stage(BLOCKED)
    assert await stage.carry_out(EVICT) == [events.Settled("uid-web-1", Outcome.BLOCKED, "disruption budget", 10.0)]


async def test_without_the_lease_nothing_is_asked():
    stage = Stage()
    stage.lease.held = False
    assert await stage.carry_out(EVICT) == [events.Settled("uid-web-1", Outcome.NOT_LEADING)]
    assert stage.client.calls == []


async def test_a_deletion_is_one_with_its_reason():
    stage = Stage()
    await stage.carry_out(commands.Evict(pod(), verdict(), delete=True))
    patch, delete = stage.client.calls
    assert (patch.method, delete.method) == ("PATCH", "DELETE")
    [condition] = patch.body["status"]["conditions"]
    assert condition["message"] == "Taintwarden: taint sla=940:NoExecute is not tolerated (sla Gt '950' does not hold)"


@pytest.mark.parametrize("delete", [False, True])
async def test_a_grace_period_is_handed_on(delete):
    stage = Stage()
    await stage.carry_out(commands.Evict(pod(), verdict(), delete, 3))
    body = stage.client.calls[-1].body
    assert (body if delete else body["deleteOptions"])["gracePeriodSeconds"] == 3


async def test_calls_are_measured():
    stage = Stage()
    await stage.carry_out(EVICT)
    count = stage.metrics.registry.get_sample_value("taintwarden_eviction_request_duration_seconds_count")
    assert count == 1


async def test_evictions_are_let_to_their_end_and_reads_are_not():
    stage = Stage()
    await stage.carry_out(EVICT, commands.CheckNode("n1"), SAVE)
    assert (len(stage.major), len(stage.minor)) == (1, 2)


# -- fresh reads ------------------------------------------------------------------------------------------------------

NODE = {"metadata": {"name": "n1", "uid": "uid-n1", "resourceVersion": "5"}}


async def test_a_node_is_read_and_told_with_the_version_the_read_began_at():
    stage = Stage(NODE)
    [event] = await stage.carry_out(commands.CheckNode("n1"))
    assert isinstance(event, events.NodeChecked)
    assert (event.name, event.resource_version) == ("n1", 7)
    assert event.node is not None
    assert event.node.uid == "uid-n1"


async def test_what_comes_during_the_read_is_not_covered_by_it():
    async def slow(_: Call) -> Any:
        stage.version = 99
        return NODE

    stage = Stage(slow)
    [event] = await stage.carry_out(commands.CheckNode("n1"))
    assert event.resource_version == 7


async def test_a_node_that_is_gone_is_told():
    stage = Stage(refusal(404))
    assert await stage.carry_out(commands.CheckNode("n1")) == [events.NodeChecked("n1", None, 7)]


@pytest.mark.parametrize("error", [refusal(500), refusal(403), Unreachable("reset")])
async def test_a_read_that_fails_is_told_and_logged(error):
    stage = Stage(error)
    with capture_logs() as logs:
        assert await stage.carry_out(commands.CheckNode("n1")) == [events.CheckFailed("n1")]
    assert [(entry["event"], entry["node"]) for entry in logs] == [("node-check-failed", "n1")]


async def test_few_nodes_are_read_at_once():
    under_way = most = 0

    async def slow(_: Call) -> Any:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(1)
        under_way -= 1
        return NODE

    stage = Stage(default=slow)
    await stage.carry_out(*[commands.CheckNode(f"n{number}") for number in range(40)])
    assert most == NODE_READS
    assert len(stage.fed) == 40


# -- the durable clock ------------------------------------------------------------------------------------------------


async def test_a_history_is_saved_and_told():
    stage = Stage()
    assert await stage.carry_out(SAVE) == [events.HistorySaved("n1", succeeded=True)]
    assert stage.client.calls[0].body["metadata"]["uid"] == "uid-n1"


@pytest.mark.parametrize("error", [refusal(500), refusal(503), refusal(429), Unreachable("reset")])
async def test_what_may_pass_is_tried_again(error):
    stage = Stage(error, error)
    assert await stage.carry_out(SAVE) == [events.HistorySaved("n1", succeeded=True)]
    times = [call.at for call in stage.client.calls]
    assert times == [0.0, SAVE_RETRY_SECONDS, 2 * SAVE_RETRY_SECONDS]


@pytest.mark.parametrize("code", [400, 403])
async def test_what_does_not_pass_is_given_up_and_logged(code):
    stage = Stage(refusal(code))
    with capture_logs() as logs:
        assert await stage.carry_out(SAVE) == [events.HistorySaved("n1", succeeded=False)]
    assert [entry["event"] for entry in logs] == ["taint-history-not-saved"]
    assert len(stage.client.calls) == 1


@pytest.mark.parametrize(
    "error", [refusal(404), refusal(409), refusal(422, causes=[{"field": "metadata.uid"}])], ids=["404", "409", "422"]
)
async def test_a_node_that_is_gone_needs_no_history_and_no_complaint(error):
    stage = Stage(error)
    with capture_logs() as logs:
        assert await stage.carry_out(SAVE) == [events.HistorySaved("n1", succeeded=False)]
    assert logs == []


async def test_without_the_lease_nothing_is_saved():
    stage = Stage()
    stage.lease.held = False
    assert await stage.carry_out(SAVE) == [events.HistorySaved("n1", succeeded=False)]
    assert stage.client.calls == []


async def test_losing_the_lease_ends_the_trying():
    def refuse(_: Call) -> Exception:
        if len(stage.client.calls) == 3:
            stage.lease.held = False
        return refusal(500)

    stage = Stage(default=refuse)
    assert await stage.carry_out(SAVE) == [events.HistorySaved("n1", succeeded=False)]
    assert len(stage.client.calls) == 3


async def test_few_histories_are_saved_at_once():
    under_way = most = 0

    async def slow(_: Call) -> Any:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(1)
        under_way -= 1
        return {}

    stage = Stage(default=slow)
    await stage.carry_out(*[commands.SaveHistory(f"n{number}", "u", "t") for number in range(10)])
    assert most == HISTORY_WRITES
    assert len(stage.fed) == 10


async def test_a_history_that_waits_to_be_tried_again_keeps_no_other_back():
    def refuse_first(call: Call) -> Any:
        return refusal(500) if call.path.endswith("/bad") and call.at < 100 else {}

    stage = Stage(default=refuse_first)
    bad = [commands.SaveHistory("bad", "u", "t")] * HISTORY_WRITES
    for command in (*bad, SAVE):
        stage.hands.carry_out(command)
    await asyncio.sleep(5)
    assert events.HistorySaved("n1", succeeded=True) in stage.fed
    stage.lease.held = False
    await asyncio.gather(*stage.minor)


# -- labels ----------------------------------------------------------------------------------------------------------

MIRROR = commands.MirrorTaints("n1", "uid-n1", {"value.taintwarden.io/sla": "950", "value.taintwarden.io/cni": None})


async def test_labels_are_written_and_told():
    stage = Stage()
    assert await stage.carry_out(MIRROR) == [events.TaintsMirrored("n1", succeeded=True)]
    assert stage.client.calls[0].body == {"metadata": {"uid": "uid-n1", "labels": MIRROR.labels}}


async def test_labels_are_written_once_the_server_is_back():
    stage = Stage(refusal(500), Unreachable("reset"))
    assert await stage.carry_out(MIRROR) == [events.TaintsMirrored("n1", succeeded=True)]


async def test_refused_labels_are_given_up_and_logged():
    stage = Stage(refusal(403))
    with capture_logs() as logs:
        assert await stage.carry_out(MIRROR) == [events.TaintsMirrored("n1", succeeded=False)]
    assert [entry["event"] for entry in logs] == ["node-labels-not-written"]


async def test_without_the_lease_no_labels_are_written():
    stage = Stage()
    stage.lease.held = False
    assert await stage.carry_out(MIRROR) == [events.TaintsMirrored("n1", succeeded=False)]
    assert stage.client.calls == []


# -- guards -----------------------------------------------------------------------------------------------------------

STORED = {"metadata": {"uid": "uid-sla", "resourceVersion": "7"}}
SAVE_GUARD = commands.SaveGuard(policy(uid="uid-sla"), GuardRecord(spent=((NOW, 10),)))
CLEAR = commands.ClearGuardReset(policy(uid="uid-sla"))
GUARD_SAVED, GUARD_NOT_SAVED = (events.GuardSaved("sla", succeeded=well) for well in (True, False))
CONFLICT = refusal(409, "the object has been modified")


async def test_a_guard_is_saved_and_told():
    stage = Stage(STORED)
    assert await stage.carry_out(SAVE_GUARD) == [GUARD_SAVED]
    [_, write] = stage.client.calls
    assert write.body["status"]["guard"]["spent"] == [{"until": "2023-11-14T22:13:20.000000Z", "pods": 10}]


async def test_without_the_lease_no_guard_is_saved():
    stage = Stage()
    stage.lease.held = False
    assert await stage.carry_out(SAVE_GUARD) == [GUARD_NOT_SAVED]
    assert stage.client.calls == []


async def test_the_guard_of_a_namesake_is_told_as_not_saved_and_without_complaint():
    stage = Stage({"metadata": {"uid": "another", "resourceVersion": "7"}})
    with capture_logs() as logs:
        assert await stage.carry_out(SAVE_GUARD) == [GUARD_NOT_SAVED]
    assert (logs, stage.client.paths("PATCH")) == ([], [])


async def test_whoever_writes_the_policy_meanwhile_makes_it_read_again():
    stage = Stage(STORED, CONFLICT, STORED, {})
    assert await stage.carry_out(SAVE_GUARD) == [GUARD_SAVED]


async def test_a_policy_that_is_written_all_the_time_is_left_to_the_machine():
    stage = Stage(default=by_path({"GET /sla": STORED, "PATCH /status": CONFLICT}))
    with capture_logs():
        assert await stage.carry_out(SAVE_GUARD) == [GUARD_NOT_SAVED]
    assert len(stage.client.paths("PATCH")) == GUARD_TRIES


async def test_whoever_lost_the_lead_does_not_write_over_the_next_leader():
    stage = Stage(STORED)

    def lose(_: Call) -> Exception:
        stage.lease.held = False
        return CONFLICT

    stage.client.answers.append(lose)
    with capture_logs():
        assert await stage.carry_out(SAVE_GUARD) == [GUARD_NOT_SAVED]
    assert len(stage.client.calls) == 2


@pytest.mark.parametrize("error", [refusal(500), refusal(403), refusal(422), Unreachable("reset")])
async def test_a_guard_that_cannot_be_saved_is_asked_for_again_by_the_machine_only(error):
    stage = Stage(error)
    with capture_logs() as logs:
        assert await stage.carry_out(SAVE_GUARD) == [GUARD_NOT_SAVED]
    assert [(entry["event"], entry["policy"]) for entry in logs] == [("guard-not-saved", "sla")]
    assert len(stage.client.calls) == 1


async def test_a_guard_that_cannot_be_saved_for_long_is_complained_about_once():
    stage = Stage(*[refusal(500)] * 3, STORED, {}, refusal(500))
    with capture_logs() as logs:
        for _ in range(5):
            await stage.carry_out(SAVE_GUARD)
    assert len(logs) == 2  # it was saved in between


async def test_a_reset_that_was_done_is_taken_off():
    stage = Stage()
    assert await stage.carry_out(CLEAR) == []
    [call] = stage.client.calls
    assert call.body["metadata"] == {"uid": "uid-sla", "annotations": {"taintwarden.io/guard-reset": None}}


async def test_taking_a_reset_off_is_tried_again():
    stage = Stage(refusal(500), Unreachable("reset"), refusal(429))
    await stage.carry_out(CLEAR)
    assert len(stage.client.calls) == 4


async def test_a_reset_that_cannot_be_taken_off_is_complained_about():
    stage = Stage(refusal(403))
    with capture_logs() as logs:
        await stage.carry_out(CLEAR)
    assert [(entry["event"], entry["policy"]) for entry in logs] == [("guard-reset-not-cleared", "sla")]
    assert len(stage.client.calls) == 1


async def test_a_policy_that_is_gone_has_no_reset_to_take_off():
    stage = Stage(refusal(404))
    with capture_logs() as logs:
        await stage.carry_out(CLEAR)
    assert logs == []


async def test_without_the_lease_no_reset_is_taken_off():
    stage = Stage()
    stage.lease.held = False
    await stage.carry_out(CLEAR)
    assert stage.client.calls == []


async def test_what_concerns_guards_is_let_to_its_end():
    stage = Stage(STORED)
    await stage.carry_out(SAVE_GUARD, CLEAR)
    assert (len(stage.major), len(stage.minor)) == (2, 0)

"""Events are written once for the same note, at a limited rate, and never delay other work."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from structlog.testing import capture_logs

from engine.kept import kept
from kube import wire
from kube.scripted import ScriptedClient, foreign_404, refusal
from localcluster import LocalCluster
from taintwarden.fields.names import DNS_SUBDOMAIN
from taintwarden.fields.text import shortened
from taintwarden.kube.calls.recorder import (
    BUSY_FACTOR,
    MAX_NOTE_BYTES,
    NORMAL,
    REPEAT_SECONDS,
    SILENT_SECONDS,
    TIMEOUT_SECONDS,
    WARNING,
    EventSubject,
    Message,
    Recorder,
    event_name,
)
from taintwarden.kube.errors import Unreachable

pytestmark = pytest.mark.looptime

POD = EventSubject("Pod", "web-1", "uid-1", "shop")
NODE = EventSubject("Node", "n1", "uid-n1")


def message(
    note: str | Callable[[], str] = "note", subject: EventSubject = POD, reason: str = "Evicted", kind: str = NORMAL
) -> Message:
    return Message(subject, kind, reason, "Evict", note)


def fine() -> ScriptedClient:
    return ScriptedClient(default=lambda _: {})


@asynccontextmanager
async def running(
    client: ScriptedClient, per_second: float = 10.0, instance: str = "taintwarden-0", **more: Any
) -> AsyncIterator[Recorder]:
    made = Recorder(client, instance, per_second, **more)
    task = asyncio.create_task(made.run())
    yield made
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def written(*messages: Message, **more: Any) -> ScriptedClient:
    """The client of a recorder that was given these messages, with its calls."""
    client = fine()
    async with running(client, **more) as made:
        for one in messages:
            made.record(one)
        await asyncio.sleep(5)
    return client


def notes(client: ScriptedClient) -> list[str]:
    return [call.body["note"] for call in client.calls if call.method == "POST"]


# -- what is written --------------------------------------------------------------------------------------------------


async def test_an_event_of_a_pod_is_written_to_its_namespace():
    client = await written(message("Evicted from n1", kind=WARNING))
    [call] = client.calls
    assert (call.method, call.path) == ("POST", "/apis/events.k8s.io/v1/namespaces/shop/events")
    assert call.body["metadata"]["namespace"] == "shop"
    assert call.body["regarding"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "web-1",
        "namespace": "shop",
        "uid": "uid-1",
    }
    assert (call.body["type"], call.body["reason"], call.body["action"]) == ("Warning", "Evicted", "Evict")
    assert call.body["note"] == "Evicted from n1"
    assert call.body["reportingInstance"] == "taintwarden-0"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", call.body["eventTime"])


async def test_an_event_of_a_node_is_written_to_the_default_namespace_and_refers_to_none():
    [call] = (await written(message(subject=NODE))).calls
    assert call.path == "/apis/events.k8s.io/v1/namespaces/default/events"
    assert call.body["regarding"] == {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "uid-n1"}


@pytest.mark.parametrize("length", [1, 1023, 1024, 1025, 5000])
async def test_a_note_has_at_most_a_kibibyte(length):
    client = await written(message("n" * length))
    assert [len(note) for note in notes(client)] == [min(length, MAX_NOTE_BYTES)]


@pytest.mark.parametrize("letter", ["é", "世", "🜚"])
@pytest.mark.parametrize("before", [0, 1, 2, 3])
async def test_no_letter_is_cut_in_two(letter, before):
    client = await written(message("x" * before + letter * 1000))
    [note] = notes(client)
    assert MAX_NOTE_BYTES - 4 < len(note.encode()) <= MAX_NOTE_BYTES
    assert note == ("x" * before + letter * 1000)[: len(note)]


async def test_a_long_instance_is_cut_as_the_api_asks():
    client = await written(message(), instance="i" * 300)
    assert len(client.calls[0].body["reportingInstance"]) == 128


# -- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [message("b"), message("a", reason="Other"), message("a", EventSubject("Pod", "web-1", "uid-2", "shop"))],
    ids=["note", "reason", "uid"],
)
def test_an_event_that_differs_has_another_name(other):
    assert event_name(message("a")) != event_name(other)


def test_an_event_has_the_name_of_earlier_versions():
    """After an upgrade the count of the same Event is increased; it is not written twice."""
    assert event_name(message("a")) == "web-1.104801d995b69d02"


def test_parts_do_not_run_into_each_other():
    assert event_name(message("bc", reason="a")) != event_name(message("c", reason="ab"))


labels = st.text("ab-", max_size=20).map("a{}b".format)


@given(st.lists(labels, min_size=1, max_size=25).map(lambda parts: ".".join(parts)[:253].rstrip("-.")))
def test_names_are_legal(name):
    assert re.fullmatch(DNS_SUBDOMAIN, event_name(message(subject=EventSubject("Pod", name, "uid", "ns"))))


@pytest.mark.parametrize("end", ["-b", ".b", "--b", "-.b"])
def test_a_name_that_is_cut_is_legal_too(end):
    name = "a" * (200 - len(end) + 1) + end + "b" * 20
    assert re.fullmatch(DNS_SUBDOMAIN, event_name(message(subject=EventSubject("Pod", name, "uid", "ns"))))


# -- once -------------------------------------------------------------------------------------------------------------


async def test_the_same_event_twice_is_written_once():
    client = fine()
    async with running(client) as made:
        made.record(message("a"))
        made.record(message("a"))
        await asyncio.sleep(1)
        made.record(message("a"))
        await asyncio.sleep(REPEAT_SECONDS - 10)
    assert notes(client) == ["a"]


async def test_after_some_minutes_the_same_event_is_written_again():
    client = fine()
    async with running(client) as made:
        made.record(message("a"))
        await asyncio.sleep(REPEAT_SECONDS + 1)
        made.record(message("a"))
        await asyncio.sleep(1)
    assert notes(client) == ["a", "a"]


@pytest.mark.parametrize(
    ("stored", "count"),
    [
        ({}, 2),
        ({"series": None}, 2),
        ({"series": {"count": 1}}, 2),
        ({"series": {"count": 2}}, 3),
        ({"series": {"count": 41}}, 42),
    ],
)
async def test_an_event_of_an_earlier_process_is_counted_up(stored, count):
    client = ScriptedClient(refusal(409, reason="AlreadyExists"), stored, {})
    async with running(client) as made:
        made.record(message("a"))
        await asyncio.sleep(1)
    post, read, patch = client.calls
    path = f"{post.path}/{post.body['metadata']['name']}"
    assert (read.method, read.path, read.body) == ("PATCH", path, {})
    assert (patch.method, patch.path, patch.content_type) == ("PATCH", path, "application/merge-patch+json")
    assert patch.body["series"]["count"] == count
    assert re.fullmatch(r".*\.\d{6}Z", patch.body["series"]["lastObservedTime"])
    assert made.dropped == 0


@pytest.mark.parametrize("count", [2**31 - 1, 2**62, -5])
async def test_an_invalid_stored_count_is_not_used(count):
    client = ScriptedClient(refusal(409), {"series": {"count": count}}, {})
    async with running(client) as made:
        made.record(message("a"))
        await asyncio.sleep(1)
    assert 2 <= client.calls[2].body["series"]["count"] < 2**31


async def test_counting_up_is_accepted_by_an_api_server():
    cluster = LocalCluster()
    async with cluster.serve() as server, wire.client(server.url) as client:
        for _ in range(4):
            made = Recorder(client, "taintwarden-0", 1000)
            made.record(message(subject=NODE))
            await made.flush(5)
    [event] = cluster.store.list("events")
    assert event["series"]["count"] == 4


# -- limited rate -----------------------------------------------------------------------------------------------------


async def test_events_are_written_at_their_pace():
    client = fine()
    async with running(client, per_second=4) as made:
        for number in range(40):
            made.record(message(str(number)))
        await asyncio.sleep(5.1)
    assert len(client.calls) == 21


async def test_while_evictions_are_many_the_pace_is_slower():
    client = fine()
    async with running(client, per_second=4, is_busy=lambda: True) as made:
        for number in range(40):
            made.record(message(str(number)))
        await asyncio.sleep(5.1)
    assert len(client.calls) == 1 + 20 // BUSY_FACTOR


async def test_an_alarm_waits_neither_for_profiles_nor_for_pods():
    client = fine()
    async with running(client, per_second=10, is_busy=lambda: True) as made:
        for number in range(1_000):
            profile = EventSubject(
                "TolerationProfile", f"p{number}", f"uid-{number}", "shop", "taintwarden.io/v1alpha1"
            )
            made.record(message(f"invalid {number}", profile, "InvalidProfile"))
            made.record(message(f"pod {number}"))
        await asyncio.sleep(0.5)
        written = len(notes(client))
        policy = EventSubject("TaintEvictionPolicy", "sla", "uid", api_version="taintwarden.io/v1alpha1")
        made.record(message("tripped", policy, "GuardTripped"))
        await asyncio.sleep(0.2)
    assert notes(client)[written] == "tripped"


@pytest.mark.parametrize(("seconds", "dropped"), [(3.0, 19), (3_600.0, 20)])
async def test_a_slow_webhook_of_a_namespace_delays_no_events_of_others(seconds, dropped):
    async def answer(call):
        await asyncio.sleep(seconds if "/loud/" in call.path else 0.0)
        return {}

    client = ScriptedClient(default=answer)
    with capture_logs():
        async with running(client) as recorder:
            for number in range(20):
                for namespace in ("loud", "shop"):
                    recorder.record(message(f"{number}", replace(POD, namespace=namespace, uid=namespace)))
            await asyncio.sleep(TIMEOUT_SECONDS + 3.0)
            assert len([path for path in client.paths("POST") if "/shop/" in path]) == 20
            assert recorder.dropped == dropped
            await asyncio.sleep(SILENT_SECONDS)
            recorder.record(message("later", replace(POD, namespace="loud")))
            await asyncio.sleep(1.0)
    assert len([path for path in client.paths("POST") if "/loud/" in path]) == 2


async def test_events_that_were_written_already_take_no_place():
    client = fine()
    async with running(client, per_second=1, max_queued=1) as made:
        made.record(message("a"))
        await asyncio.sleep(3)
        made.record(message("b"))
        made.record(message("a"))
        assert made.dropped == 0
        await asyncio.sleep(3)
    assert notes(client) == ["a", "b"]


# -- notes that are made late -----------------------------------------------------------------------------------------


async def test_a_note_is_made_when_the_event_is_written():
    client, made_at = fine(), []
    clock = asyncio.get_running_loop().time

    def note() -> str:
        made_at.append(clock())
        return "late"

    async with running(client, per_second=1) as made:
        made.record(message("a"))
        made.record(message(note))
        assert made_at == []
        await asyncio.sleep(5)
    assert notes(client) == ["a", "late"]
    assert len(made_at) == 1


async def test_of_the_same_reason_about_the_same_object_the_latest_note_is_written():
    client = fine()
    async with running(client) as made:
        made.record(message(lambda: "earlier"))
        made.record(message(lambda: "later"))
        made.record(message(lambda: "other reason", reason="Other"))
        made.record(msgspec.structs.replace(message(lambda: "other policy"), policy="other"))
        made.record(message(lambda: "other object", subject=EventSubject("Pod", "web-1", "uid-2", "bank")))
        await asyncio.sleep(5)
    assert sorted(notes(client)) == ["later", "other object", "other policy", "other reason"]


async def test_a_late_note_that_replaces_another_is_written_after_later_events():
    client = fine()
    async with running(client) as made:
        made.record(message(lambda: "will be evicted at 1", reason="Scheduled"))
        made.record(message("stays", reason="Cancelled"))
        made.record(message(lambda: "will be evicted at 2", reason="Scheduled"))
        await asyncio.sleep(5)
    assert notes(client) == ["stays", "will be evicted at 2"]


async def test_a_late_note_that_was_written_already_is_not_written_again_and_delays_no_other():
    client = fine()
    async with running(client, per_second=1) as made:
        made.record(message("a"))
        await asyncio.sleep(2)
        made.record(message(lambda: "a"))
        made.record(message("b"))
        await asyncio.sleep(0.5)
    assert notes(client) == ["a", "b"]


async def test_others_run_while_late_notes_turn_out_to_be_repetitions():
    turns = 0
    async with running(fine()) as made:
        made.record(message("a"))
        await asyncio.sleep(1)
        for number in range(50):
            made.record(msgspec.structs.replace(message(lambda: "a"), policy=str(number)))
        while made._queue:
            turns += 1
            await asyncio.sleep(0)
    assert turns >= 50


async def test_late_notes_that_are_dropped_are_never_made():
    client, made_notes = fine(), []

    def note(text: str) -> str:
        made_notes.append(text)
        return text

    made = Recorder(client, "i", 1, max_queued=1)
    for number in range(3):
        made.record(message(lambda number=number: note(str(number)), reason=f"Reason{number}"))
    await made.flush(5)
    assert (made.dropped, made_notes) == (2, ["2"])


async def test_the_number_of_remembered_events_is_bounded():
    client = fine()
    async with running(client, max_remembered=2) as made:
        for note in "abcacb":
            made.record(message(note))
            await asyncio.sleep(1)
    assert notes(client) == ["a", "b", "c", "a", "b"]


async def test_events_that_may_be_repeated_are_not_remembered():
    client = fine()
    async with running(client) as made:
        for note in "ab":
            made.record(message(note))
        await asyncio.sleep(REPEAT_SECONDS + 1)
        assert kept(made, event_name(message("b")), without=client)
        made.record(message("a"))
        await asyncio.sleep(1)
        assert kept(made, event_name(message("a")), without=client)
        assert kept(made, event_name(message("b")), without=client) == []


@pytest.mark.parametrize("error", [refusal(403), refusal(404), foreign_404(), refusal(500), Unreachable("reset")])
async def test_a_refusal_is_counted_and_prevents_no_other_event(error):
    client = ScriptedClient(error, default=lambda _: {})
    async with running(client) as made:
        made.record(message("a"))
        made.record(message("b"))
        await asyncio.sleep(1)
    assert made.dropped == 1
    assert notes(client) == ["a", "b"]


@pytest.mark.parametrize(
    "error",
    [
        refusal(403, causes=[{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]),
        refusal(404, 'namespaces "shop" not found'),
    ],
)
async def test_an_event_in_a_deleted_namespace_is_no_failure(error):
    client = ScriptedClient(error, default=lambda _: {})
    async with running(client) as made:
        for _ in range(2):
            made.record(message("a"))
            await asyncio.sleep(1)
    assert made.dropped == 0
    assert notes(client) == ["a", "a"]  # the namespace may be there again


async def test_an_event_that_was_not_written_is_written_at_its_next_occurrence():
    client = ScriptedClient(refusal(500), default=lambda _: {})
    async with running(client) as made:
        for _ in range(3):
            made.record(message("a"))
            await asyncio.sleep(1)
    assert notes(client) == ["a", "a"]


async def test_events_that_are_not_written_are_counted_as_dropped_and_logged_once():
    """A right may be missing: the log has to say why there are no Events."""
    client = ScriptedClient(default=refusal(403))
    async with running(client) as made:
        with capture_logs() as logs:
            for note in "abc":
                made.record(message(note))
            await asyncio.sleep(1)
    assert made.dropped == 3
    assert [(one["event"], one["log_level"]) for one in logs] == [("event-not-written", "warning")]


async def test_an_event_that_expired_before_it_was_counted_up_is_a_failure():
    client = ScriptedClient(refusal(409), refusal(404))
    async with running(client) as made:
        made.record(message("a"))
        await asyncio.sleep(1)
    assert made.dropped == 1


# -- at the end -------------------------------------------------------------------------------------------------------


async def test_the_flush_ends_after_its_timeout():
    async def slow(_: Any) -> dict[str, Any]:
        await asyncio.sleep(1.9)
        return {}

    client = ScriptedClient(default=slow)
    made = Recorder(client, "i", 1)
    for number in range(10):
        made.record(message(str(number)))
    began = asyncio.get_running_loop().time()
    await made.flush(5)
    assert asyncio.get_running_loop().time() - began <= 5.01
    assert made.dropped == 7


async def test_a_long_note_is_cut_before_it_waits():
    recorder_of_many = Recorder(fine(), "taintwarden-0", 1.0)
    recorder_of_many.record(message("x" * 100_000))
    assert kept(recorder_of_many, shortened("x" * 100_000, MAX_NOTE_BYTES))
    assert kept(recorder_of_many, "x" * 100_000) == []

"""Streams of a scripted server: calls of the handler and requests to the server, also when watches fail."""

import asyncio
import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest

from kube.scripted import EndOfScriptError, ScriptedClient, Silence, refusal
from taintwarden.kube.calls.own_kinds import PROFILES
from taintwarden.kube.errors import TooLong, Unreachable
from taintwarden.kube.watch.paging import FIRST_LIMIT, GROWTH
from taintwarden.kube.watch.streams import Stream
from taintwarden.kube.watch.watching import FRAMES_AT_ONCE, StreamTimings
from taintwarden.kube.wire.json_frames import JsonFrames
from taintwarden.kube.wire.kinds import Identity, PodObject, WorkloadObject
from taintwarden.kube.wire.resources import (
    BUDGETS,
    CONTROLLERS,
    NAMESPACES,
    NODES,
    PODS,
)

TIMINGS = StreamTimings()

Heard = list[tuple[Any, ...]]
ALL = [PODS, NODES, NAMESPACES, BUDGETS, *CONTROLLERS]


def name_of(one: Any) -> str:
    """The name of an object; that of a workload comes from its UID, which alone is read."""
    return one.metadata.uid.removeprefix("uid-") if isinstance(one, WorkloadObject) else one.metadata.name


class EventHandler:
    """A handler that records its calls."""

    def __init__(self) -> None:
        self.heard: Heard = []

    def list_began(self) -> None:
        self.heard.append(("list began",))

    def listed(self, objects: Sequence[Any]) -> None:
        self.heard.append(("listed", [name_of(one) for one in objects]))

    def list_ended(self, resource_version: str) -> None:
        self.heard.append(("list ended", resource_version))

    def seen(self, obj: Any) -> None:
        self.heard.append(("seen", name_of(obj)))

    def lost(self, what: Identity) -> bool:
        self.heard.append(("lost", what.uid.removeprefix("uid-")))
        return bool(what.uid)

    def reached(self, resource_version: str) -> None:
        self.heard.append(("reached", resource_version))

    def undecodable(self, what: Identity, reason: str) -> None:
        assert reason
        self.heard.append(("undecodable", str(what)))

    def restarted(self, reason: str, detail: str) -> None:
        assert detail
        self.heard.append(("restarted", reason))

    def live(self, *, live: bool) -> None:
        """Ignore the change, which test_streams_liveness.py tests."""


class Followed:
    """The requests, calls of the handler and pauses after following a script to its end."""

    def __init__(self, client: ScriptedClient, handler: EventHandler, sleeps: list[float]) -> None:
        self.calls = client.calls
        self.heard = handler.heard
        self.sleeps = sleeps

    def of(self, *kinds: str) -> Heard:
        return [entry for entry in self.heard if entry[0] in kinds]

    @property
    def lists(self) -> list[dict[str, str]]:
        return [call.params for call in self.calls if "watch" not in call.params and call.params["limit"] != "1"]

    @property
    def watched_from(self) -> list[str]:
        return [call.params["resourceVersion"] for call in self.calls if "watch" in call.params]


async def follow(*answers: Any, resource: Any = PODS, **more: Any) -> Followed:
    client, handler, sleeps = ScriptedClient(*answers), EventHandler(), []

    async def sleep(seconds: float) -> None:
        sleeps.append(seconds)

    stream = Stream(client, resource, handler, sleep=sleep, jitter=lambda: 0.5, **more)  # the middle: delays are exact
    with pytest.raises(EndOfScriptError):
        await stream.run()
    return Followed(client, handler, sleeps)


def obj(name: str, version: int = 1, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)} | more}


def page(*objects: dict[str, Any], version: str = "10", more: str = "") -> dict[str, Any]:
    return {"kind": "PodList", "metadata": {"resourceVersion": version, "continue": more}, "items": list(objects)}


def frame(kind: str, value: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": value}).encode() + b"\n"


def bookmark(version: int) -> bytes:
    return frame("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(version), "creationTimestamp": None}})


def error(code: int, reason: str = "Expired") -> bytes:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return frame("ERROR", status | {"code": code, "reason": reason, "message": "made to fail"})


BAD = {"metadata": {"name": "bad", "namespace": "ns", "resourceVersion": "12", "labels": ["no", "map"]}}


# -- lists --------------------------------------------------------------------------------------------------------


async def test_pages_of_a_list_are_delivered_between_its_beginning_and_its_end():
    followed = await follow(page(obj("a"), obj("b"), more="t1"), page(obj("c")))
    assert followed.heard[:4] == [("list began",), ("listed", ["a", "b"]), ("listed", ["c"]), ("list ended", "10")]


async def test_pages_are_asked_for_by_the_token_of_the_page_before():
    followed = await follow(page(more="t1"), page(more="t2"), page())
    assert [asked.get("continue") for asked in followed.lists] == [None, "t1", "t2"]
    assert followed.lists[0]["limit"] == str(FIRST_LIMIT)


async def test_pages_of_small_objects_get_more_of_them_step_by_step():
    followed = await follow(page(obj("a"), more="t1"), page(more="t2"), page())
    limits = [FIRST_LIMIT, FIRST_LIMIT * GROWTH, FIRST_LIMIT * GROWTH**2]
    assert [asked["limit"] for asked in followed.lists] == list(map(str, limits))


async def test_a_page_that_is_too_long_is_requested_in_smaller_parts():
    too_long = TooLong("the answer has more than 9 bytes")
    followed = await follow(page(obj("a"), more="t1"), too_long, too_long, page(obj("b")))
    assert followed.of("listed")[:2] == [("listed", ["a"]), ("listed", ["b"])]
    asked = [(one.get("continue"), one["limit"]) for one in followed.lists]
    assert asked[:4] == [(None, "20"), ("t1", "160"), ("t1", "20"), ("t1", "2")]


async def test_an_object_that_is_too_long_is_tried_again_later():
    too_long = TooLong("the answer has more than 9 bytes")
    followed = await follow(too_long, too_long, too_long, page(obj("a")))
    assert followed.of("restarted", "listed")[:2] == [("restarted", "unreachable"), ("listed", ["a"])]


async def test_a_large_page_is_passed_on_in_parts():
    followed = await follow(page(*map(obj, "abcde")), objects_at_once=2)
    assert followed.heard[:4] == [
        ("list began",),
        ("listed", ["a", "b"]),
        ("listed", ["c", "d"]),
        ("listed", ["e"]),
    ]


async def test_a_list_that_expires_while_paging_begins_again_from_the_first_page():
    followed = await follow(page(obj("a"), more="t1"), refusal(410), page(obj("b")))
    assert followed.of("list began", "listed", "list ended") == [
        ("list began",),
        ("listed", ["a"]),
        ("list began",),
        ("listed", ["b"]),
        ("list ended", "10"),
    ]
    assert "continue" not in followed.lists[2]


async def test_a_list_that_is_refused_halfway_never_ends():
    followed = await follow(page(obj("a"), more="t1"), refusal(500), page(obj("a")))
    kinds = [entry[0] for entry in followed.heard]
    assert kinds[:4] == ["list began", "listed", "restarted", "list began"]
    assert kinds.count("list ended") == 1


async def test_an_undecodable_object_of_a_list_is_reported_and_others_are_delivered():
    followed = await follow(page(obj("a"), BAD, obj("c")))
    assert followed.heard[:3] == [("list began",), ("undecodable", "ns/bad"), ("listed", ["a", "c"])]


async def test_a_listed_value_that_is_no_object_is_reported_as_unknown():
    followed = await follow(page(obj("a"), 7), [])  # type: ignore[arg-type]
    assert followed.of("undecodable", "listed") == [("undecodable", "unknown"), ("listed", ["a"])]


@pytest.mark.parametrize(
    "body",
    [
        *(b"<html>maintenance</html>", b"", b'{"items":[', b"[]", b"null", b'"pods"', b'{"status":"ok"}'),
        *(b'{"metadata":{"resourceVersion":"9"},"items":%s}' % items for items in (b'"none"', b"{}")),
    ],
)
async def test_an_answer_that_is_no_list_is_requested_again(body):
    """If the answer of a proxy counted as a list, all objects would count as deleted."""
    followed = await follow(body, page(obj("a")))
    assert followed.of("list began", "listed", "restarted")[:4] == [
        ("list began",),
        ("restarted", "unreachable"),
        ("list began",),
        ("listed", ["a"]),
    ]
    assert followed.sleeps


async def test_a_list_without_items_is_an_empty_list_as_in_go():
    followed = await follow(b'{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":null}')
    assert followed.of("listed", "list ended") == [("listed", []), ("list ended", "9")]


# -- watches ------------------------------------------------------------------------------------------------------


async def test_frames_are_delivered_in_order_with_the_reached_version():
    lines = frame("ADDED", obj("a", 11)) + frame("MODIFIED", obj("a", 12)) + frame("DELETED", obj("a", 13))
    followed = await follow(page(), [lines])
    assert followed.heard[3:7] == [
        ("seen", "a"),
        ("seen", "a"),
        ("lost", "a"),
        ("reached", "13"),
    ]


async def test_a_bookmark_is_progress_and_no_change():
    followed = await follow(page(), [bookmark(99)])
    assert followed.of("seen", "reached") == [("reached", "99")]
    assert followed.watched_from == ["10", "99"]


async def test_bookmarks_are_requested():
    followed = await follow(page())
    assert followed.calls[1].params["allowWatchBookmarks"] == "true"


async def test_the_server_is_asked_to_end_watches_at_different_times():
    followed = await follow(page())
    low, high = TIMINGS.watch
    assert followed.calls[1].params["timeoutSeconds"] == str((low + high) // 2)


async def test_a_watch_that_ran_out_is_resumed_at_once_where_it_was():
    followed = await follow(page(), [frame("ADDED", obj("a", 11))], [frame("ADDED", obj("b", 12))])
    assert followed.watched_from == ["10", "11", "12"]
    assert followed.of("restarted") == [("restarted", "ended")] * 2
    assert len(followed.lists) == 1
    assert followed.sleeps == []


@pytest.mark.parametrize("begin", [b"{", b"\0\xff\xff\xff"])
async def test_a_frame_without_an_end_is_given_up(begin):
    flood = [begin, *[b"x" * 2**20] * 40]
    followed = await follow(page(), flood)
    assert followed.of("restarted")[0] == ("restarted", "unreachable")


async def test_a_frame_in_many_pieces_is_split_once(monkeypatch):
    split, whole = Mock(wraps=JsonFrames(PodObject).split), frame("ADDED", obj("a", 11))
    monkeypatch.setattr(JsonFrames, "split", split)
    followed = await follow(page(), [whole[at : at + 1] for at in range(len(whole))])
    assert followed.of("seen") == [("seen", "a")]
    assert split.call_count == 1


def nested(name: str, key: str = "managedFields", depth: int = 9_000) -> bytes:
    """An object that a tenant may create, since the API server stores any value there."""
    deep = b'{"f:x]":' * depth + b"{}" + b"}" * depth
    entry = b'{"fieldsType":"FieldsV1","fieldsV1":' + deep + b',"manager":"a \\"]"}'
    meta = json.dumps(obj(name, 12)["metadata"])[1:].encode()
    return b'{"metadata":{"' + key.encode() + b'":[' + entry + b"]," + meta + b"}"


async def test_an_object_that_is_nested_too_deeply_is_listed_and_watched():
    listed = b'{"metadata":{"resourceVersion":"10"},"items":[' + nested("a") + b"," + nested("b") + b"]}"
    lines = [b'{"type":"%s","object":%s}\n' % (kind, nested("c")) for kind in (b"ADDED", b"DELETED")]
    followed = await follow(listed, lines, resource=PROFILES)
    assert followed.of("listed", "seen", "lost") == [("listed", ["a", "b"]), ("seen", "c"), ("lost", "c")]


async def test_deep_nesting_outside_managed_fields_restarts_the_stream():
    """No API server sends such an answer."""
    listed = b'{"metadata":{"resourceVersion":"10"},"items":[' + nested("a", "x") + b"]}"
    line = b'{"type":"ADDED","object":%s}\n' % nested("c", "x")
    followed = await follow(listed, page(), [line], resource=PROFILES)
    assert followed.of("restarted")[:2] == [("restarted", "unreachable")] * 2


async def test_other_tasks_run_while_the_frames_of_one_chunk_are_delivered():
    turns: list[int] = []
    handler = EventHandler()

    async def other() -> None:
        while True:
            turns.append(len(handler.heard))
            await asyncio.sleep(0)

    names = [f"p{number}" for number in range(3 * FRAMES_AT_ONCE)]
    chunk = b"".join(frame("ADDED", obj(name, 11 + number)) for number, name in enumerate(names))
    stream = Stream(ScriptedClient(page(), [chunk]), PODS, handler, jitter=lambda: 0.5)
    task = asyncio.create_task(other())
    with pytest.raises(EndOfScriptError):
        await stream.run()
    task.cancel()
    delivered = [index for index, entry in enumerate(handler.heard) if entry[0] == "reached"]
    assert [name for what, name in handler.heard[3:] if what == "seen"] == names
    assert all(any(first < turn <= second for turn in turns) for first, second in pairwise(delivered))


async def test_half_a_line_before_a_cut_is_dropped_and_delivered_later():
    whole = frame("ADDED", obj("b", 12))
    followed = await follow(page(), [frame("ADDED", obj("a", 11)), whole[:9], Unreachable("cut")], [whole])
    assert followed.of("seen", "restarted")[:3] == [
        ("seen", "a"),
        ("restarted", "unreachable"),
        ("seen", "b"),
    ]
    assert followed.watched_from[1] == "11"


async def test_empty_lines_are_ignored():
    followed = await follow(page(), [b"\n\r\n" + frame("ADDED", obj("a", 11)) + b"\n"])
    assert followed.of("seen", "undecodable") == [("seen", "a")]


async def test_a_line_that_is_not_json_ends_the_watch_which_is_resumed_before_it():
    lines = frame("ADDED", obj("a", 11)) + b"garbage\n" + frame("ADDED", obj("b", 12))
    followed = await follow(page(), [lines], [frame("ADDED", obj("b", 12))])
    assert followed.of("restarted")[0] == ("restarted", "unreachable")
    assert followed.watched_from[1] == "11"
    assert followed.of("seen") == [("seen", "a"), ("seen", "b")]


@pytest.mark.parametrize("line", [b"garbage", b"{}", b"[]", b"7", b'{"type":"ADDED"'])
async def test_lines_that_are_no_frames_back_off_ever_longer(line):
    followed = await follow(page(), *[[line + b"\n"]] * 3)
    assert followed.of("restarted") == [("restarted", "unreachable")] * 3
    assert followed.sleeps == [0.25, 0.5, 1.0]


async def test_a_deletion_without_a_full_identity_needs_another_list():
    nameless = BAD | {"metadata": {"name": "bad"}}
    followed = await follow(page(), [frame("DELETED", nameless)])
    assert followed.of("lost", "restarted")[:2] == [("lost", ""), ("restarted", "expired")]


async def test_an_undecodable_object_is_reported_in_order():
    lines = frame("ADDED", obj("bad", 11)) + frame("MODIFIED", BAD) + frame("ADDED", obj("c", 13))
    followed = await follow(page(), [lines])
    assert followed.of("seen", "undecodable") == [
        ("seen", "bad"),
        ("undecodable", "ns/bad"),
        ("seen", "c"),
    ]


async def test_a_watch_is_resumed_after_an_undecodable_object():
    followed = await follow(page(), [frame("MODIFIED", BAD)])
    assert followed.watched_from == ["10", "12"]


async def test_an_undecodable_object_without_a_version_changes_no_position():
    followed = await follow(page(), [frame("ADDED", {"metadata": 7})])
    assert followed.of("undecodable") == [("undecodable", "unknown")]
    assert followed.watched_from == ["10", "10"]


async def test_a_line_with_invalid_utf8_does_not_hide_the_next():
    bad = frame("ADDED", obj("b?", 11)).replace(b"?", b"\xff")
    followed = await follow(page(), [bad + frame("ADDED", obj("c", 12))])
    assert ("seen", "c") in followed.heard


@pytest.mark.parametrize("resource", ALL, ids=lambda resource: resource.name)
async def test_lists_and_watches_are_about_the_same_objects(resource):
    followed = await follow(page(), resource=resource)
    assert {call.path for call in followed.calls} == {resource.path}
    selectors = {call.params.get("fieldSelector") for call in followed.calls}
    assert selectors == {resource.field_selector or None}


def test_unbound_pods_are_not_requested():
    assert PODS.field_selector == "spec.nodeName!="


@pytest.mark.parametrize("resource", CONTROLLERS, ids=lambda resource: resource.name)
def test_unused_fields_of_a_workload_are_not_decoded(resource):
    template = {"spec": {"containers": [{"name": "main", "env": ["of no kind"]}]}}
    value = {"metadata": {"uid": "u", "labels": 7}, "spec": {"replicas": 3, "template": template}, "status": {}}
    assert msgspec.json.decode(json.dumps(value), type=resource.type).spec.replicas == 3


@pytest.mark.parametrize("resource", CONTROLLERS, ids=lambda resource: resource.name)
@pytest.mark.parametrize(
    ("spec", "value"),
    [
        ({"template": {"metadata": {"labels": {"app": "db"}}}}, "db"),
        ({"template": {"metadata": {"creationTimestamp": None}}}, ""),
        ({"template": {}}, ""),
        ({"template": None}, ""),
        ({}, ""),
    ],
)
def test_a_label_of_the_pods_of_a_workload(resource, spec, value):
    found = msgspec.json.decode(json.dumps({"metadata": {"labels": {"app": "own"}}, "spec": spec}), type=resource.type)
    assert (found.template_label("app"), found.template_label("tier")) == (value, "")


# -- watches that cannot be resumed ---------------------------------------------------------------------------------


async def test_a_410_answer_lists_again():
    followed = await follow(page(obj("a")), refusal(410), page(obj("b"), version="20"))
    assert followed.of("list began", "listed", "list ended") == [
        ("list began",),
        ("listed", ["a"]),
        ("list ended", "10"),
        ("list began",),
        ("listed", ["b"]),
        ("list ended", "20"),
    ]
    assert followed.watched_from == ["10", "20"]


@pytest.mark.parametrize("error", [refusal(400), refusal(504, "Too large resource version: 10, current: 5")])
async def test_a_version_that_the_server_cannot_use_lists_again(error):
    """The server was restored, or a proxy has asked another one."""
    followed = await follow(page(), error, page(version="5"))
    assert followed.watched_from == ["10", "5"]


@pytest.mark.looptime
async def test_an_expired_frame_lists_again_at_once():
    old = [Silence(TIMINGS.stable_after + 1), error(410)]
    followed = await follow(page(obj("a")), old, page(obj("b"), version="20"))
    assert followed.of("restarted")[0] == ("restarted", "expired")
    assert followed.watched_from == ["10", "20"]
    assert followed.sleeps == []


@pytest.mark.parametrize("code", [500, 504, 429])
async def test_any_other_error_frame_lists_again(code):
    followed = await follow(page(), [error(code, "InternalError")], page(version="20"))
    assert followed.watched_from == ["10", "20"]


async def test_frames_before_an_error_in_the_same_chunk_count():
    followed = await follow(page(), [frame("ADDED", obj("a", 11)) + error(410)], page())
    assert followed.of("seen") == [("seen", "a")]


@pytest.mark.parametrize("status", ["{}", '"gone"', "null", '{"code":"410"}'])
async def test_an_error_frame_without_a_status_is_an_error_all_the_same(status):
    followed = await follow(page(), [f'{{"type":"ERROR","object":{status}}}\n'.encode()], page(version="20"))
    assert followed.watched_from == ["10", "20"]


async def test_repeated_error_frames_back_off():
    followed = await follow(*[page(), [error(410)]] * 6)
    assert followed.of("restarted") == [("restarted", "expired")] * 6
    assert followed.sleeps == [0.25, 0.5, 1.0, 2.0, 4.0, 5.0]


@pytest.mark.looptime
async def test_after_an_outage_an_expired_watch_lists_at_once():
    outage = [Unreachable("refused")] * 6
    followed = await follow(
        page(), [Silence(TIMINGS.stable_after + 1), Unreachable("cut")], *outage, [error(410)], page()
    )
    assert len(followed.sleeps) == 1 + len(outage)
    assert len(followed.lists) == 2


async def test_lists_that_expire_repeatedly_back_off():
    followed = await follow(*[page(more="t"), refusal(410)] * 5)
    assert len(followed.sleeps) == 5


@pytest.mark.looptime
async def test_a_watch_that_works_for_a_while_resets_the_back_off():
    bad = [error(410)]
    works = [Silence(TIMINGS.stable_after + 1), bookmark(11), Unreachable("cut")]
    followed = await follow(page(), bad, page(), bad, page(), works)
    assert followed.sleeps == [0.25, 0.5, TIMINGS.back_off[0]]


@pytest.mark.looptime
async def test_one_frame_does_not_reset_the_back_off():
    bad = [error(410)]
    followed = await follow(page(), bad, page(), bad, page(), [bookmark(11), Unreachable("cut")])
    assert followed.sleeps == [0.25, 0.5, 1.0]


# -- refusals and failures --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [401, 403, 404, 429, 500, 503])
async def test_a_refused_watch_is_tried_again_from_the_same_place(code):
    followed = await follow(page(), refusal(code))
    assert followed.of("restarted")[0] == ("restarted", "unreachable" if code in (429, 500, 503) else "refused")
    assert followed.watched_from == ["10", "10"]
    assert followed.sleeps[0] == TIMINGS.back_off[0]


async def test_retry_after_of_the_api_server_is_waited():
    followed = await follow(refusal(429, retry_after=7.0), page(), refusal(429, retry_after=3.0))
    assert followed.sleeps[:2] == [7.0, 3.0]


async def test_retry_after_of_a_maintenance_page_is_ignored():
    """No pod is evicted during the wait, and the API server may be back long before."""
    followed = await follow(refusal(503, retry_after=3600.0), page(), refusal(503, retry_after=3600.0))
    assert followed.sleeps[:2] == [TIMINGS.max_retry_after] * 2


async def test_a_retry_after_below_the_pause_of_the_stream_is_extended_to_it():
    followed = await follow(*[refusal(429, retry_after=1.0)] * 5)
    assert followed.sleeps == [1.0, 1.0, 1.0, 2.0, 4.0]


async def test_failures_back_off_up_to_a_bound():
    followed = await follow(*[Unreachable("refused")] * 9)
    assert followed.of("restarted") == [("restarted", "unreachable")] * 9
    assert followed.sleeps == [0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0, 5.0, 5.0]


async def test_watches_that_end_at_once_back_off():
    followed = await follow(page(), [], [], [])
    assert followed.of("restarted") == [("restarted", "empty")] * 3
    assert followed.sleeps == [0.25, 0.5, 1.0]


@pytest.mark.parametrize(("jitter", "expected"), [(0.0, 0.125), (0.5, 0.25), (0.999, 0.37475)])
async def test_pauses_are_spread(jitter, expected):
    sleeps: list[float] = []

    async def sleep(seconds: float) -> None:
        sleeps.append(seconds)

    client = ScriptedClient(Unreachable("refused"))
    with pytest.raises(EndOfScriptError):
        await Stream(client, NODES, EventHandler(), sleep=sleep, jitter=lambda: jitter).run()
    assert sleeps == [pytest.approx(expected)]


# -- a list that a handler requests -----------------------------------------------------------------------------------


class Asking(EventHandler):
    """A handler that requests another list at its first call of the kind `on`."""

    def __init__(self, on: str, *, is_stale: bool = False) -> None:
        super().__init__()
        self.on = on
        self.is_stale = is_stale
        self.stream: Any = None

    def _ask(self, what: str) -> None:
        if what == self.on:
            self.on = ""
            self.stream.list_again(is_stale=self.is_stale)

    def listed(self, objects: Sequence[Any]) -> None:
        super().listed(objects)
        self._ask("list")

    def seen(self, obj: Any) -> None:
        super().seen(obj)
        self._ask("watch")

    def live(self, *, live: bool) -> None:
        if self.is_stale:
            self.heard.append(("live", live))


@pytest.mark.looptime
@pytest.mark.parametrize("on", ["list", "watch"])
async def test_a_requested_list_follows_the_one_before(on):
    handler = Asking(on)
    changes = [[frame("ADDED", obj("b", 11)), Silence(30)]] if on == "watch" else []
    client = ScriptedClient(page(obj("a")), *changes, page(obj("a"), obj("b"), version="20"), [Silence(30)])
    handler.stream = Stream(client, PODS, handler)
    with pytest.raises(EndOfScriptError):
        await handler.stream.run()
    lists = [one for one in handler.heard if one[0] in ("list ended", "listed", "restarted")]
    assert ("listed", ["a", "b"]) in lists
    assert [one for one in lists if one[0] == "list ended"][:2] == [("list ended", "10"), ("list ended", "20")]
    assert not [one for one in lists if one[0] == "restarted" and one[1] == "expired"]


@pytest.mark.looptime
@pytest.mark.parametrize("on", ["list", "watch"])
async def test_a_stale_view_is_live_again_after_the_requested_list(on):
    handler = Asking(on, is_stale=True)
    changes = [[frame("ADDED", obj("b", 11)), Silence(30)]] if on == "watch" else []
    client = ScriptedClient(page(obj("a")), *changes, page(obj("a"), obj("b"), version="20"), [Silence(30)])
    handler.stream = Stream(client, PODS, handler)
    with pytest.raises(EndOfScriptError):
        await handler.stream.run()
    first, last = (handler.heard.index(("list ended", version)) for version in ("10", "20"))
    asked_at = handler.heard.index(("seen", "b")) if on == "watch" else first
    assert ("live", False) in handler.heard[:last]
    assert ("live", True) not in handler.heard[asked_at:last]
    assert ("live", True) in handler.heard[last:]
    assert len([one for one in client.calls if "watch" not in one.params]) == 2

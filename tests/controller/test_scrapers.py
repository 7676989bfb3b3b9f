"""Access to /metrics: reviews by the API server, how long their results count, and a bound on requests of strangers."""

from typing import Any

import pytest

from kube.scripted import Call, ScriptedClient, refusal
from taintwarden.controller import scrapers
from taintwarden.controller.scrapers import Access, Scrapers
from taintwarden.kube.errors import Unreachable

USER = {"username": "system:serviceaccount:monitoring:prometheus", "uid": "u", "groups": ["g"], "extra": {"k": ["v"]}}


class Api:
    """An API server that knows some tokens, some of which may read metrics."""

    def __init__(self) -> None:
        self.known = {"good", "poor"}
        self.may = {"good"}
        self.fails: Any = None
        self.client = ScriptedClient(default=self.answer)

    def answer(self, call: Call) -> Any:
        if self.fails is not None:
            return self.fails
        spec = call.body["spec"]
        if call.path == "/apis/authentication.k8s.io/v1/tokenreviews":
            token = spec["token"]
            known = token in self.known
            return {"status": {"authenticated": True, "user": USER | {"uid": token}} if known else {"error": "no"}}
        assert call.path == "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return {"status": {"allowed": spec["uid"] in self.may}}

    @property
    def asked(self) -> int:
        return len(self.client.calls)


class Clock:
    now = 1000.0

    def __call__(self) -> Any:
        return self.now


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def access(api: Api, clock: Clock) -> Any:
    return Scrapers(api.client, clock).check_access


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic Z29vZA==", "good", "Bearer \udcff"])
async def test_without_a_bearer_token_no_review_is_made(api, access, header):
    assert await access(header) is Access.UNKNOWN
    assert api.asked == 0


@pytest.mark.parametrize(
    ("token", "expected"), [("good", Access.ALLOWED), ("poor", Access.FORBIDDEN), ("other", Access.UNKNOWN)]
)
async def test_the_api_server_decides(access, token, expected):
    assert await access(f"Bearer {token}") is expected


async def test_the_access_review_has_all_fields_of_the_user(api, access):
    await access("bearer good")
    assert api.client.calls[-1].body["spec"] == {
        "user": USER["username"],
        "uid": "good",
        "groups": ["g"],
        "extra": {"k": ["v"]},
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }


@pytest.mark.parametrize(
    "fails",
    [refusal(403), refusal(500), Unreachable("gone"), b"<html>", {"status": {"authenticated": "true"}}, {}],
    ids=["forbidden", "broken", "unreachable", "no-json", "wrong-type", "no-status"],
)
async def test_without_an_answer_of_the_api_server_access_is_undecided(api, access, fails):
    api.fails = fails
    assert await access("Bearer good") is Access.UNDECIDED


async def test_a_failure_is_not_remembered(api, access):
    api.fails = refusal(500)
    await access("Bearer good")
    api.fails = None
    assert await access("Bearer good") is Access.ALLOWED


async def test_an_explicit_denial_overrides_an_allowance(api, access):
    api.client.answers.extend([{"status": {"authenticated": True, "user": USER}}])
    api.client.answers.extend([{"status": {"allowed": True, "denied": True}}])
    assert await access("Bearer good") is Access.FORBIDDEN


async def test_an_allowance_counts_for_a_short_time(api, access, clock):
    await access("Bearer good")
    api.may.clear()
    clock.now += scrapers.ALLOWED_SECONDS - 1
    assert await access("Bearer good") is Access.ALLOWED
    assert api.asked == 2
    clock.now += 1
    assert await access("Bearer good") is Access.FORBIDDEN


async def test_a_refusal_after_an_allowance_is_remembered(api, access, clock):
    await access("Bearer good")
    api.may.clear()
    clock.now += scrapers.ALLOWED_SECONDS
    for _ in range(3):
        assert await access("Bearer good") is Access.FORBIDDEN
    assert api.asked == 4


async def test_a_client_that_was_allowed_long_ago_waits_like_strangers(api, access, clock):
    await access("Bearer good")
    clock.now += scrapers.KNOWN_SECONDS
    for number in range(1000):
        await access(f"Bearer {number}")
    assert await access("Bearer good") is Access.BUSY


async def test_a_right_that_is_granted_counts_after_the_refusal_expires(api, access, clock):
    await access("Bearer poor")
    api.may.add("poor")
    assert await access("Bearer poor") is Access.FORBIDDEN
    clock.now += scrapers.REFUSED_SECONDS
    assert await access("Bearer poor") is Access.ALLOWED


async def test_an_expired_allowance_is_undecided_while_the_api_server_fails(api, access, clock):
    await access("Bearer good")
    api.fails = refusal(500)
    clock.now += scrapers.ALLOWED_SECONDS
    assert await access("Bearer good") is Access.UNDECIDED


async def test_strangers_cost_the_api_server_a_bounded_number_of_requests(api, access):
    found = [await access(f"Bearer {number}") for number in range(1000)]
    assert api.asked == scrapers.REVIEW_BURST
    assert set(found[scrapers.REVIEW_BURST :]) == {Access.BUSY}


async def test_strangers_do_not_delay_a_client_that_was_allowed(api, access, clock):
    await access("Bearer good")
    clock.now += scrapers.ALLOWED_SECONDS
    for number in range(1000):
        await access(f"Bearer {number}")
    assert await access("Bearer good") is Access.ALLOWED


async def test_the_number_of_remembered_results_is_bounded(api, clock):
    made = Scrapers(api.client, clock)
    for number in range(1000):
        clock.now += 1
        api.known.add(f"known-{number}")
        api.may.add(f"known-{number}")
        await made.check_access(f"Bearer known-{number}")
        await made.check_access(f"Bearer {number}")
    assert len(made._allowed) == len(made._refused) == scrapers.MAX_REMEMBERED


async def test_a_client_that_was_refused_again_is_remembered_longer(api, clock):
    made = Scrapers(api.client, clock)
    await made.check_access("Bearer bad")
    for number in range(scrapers.MAX_REMEMBERED - 1):
        clock.now += 1
        await made.check_access(f"Bearer {number}")
    clock.now += scrapers.REFUSED_SECONDS
    for token in ("bad", "another"):
        await made.check_access(f"Bearer {token}")
    asked = api.asked
    await made.check_access("Bearer bad")
    assert api.asked == asked


async def test_no_token_is_kept(api, clock):
    made = Scrapers(api.client, clock)
    await made.check_access("Bearer good")
    assert "good" not in str(vars(made)["_allowed"])

"""Leader election in simulated time: who holds the lease, from when to when, whatever the API does."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kube.leases import Candidate, LeaseStore
from kube.scripted import foreign_404, refusal
from taintwarden.kube.calls.lease import LEASE_SECONDS, RENEW_DEADLINE_SECONDS, RETRY_SECONDS, SLOW_SECONDS
from taintwarden.kube.errors import Unreachable

pytestmark = pytest.mark.looptime


def foreign(holder: str = "other", **spec: Any) -> dict[str, Any]:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"} | spec
    return {"metadata": {"name": "taintwarden", "resourceVersion": "1"}, "spec": spec}


@pytest.fixture
def store() -> LeaseStore:
    return LeaseStore()


@pytest.fixture
async def one(store: LeaseStore) -> AsyncIterator[Candidate]:
    candidate = Candidate(store)
    yield candidate
    if candidate.task is not None:
        await candidate.kill()


@pytest.fixture
async def leader(one: Candidate) -> Candidate:
    """It has held the lease for a while."""
    one.start()
    await asyncio.sleep(1)
    return one


async def test_a_lease_that_nobody_has_is_created(store: LeaseStore, one: Candidate) -> None:
    one.start()
    await asyncio.sleep(0.1)
    assert one.lease.is_held
    assert store.holder == "a"
    assert one.changes == [(0.02, True)]


async def test_what_is_written_is_what_kubernetes_expects(store: LeaseStore, one: Candidate) -> None:
    one.start()
    await asyncio.sleep(0.1)
    assert store.lease is not None
    assert (store.lease["apiVersion"], store.lease["kind"]) == ("coordination.k8s.io/v1", "Lease")
    assert store.lease["metadata"]["name"] == "taintwarden"
    spec = store.lease["spec"]
    assert (spec["leaseDurationSeconds"], spec["leaseTransitions"]) == (LEASE_SECONDS, 0)
    assert spec["acquireTime"].endswith("Z")
    assert len(spec["renewTime"].rpartition(".")[2]) == len("123456Z")  # a MicroTime


async def test_it_is_renewed_every_few_seconds(store: LeaseStore, one: Candidate) -> None:
    one.start()
    await asyncio.sleep(5 * (RETRY_SECONDS + 0.02) + 0.1)
    assert one.changes == [(0.02, True)]
    assert [method for method, _ in one.network.calls].count("PUT") == 5
    assert store.lease is not None
    assert store.lease["spec"]["leaseTransitions"] == 0


async def test_renewing_keeps_the_time_of_the_acquisition(store: LeaseStore, leader: Candidate) -> None:
    acquired = store.lease["spec"]["acquireTime"]
    await asyncio.sleep(RETRY_SECONDS + 0.1)
    assert store.lease["spec"]["acquireTime"] == acquired < store.lease["spec"]["renewTime"]


async def test_a_leader_that_leads_again_has_a_new_time_of_acquisition(store: LeaseStore, leader: Candidate) -> None:
    acquired = store.lease["spec"]["acquireTime"]
    leader.network.hangs = True
    await asyncio.sleep(LEASE_SECONDS)
    leader.network.hangs = False
    await asyncio.sleep(LEASE_SECONDS)
    assert [held for _, held in leader.changes] == [True, False, True]
    assert store.lease["spec"]["acquireTime"] > acquired
    assert store.lease["spec"]["leaseTransitions"] == 0


@pytest.mark.parametrize(
    "spec", [{}, None, {"holderIdentity": ""}, {"holderIdentity": None}, {"leaseTransitions": None}]
)
async def test_a_lease_without_a_holder_is_taken_at_once(store: LeaseStore, one: Candidate, spec: Any) -> None:
    store.lease = foreign("") | {"spec": spec}
    one.start()
    await asyncio.sleep(0.1)
    assert one.lease.is_held


async def test_a_lease_that_another_holds_is_watched_for_its_whole_time(store: LeaseStore, one: Candidate) -> None:
    store.lease = foreign()
    one.start()
    await asyncio.sleep(LEASE_SECONDS - 0.5)
    assert not one.lease.is_held
    assert store.holder == "other"
    await asyncio.sleep(RETRY_SECONDS + 1)
    assert one.lease.is_held
    assert store.lease["spec"]["leaseTransitions"] == 1


async def test_it_is_taken_over_at_the_first_moment_that_it_may_be(store: LeaseStore, one: Candidate) -> None:
    """Not at the next of the regular tries, which may be a whole interval later."""
    store.lease = foreign(leaseDurationSeconds=15)
    one.network.delay = 0.1  # so that the tries fall out of step with the end
    one.start()
    await asyncio.sleep(30)
    [(gained, held)] = one.changes
    assert held
    assert gained - LEASE_SECONDS < 0.5


async def test_a_holder_that_starts_again_is_not_kept_waiting(store: LeaseStore, one: Candidate) -> None:
    """A container that crashed has the identity of its pod again."""
    store.lease = foreign("a", acquireTime="2020-02-02T02:02:02.000000Z", leaseTransitions=4)
    one.start()
    await asyncio.sleep(0.1)
    assert one.lease.is_held
    assert store.lease["spec"]["leaseTransitions"] == 4
    assert store.lease["spec"]["acquireTime"] > "2020-02-02T02:02:02.000000Z"


async def test_a_duration_below_our_own_counts(store: LeaseStore, one: Candidate) -> None:
    store.lease = foreign(leaseDurationSeconds=5)
    one.start()
    await asyncio.sleep(4)
    assert not one.lease.is_held
    await asyncio.sleep(RETRY_SECONDS)
    assert one.lease.is_held


@pytest.mark.parametrize("seconds", [LEASE_SECONDS + 1, 2**31 - 1])
async def test_a_duration_beyond_our_own_does_not_count(store: LeaseStore, one: Candidate, seconds: int) -> None:
    store.lease = foreign(leaseDurationSeconds=seconds)
    one.start()
    await asyncio.sleep(LEASE_SECONDS + RETRY_SECONDS)
    assert one.lease.is_held


async def test_the_count_of_terms_begins_again_where_the_server_takes_no_more(
    store: LeaseStore, one: Candidate
) -> None:
    store.lease = foreign("", leaseTransitions=2**31 - 1)
    one.start()
    await asyncio.sleep(0.1)
    assert store.lease["spec"]["leaseTransitions"] == 0
    assert one.lease.is_held
    assert one.lease.term == 0
    assert await one.lease.is_confirmed()


async def test_a_lease_of_a_later_term_is_not_confirmed(store: LeaseStore, one: Candidate) -> None:
    """Another candidate of our name, or a Lease that was created again: it is not the one that we got."""
    one.start()
    await asyncio.sleep(0.1)
    assert store.lease is not None
    store.lease["spec"]["leaseTransitions"] += 1
    for _ in range(2):
        assert one.lease.is_held
        assert not await one.lease.is_confirmed()
        await asyncio.sleep(RETRY_SECONDS + 1)  # it renews that one


NO_LEASES = [None, foreign() | {"spec": None}]


async def test_a_lease_is_confirmed_while_the_server_says_that_it_is_ours(store: LeaseStore, leader: Candidate) -> None:
    store.lease = foreign("a", leaseTransitions=None)
    assert await leader.lease.is_confirmed()
    for store.lease in (*NO_LEASES, foreign("b", leaseTransitions=0)):
        assert not await leader.lease.is_confirmed()
    store.lease, leader.network.fails = foreign("a"), refusal(500)
    assert not await leader.lease.is_confirmed()


async def test_before_it_looks_nobody_leads(one: Candidate) -> None:
    assert (one.lease.has_leader, one.lease.is_held, one.lease.term) == (False, False, 0)


# -- whether any candidate leads --------------------------------------------------------------------------------------


UNLED_SECONDS = LEASE_SECONDS + RENEW_DEADLINE_SECONDS


async def test_a_lease_that_we_hold_is_led(one: Candidate) -> None:
    one.start()
    await asyncio.sleep(10 * UNLED_SECONDS)
    assert one.lease.has_leader


async def test_a_lease_that_another_renews_is_led(store: LeaseStore, one: Candidate) -> None:
    store.lease = foreign()
    one.start()
    for second in range(10):
        await asyncio.sleep(10)
        store.lease["spec"]["renewTime"] = f"2026-01-01T00:00:{second + 1:02}.000000Z"
        assert one.lease.has_leader
    assert one.changes == []


@pytest.mark.parametrize("holder", ["", "a", "other"])
async def test_a_lease_that_cannot_be_renewed_is_not_led(store: LeaseStore, one: Candidate, holder: str) -> None:
    store.lease = foreign(holder)
    one.network.refuses_writes = True
    one.start()
    await asyncio.sleep(UNLED_SECONDS - 1)
    assert one.lease.has_leader
    await asyncio.sleep(2)
    assert not one.lease.has_leader


async def test_a_leader_that_may_no_longer_renew_is_none_soon(one: Candidate) -> None:
    one.start()
    await asyncio.sleep(10 * UNLED_SECONDS)
    one.network.refuses_writes = True
    await asyncio.sleep(UNLED_SECONDS)
    assert not one.lease.has_leader


async def test_a_renewal_that_was_sent_twice_costs_nothing(store: LeaseStore, leader: Candidate) -> None:
    """The second request conflicts with the first one."""
    leader.network.repeats = 1
    await asyncio.sleep(20)
    assert leader.changes == [(0.02, True)]
    assert leader.errors == []


async def test_a_conflict_with_another_holder_is_lost(store: LeaseStore, one: Candidate) -> None:
    store.lease = foreign("")
    one.network.delay = 0.5
    one.start()
    await asyncio.sleep(0.7)
    store.lease = foreign("b") | {"metadata": {"name": "taintwarden", "resourceVersion": "2"}}
    await asyncio.sleep(2)
    assert one.changes == []
    assert store.holder == "b"


async def test_a_lease_that_is_deleted_after_a_conflict_is_made_anew(store: LeaseStore, one: Candidate) -> None:
    store.lease = foreign("")
    one.network.delay = 0.5
    one.start()
    await asyncio.sleep(0.7)  # it has read it
    store.lease["metadata"]["resourceVersion"] = "2"
    await asyncio.sleep(0.5)  # its write has failed
    store.lease = None
    await asyncio.sleep(RETRY_SECONDS + 2)
    assert one.lease.is_held
    assert one.errors == []


async def test_who_is_faster_gets_it(store: LeaseStore, one: Candidate) -> None:
    """Between our read and our write another one wrote: a conflict, no error."""
    one.network.delay = 0.5
    one.start()
    await asyncio.sleep(0.7)  # it has read that there is none
    store.lease = foreign()
    await asyncio.sleep(1)
    assert not one.lease.is_held
    assert one.errors == []


async def test_a_lease_that_is_taken_away_is_not_held(store: LeaseStore, leader: Candidate) -> None:
    store.lease = foreign()
    await asyncio.sleep(2)
    assert not leader.lease.is_held
    assert [held for _, held in leader.changes] == [True, False]


async def test_a_lease_that_is_deleted_is_made_anew(store: LeaseStore, leader: Candidate) -> None:
    store.lease = None
    await asyncio.sleep(3)
    assert leader.lease.is_held
    assert store.holder == "a"


async def test_a_lease_that_is_deleted_is_its_holders_until_it_would_have_run_out(
    store: LeaseStore, one: Candidate
) -> None:
    """Its holder may be sending a request, and does not know yet."""
    store.lease = foreign()
    one.start()
    await asyncio.sleep(1)
    store.lease = None
    await asyncio.sleep(LEASE_SECONDS - 2)
    assert store.lease is None
    await asyncio.sleep(2.5)
    assert one.lease.is_held


async def test_a_lease_that_is_deleted_continues_to_count_its_terms(store: LeaseStore, one: Candidate) -> None:
    store.lease = foreign(leaseTransitions=7)
    one.start()
    await asyncio.sleep(1)
    store.lease = None
    await asyncio.sleep(LEASE_SECONDS + 1)
    assert one.lease.term == 8


# -- the API fails ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [refusal(500), refusal(403), refusal(429), foreign_404(), Unreachable("reset")])
async def test_a_failure_now_and_then_costs_nothing(leader: Candidate, error: Exception) -> None:
    leader.network.fails = error
    await asyncio.sleep(6)
    leader.network.fails = None
    await asyncio.sleep(6)
    assert leader.lease.is_held
    assert [held for _, held in leader.changes] == [True]
    assert set(leader.errors) == {str(error)}


@pytest.mark.parametrize("error", [refusal(500), Unreachable("reset")])
async def test_failures_beyond_the_deadline_end_it_in_time(leader: Candidate, error: Exception) -> None:
    leader.network.fails = error
    await asyncio.sleep(RENEW_DEADLINE_SECONDS)
    assert not leader.lease.is_held
    assert leader.changes[-1][1] is False
    assert leader.changes[-1][0] <= RENEW_DEADLINE_SECONDS + 0.05


@pytest.mark.parametrize("since", [0.5, 1.9, 2.1, 3.0, 4.0])
async def test_an_api_that_hangs_is_told_in_time(one: Candidate, since: float) -> None:
    """Between ``held`` being over and ``on_change(False)`` the machine still leads: it would command in vain."""
    one.start()
    await asyncio.sleep(since)
    one.network.hangs = True
    while one.lease.is_held:
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.1)
    assert [held for _, held in one.changes] == [True, False]


@pytest.mark.parametrize("left", [1.5, 3.0], ids=["between tries", "in a try"])
async def test_an_api_that_refuses_and_then_hangs_is_told_in_time(leader: Candidate, left: float) -> None:
    leader.network.fails = refusal(500)
    await asyncio.sleep(RENEW_DEADLINE_SECONDS - left)
    leader.network.hangs = True
    await asyncio.sleep(left - 0.5)
    assert leader.changes[-1] == (pytest.approx(RENEW_DEADLINE_SECONDS, abs=0.05), False)


async def test_a_lease_that_runs_out_while_the_server_confirms_it_is_not_confirmed(leader: Candidate) -> None:
    await leader.kill()
    leader.network.delay_back = RENEW_DEADLINE_SECONDS
    assert not await leader.lease.is_confirmed()


async def test_a_renewal_counts_from_when_it_was_begun(one: Candidate) -> None:
    one.network.delay_back = 2.0
    one.start()
    await asyncio.sleep(4.5)  # read and write took 4 s
    one.network.hangs = True
    await asyncio.sleep(RENEW_DEADLINE_SECONDS - 4.5 - 0.1)
    assert one.lease.is_held
    await asyncio.sleep(0.2)
    assert not one.lease.is_held


async def test_an_api_that_hangs_is_asked_again_after_half_the_deadline(one: Candidate) -> None:
    one.network.hangs = True
    one.start()
    await asyncio.sleep(RENEW_DEADLINE_SECONDS / 2 - 0.1)
    assert one.errors == []
    await asyncio.sleep(0.2)
    assert one.errors == ["TimeoutError"]
    await asyncio.sleep(RETRY_SECONDS)
    assert len(one.network.calls) == 2


async def test_an_answer_that_comes_too_late_is_not_waited_for(one: Candidate) -> None:
    one.network.delay = RENEW_DEADLINE_SECONDS
    one.start()
    await asyncio.sleep(60)
    assert not one.lease.is_held
    assert one.errors


# -- the end ----------------------------------------------------------------------------------------------------------


async def test_a_released_lease_is_free_at_once(store: LeaseStore, leader: Candidate) -> None:
    await leader.kill()
    acquired = store.lease["spec"]["renewTime"]
    await leader.lease.release()
    assert not leader.lease.is_held
    assert store.holder == ""
    assert [held for _, held in leader.changes] == [True, False]
    assert store.lease is not None
    assert store.lease["spec"]["leaseDurationSeconds"] == 1
    assert store.lease["spec"]["renewTime"] > acquired


async def test_a_lease_that_another_releases_is_taken_at_the_next_try(store: LeaseStore, one: Candidate) -> None:
    store.lease = foreign()
    one.start()
    await asyncio.sleep(1)
    store.lease = foreign("")
    await asyncio.sleep(RETRY_SECONDS)
    assert one.lease.is_held


async def test_what_was_lost_to_another_is_not_asked_about_at_the_end(store: LeaseStore, leader: Candidate) -> None:
    store.lease = foreign()
    await asyncio.sleep(RETRY_SECONDS + 1)
    await leader.kill()
    asked = len(leader.network.calls)
    await leader.lease.release()
    assert len(leader.network.calls) == asked


async def test_a_lease_that_was_got_while_the_process_was_told_to_stop_is_released(
    store: LeaseStore, one: Candidate
) -> None:
    """The server has stored it, and its answer is not waited for."""
    one.network.delay_back = 0.5
    one.start()
    while store.lease is None:
        await asyncio.sleep(0.1)
    await one.kill()
    assert (store.holder, one.lease.is_held) == ("a", False)
    await one.lease.release()
    assert store.holder == ""
    assert one.changes == []


async def test_a_lease_that_was_not_got_in_time_is_released_too(store: LeaseStore, one: Candidate) -> None:
    one.network.delay_back = RENEW_DEADLINE_SECONDS
    one.start()
    await asyncio.sleep(RENEW_DEADLINE_SECONDS)
    assert (store.holder, one.lease.is_held) == ("a", False)
    await one.kill()
    one.network.delay_back = 0.0
    await one.lease.release()
    assert store.holder == ""


async def test_a_renewal_that_arrives_late_does_not_keep_the_lease(store: LeaseStore, leader: Candidate) -> None:
    """It was sent before the process was told to stop, and is stored between the read and the write of the release."""
    await leader.kill()
    leader.network.delay = 0.5
    releasing = asyncio.create_task(leader.lease.release())
    await asyncio.sleep(0.7)
    assert store.lease is not None
    store.lease["metadata"]["resourceVersion"] = "late"
    await releasing
    assert store.holder == ""


async def test_what_was_never_held_is_not_released(store: LeaseStore, one: Candidate) -> None:
    store.lease = foreign()
    await one.lease.release()
    assert one.network.calls == []
    assert store.holder == "other"


async def test_what_another_took_is_not_released(store: LeaseStore, leader: Candidate) -> None:
    await leader.kill()
    store.lease = foreign()
    await leader.lease.release()
    assert store.holder == "other"


@pytest.mark.parametrize("error", [refusal(500), Unreachable("reset")])
async def test_a_release_that_fails_is_told_and_no_error(leader: Candidate, error: Exception) -> None:
    await leader.kill()
    leader.network.fails = error
    await leader.lease.release()
    assert not leader.lease.is_held
    assert leader.errors == [str(error)]


async def test_a_release_when_the_api_hangs_does_not_keep_the_process(leader: Candidate) -> None:
    await leader.kill()
    leader.network.hangs = True
    began = asyncio.get_running_loop().time()
    await leader.lease.release()
    assert asyncio.get_running_loop().time() - began <= 10
    assert leader.errors == ["not released in time"]


@pytest.mark.parametrize("stored", NO_LEASES)
async def test_a_lease_that_is_gone_needs_no_release(store: LeaseStore, leader: Candidate, stored: Any) -> None:
    await leader.kill()
    store.lease = stored
    await leader.lease.release()
    assert leader.errors == []


@pytest.mark.parametrize("error", [refusal(500), Unreachable("connection refused")])
async def test_a_leader_that_lost_the_api_tries_at_the_same_pace(leader: Candidate, error: Exception) -> None:
    """An API server that is away answers at once: without a pause it would be asked thousands of times a second."""
    leader.network.fails = error
    await asyncio.sleep(60)
    assert len(leader.network.calls) <= 2 + 60 / RETRY_SECONDS + 2
    assert len(leader.errors) <= 60 / RETRY_SECONDS + 2


@pytest.mark.parametrize("body", [b"<html>back soon</html>", b"[]", b"null", b'{"spec":7}', b'{"spec":null}'])
async def test_an_answer_that_is_no_lease_is_a_failure_like_any_other(leader: Candidate, body: bytes) -> None:
    leader.network.says = body
    await asyncio.sleep(3)
    leader.network.says = None
    await asyncio.sleep(3)
    assert leader.task is not None
    assert not leader.task.done()
    assert leader.lease.is_held


@pytest.mark.parametrize("turns", range(8))
async def test_it_ends_when_it_is_told_to_at_any_moment(leader: Candidate, turns: int) -> None:
    """Also just when an answer has come: ``asyncio.wait_for`` of Python 3.11 then swallows the cancellation."""
    task, loop = leader.task, asyncio.get_running_loop()
    assert task is not None

    def cancel(left: int) -> None:
        if left:
            loop.call_soon(cancel, left - 1)
        else:
            task.cancel()

    leader.network.on_answer = lambda: cancel(turns)
    await asyncio.sleep(10)
    assert task.done()


# -- whether the API server answers ------------------------------------------------------------------------------------


async def test_a_failed_renewal_is_reported_once_and_so_is_the_next_success(leader: Candidate) -> None:
    assert leader.renewals == []
    leader.network.fails = Unreachable("cut")
    await asyncio.sleep(2 * RETRY_SECONDS + 0.5)
    assert [succeeded for _, succeeded in leader.renewals] == [False]
    leader.network.fails = None
    await asyncio.sleep(2 * RETRY_SECONDS)
    assert [succeeded for _, succeeded in leader.renewals] == [False, True]


async def test_a_renewal_without_an_answer_for_two_seconds_counts_as_failed(leader: Candidate) -> None:
    leader.network.hangs = True
    await asyncio.sleep(RETRY_SECONDS + SLOW_SECONDS - 1.5)
    assert leader.renewals == []
    await asyncio.sleep(2)
    assert [succeeded for _, succeeded in leader.renewals] == [False]
    leader.network.hangs = False
    await asyncio.sleep(RETRY_SECONDS)
    assert leader.renewals[-1][1]


async def test_a_lease_of_another_holder_is_an_answer(store: LeaseStore, one: Candidate) -> None:
    store.lease = foreign()
    one.start()
    await asyncio.sleep(2 * RETRY_SECONDS)
    assert one.renewals == []

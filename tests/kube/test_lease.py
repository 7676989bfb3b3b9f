"""Leader election in simulated time: times at which a candidate holds the lease, also while the API fails."""

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
    """A candidate that has held the lease for a while."""
    one.start()
    await asyncio.sleep(1)
    return one


async def test_a_missing_lease_is_created(store: LeaseStore, one: Candidate) -> None:
    one.start()
    await asyncio.sleep(0.1)
    assert one.lease.is_held
    assert store.holder == "a"
    assert one.changes == [(0.02, True)]


async def test_a_written_lease_has_the_fields_of_kubernetes(store: LeaseStore, one: Candidate) -> None:
    one.start()
    await asyncio.sleep(0.1)
    assert store.lease is not None
    assert (store.lease["apiVersion"], store.lease["kind"]) == ("coordination.k8s.io/v1", "Lease")
    assert store.lease["metadata"]["name"] == "taintwarden"
    spec = store.lease["spec"]
    assert (spec["leaseDurationSeconds"], spec["leaseTransitions"]) == (LEASE_SECONDS, 0)
    assert spec["acquireTime"].endswith("Z")
    assert len(spec["renewTime"].rpartition(".")[2]) == len("123456Z")  # a MicroTime


async def test_a_held_lease_is_renewed_every_few_seconds(store: LeaseStore, one: Candidate) -> None:
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
async def test_a_lease_without_a_holder_is_acquired_at_once(store: LeaseStore, one: Candidate, spec: Any) -> None:
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


async def test_an_expired_lease_is_acquired_at_the_first_allowed_moment(store: LeaseStore, one: Candidate) -> None:
    """The next regular try may be a whole interval later."""
    store.lease = foreign(leaseDurationSeconds=15)
    one.network.delay = 0.1  # so that the tries fall out of step with the end
    one.start()
    await asyncio.sleep(30)
    [(gained, held)] = one.changes
    assert held
    assert gained - LEASE_SECONDS < 0.5


async def test_a_holder_that_starts_again_acquires_its_lease_at_once(store: LeaseStore, one: Candidate) -> None:
    """A container that crashed has the identity of its pod again."""
    store.lease = foreign("a", acquireTime="2020-02-02T02:02:02.000000Z", leaseTransitions=4)
    one.start()
    await asyncio.sleep(0.1)
    assert one.lease.is_held
    assert store.lease["spec"]["leaseTransitions"] == 4
    assert store.lease["spec"]["acquireTime"] > "2020-02-02T02:02:02.000000Z"


async def test_the_duration_of_another_holder_counts_if_it_is_shorter(store: LeaseStore, one: Candidate) -> None:
    store.lease = foreign(leaseDurationSeconds=5)
    one.start()
    await asyncio.sleep(4)
    assert not one.lease.is_held
    await asyncio.sleep(RETRY_SECONDS)
    assert one.lease.is_held


@pytest.mark.parametrize("seconds", [LEASE_SECONDS + 1, 2**31 - 1])
async def test_the_duration_of_another_holder_is_limited_to_the_own_one(
    store: LeaseStore, one: Candidate, seconds: int
) -> None:
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
    """Another candidate with this identity may hold it, or the Lease may have been created again."""
    one.start()
    await asyncio.sleep(0.1)
    assert store.lease is not None
    store.lease["spec"]["leaseTransitions"] += 1
    for _ in range(2):
        assert one.lease.is_held
        assert not await one.lease.is_confirmed()
        await asyncio.sleep(RETRY_SECONDS + 1)  # it renews the Lease of the later term


NO_LEASES = [None, foreign() | {"spec": None}]


async def test_a_lease_is_confirmed_while_the_server_names_this_holder(store: LeaseStore, leader: Candidate) -> None:
    store.lease = foreign("a", leaseTransitions=None)
    assert await leader.lease.is_confirmed()
    for store.lease in (*NO_LEASES, foreign("b", leaseTransitions=0)):
        assert not await leader.lease.is_confirmed()
    store.lease, leader.network.fails = foreign("a"), refusal(500)
    assert not await leader.lease.is_confirmed()


async def test_before_the_first_read_no_candidate_leads(one: Candidate) -> None:
    assert (one.lease.has_leader, one.lease.is_held, one.lease.term) == (False, False, 0)


# -- has_leader: true if any candidate leads --------------------------------------------------------------------------


UNLED_SECONDS = LEASE_SECONDS + RENEW_DEADLINE_SECONDS


async def test_a_held_lease_has_a_leader(one: Candidate) -> None:
    one.start()
    await asyncio.sleep(10 * UNLED_SECONDS)
    assert one.lease.has_leader


async def test_a_lease_that_another_renews_has_a_leader(store: LeaseStore, one: Candidate) -> None:
    store.lease = foreign()
    one.start()
    for second in range(10):
        await asyncio.sleep(10)
        store.lease["spec"]["renewTime"] = f"2026-01-01T00:00:{second + 1:02}.000000Z"
        assert one.lease.has_leader
    assert one.changes == []


@pytest.mark.parametrize("holder", ["", "a", "other"])
async def test_a_lease_that_cannot_be_renewed_has_no_leader(store: LeaseStore, one: Candidate, holder: str) -> None:
    store.lease = foreign(holder)
    one.network.refuses_writes = True
    one.start()
    await asyncio.sleep(UNLED_SECONDS - 1)
    assert one.lease.has_leader
    await asyncio.sleep(2)
    assert not one.lease.has_leader


async def test_a_leader_that_may_no_longer_renew_soon_counts_as_none(one: Candidate) -> None:
    one.start()
    await asyncio.sleep(10 * UNLED_SECONDS)
    one.network.refuses_writes = True
    await asyncio.sleep(UNLED_SECONDS)
    assert not one.lease.has_leader


async def test_a_renewal_that_was_sent_twice_keeps_the_lease(store: LeaseStore, leader: Candidate) -> None:
    """The second request conflicts with the first one."""
    leader.network.repeats = 1
    await asyncio.sleep(20)
    assert leader.changes == [(0.02, True)]
    assert leader.errors == []


async def test_a_conflict_with_another_holder_ends_the_try(store: LeaseStore, one: Candidate) -> None:
    store.lease = foreign("")
    one.network.delay = 0.5
    one.start()
    await asyncio.sleep(0.7)
    store.lease = foreign("b") | {"metadata": {"name": "taintwarden", "resourceVersion": "2"}}
    await asyncio.sleep(2)
    assert one.changes == []
    assert store.holder == "b"


async def test_a_lease_that_is_deleted_after_a_conflict_is_created_again(store: LeaseStore, one: Candidate) -> None:
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


async def test_a_lease_that_another_creates_first_is_not_held(store: LeaseStore, one: Candidate) -> None:
    """Another candidate writes between the read and the write of this one: a conflict, no error."""
    one.network.delay = 0.5
    one.start()
    await asyncio.sleep(0.7)  # it has read that there is none
    store.lease = foreign()
    await asyncio.sleep(1)
    assert not one.lease.is_held
    assert one.errors == []


async def test_a_lease_that_another_took_is_not_held(store: LeaseStore, leader: Candidate) -> None:
    store.lease = foreign()
    await asyncio.sleep(2)
    assert not leader.lease.is_held
    assert [held for _, held in leader.changes] == [True, False]


async def test_a_held_lease_that_is_deleted_is_created_again(store: LeaseStore, leader: Candidate) -> None:
    store.lease = None
    await asyncio.sleep(3)
    assert leader.lease.is_held
    assert store.holder == "a"


async def test_a_deleted_lease_of_another_is_not_acquired_before_it_would_expire(
    store: LeaseStore, one: Candidate
) -> None:
    """The holder may be sending a request without knowing of the deletion."""
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
async def test_single_failures_do_not_end_the_lead(leader: Candidate, error: Exception) -> None:
    leader.network.fails = error
    await asyncio.sleep(6)
    leader.network.fails = None
    await asyncio.sleep(6)
    assert leader.lease.is_held
    assert [held for _, held in leader.changes] == [True]
    assert set(leader.errors) == {str(error)}


@pytest.mark.parametrize("error", [refusal(500), Unreachable("reset")])
async def test_failures_beyond_the_renew_deadline_end_the_lead_in_time(leader: Candidate, error: Exception) -> None:
    leader.network.fails = error
    await asyncio.sleep(RENEW_DEADLINE_SECONDS)
    assert not leader.lease.is_held
    assert leader.changes[-1][1] is False
    assert leader.changes[-1][0] <= RENEW_DEADLINE_SECONDS + 0.05


@pytest.mark.parametrize("since", [0.5, 1.9, 2.1, 3.0, 4.0])
async def test_an_api_server_that_hangs_ends_the_lead_in_time(one: Candidate, since: float) -> None:
    """Until ``on_change(False)`` the machine leads, and its commands have no effect once ``is_held`` is False."""
    one.start()
    await asyncio.sleep(since)
    one.network.hangs = True
    while one.lease.is_held:
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.1)
    assert [held for _, held in one.changes] == [True, False]


@pytest.mark.parametrize("left", [1.5, 3.0], ids=["between tries", "in a try"])
async def test_an_api_server_that_refuses_and_then_hangs_ends_the_lead_in_time(leader: Candidate, left: float) -> None:
    leader.network.fails = refusal(500)
    await asyncio.sleep(RENEW_DEADLINE_SECONDS - left)
    leader.network.hangs = True
    await asyncio.sleep(left - 0.5)
    assert leader.changes[-1] == (pytest.approx(RENEW_DEADLINE_SECONDS, abs=0.05), False)


async def test_a_lease_that_runs_out_while_the_server_confirms_it_is_not_confirmed(leader: Candidate) -> None:
    await leader.kill()
    leader.network.delay_back = RENEW_DEADLINE_SECONDS
    assert not await leader.lease.is_confirmed()


async def test_a_renewal_counts_from_its_request(one: Candidate) -> None:
    one.network.delay_back = 2.0
    one.start()
    await asyncio.sleep(4.5)  # read and write took 4 s
    one.network.hangs = True
    await asyncio.sleep(RENEW_DEADLINE_SECONDS - 4.5 - 0.1)
    assert one.lease.is_held
    await asyncio.sleep(0.2)
    assert not one.lease.is_held


async def test_a_try_that_hangs_is_repeated_after_half_the_deadline(one: Candidate) -> None:
    one.network.hangs = True
    one.start()
    await asyncio.sleep(RENEW_DEADLINE_SECONDS / 2 - 0.1)
    assert one.errors == []
    await asyncio.sleep(0.2)
    assert one.errors == ["TimeoutError"]
    await asyncio.sleep(RETRY_SECONDS)
    assert len(one.network.calls) == 2


async def test_an_answer_that_is_too_late_is_not_awaited(one: Candidate) -> None:
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


async def test_a_lease_that_another_releases_is_acquired_at_the_next_try(store: LeaseStore, one: Candidate) -> None:
    store.lease = foreign()
    one.start()
    await asyncio.sleep(1)
    store.lease = foreign("")
    await asyncio.sleep(RETRY_SECONDS)
    assert one.lease.is_held


async def test_a_lease_that_was_lost_is_not_read_at_the_end(store: LeaseStore, leader: Candidate) -> None:
    store.lease = foreign()
    await asyncio.sleep(RETRY_SECONDS + 1)
    await leader.kill()
    asked = len(leader.network.calls)
    await leader.lease.release()
    assert len(leader.network.calls) == asked


async def test_a_lease_acquired_during_a_stop_is_released(store: LeaseStore, one: Candidate) -> None:
    """The server has stored the lease, and its answer is not awaited."""
    one.network.delay_back = 0.5
    one.start()
    while store.lease is None:
        await asyncio.sleep(0.1)
    await one.kill()
    assert (store.holder, one.lease.is_held) == ("a", False)
    await one.lease.release()
    assert store.holder == ""
    assert one.changes == []


async def test_a_lease_acquired_after_the_timeout_is_released_too(store: LeaseStore, one: Candidate) -> None:
    one.network.delay_back = RENEW_DEADLINE_SECONDS
    one.start()
    await asyncio.sleep(RENEW_DEADLINE_SECONDS)
    assert (store.holder, one.lease.is_held) == ("a", False)
    await one.kill()
    one.network.delay_back = 0.0
    await one.lease.release()
    assert store.holder == ""


async def test_a_renewal_that_arrives_late_does_not_keep_the_lease(store: LeaseStore, leader: Candidate) -> None:
    """The renewal was sent before the stop, and is stored between the read and the write of the release."""
    await leader.kill()
    leader.network.delay = 0.5
    releasing = asyncio.create_task(leader.lease.release())
    await asyncio.sleep(0.7)
    assert store.lease is not None
    store.lease["metadata"]["resourceVersion"] = "late"
    await releasing
    assert store.holder == ""


async def test_a_lease_that_was_never_held_is_not_released(store: LeaseStore, one: Candidate) -> None:
    store.lease = foreign()
    await one.lease.release()
    assert one.network.calls == []
    assert store.holder == "other"


async def test_a_lease_that_another_holds_is_not_released(store: LeaseStore, leader: Candidate) -> None:
    await leader.kill()
    store.lease = foreign()
    await leader.lease.release()
    assert store.holder == "other"


@pytest.mark.parametrize("error", [refusal(500), Unreachable("reset")])
async def test_a_release_that_fails_is_reported_and_not_raised(leader: Candidate, error: Exception) -> None:
    await leader.kill()
    leader.network.fails = error
    await leader.lease.release()
    assert not leader.lease.is_held
    assert leader.errors == [str(error)]


async def test_a_release_while_the_api_server_hangs_ends_after_a_timeout(leader: Candidate) -> None:
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
async def test_a_leader_that_lost_the_api_server_retries_at_the_same_rate(leader: Candidate, error: Exception) -> None:
    """A refused connection fails at once: without a pause there would be thousands of requests a second."""
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
async def test_a_cancellation_at_any_moment_ends_the_lease(leader: Candidate, turns: int) -> None:
    """Right after an answer, ``asyncio.wait_for`` of Python 3.11 swallows a cancellation."""
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


# -- reports of renewals -----------------------------------------------------------------------------------------------


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

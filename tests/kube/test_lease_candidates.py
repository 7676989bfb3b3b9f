"""Several candidates and a hostile network, in simulated time: never two leaders, and one in the end."""

import asyncio

import looptime
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.leases import Candidate, LeaseStore
from kube.scripted import refusal
from taintwarden.kube.calls.lease import LEASE_SECONDS, RETRY_SECONDS
from taintwarden.kube.errors import Unreachable

NAMES = ("a", "b", "c")

happenings = st.lists(
    st.tuples(
        st.sampled_from([0.1, 1.0, 3.0, 7.0, 16.0]),
        st.sampled_from(NAMES),
        st.sampled_from(["hang", "fail", "refuse", "slow", "slow-back", "twice", "mend", "kill", "start", "release"]),
    ),
    max_size=25,
)


async def act(store: LeaseStore, candidates: dict[str, Candidate], name: str, what: str) -> None:
    candidate = candidates[name]
    network = candidate.network
    match what:
        case "hang":
            network.hangs = True
        case "fail":
            network.fails = Unreachable("reset")
        case "refuse":
            network.fails = refusal(500)
        case "slow":
            network.delay = 2.0
        case "slow-back":
            network.delay_back = 4.0
        case "twice":
            network.repeats = 5
        case "mend":
            network.hangs, network.fails, network.delay, network.delay_back = False, None, 0.01, 0.0
        case "kill":
            await candidate.kill()
            candidates[name] = begin(store, candidates, name)
        case "start":
            candidates[name] = begin(store, candidates, name) if candidate.task.done() else candidate
        case "release":
            await candidate.kill()
            await candidate.lease.release()


def begin(store: LeaseStore, candidates: dict[str, Candidate], name: str) -> Candidate:
    """A candidate that checks for other holders when it acquires the lease: only then can a second one appear."""

    def changed(held: bool) -> None:
        if held and holders(candidates) != [name]:
            store.twins.append(holders(candidates))

    return Candidate(store, name, changed).start()


def holders(candidates: dict[str, Candidate]) -> list[str]:
    """Names of the candidates that may act now. A killed process does not act."""
    return [name for name, one in candidates.items() if one.lease.is_held and not one.task.done()]


async def story(steps: list[tuple[float, str, str]]) -> None:
    store = LeaseStore()
    candidates: dict[str, Candidate] = {}
    candidates |= {name: begin(store, candidates, name) for name in NAMES}
    loop = asyncio.get_running_loop()

    async def watch_until(end: float) -> None:
        while loop.time() < end:
            assert len(holders(candidates)) <= 1, holders(candidates)
            await asyncio.sleep(1.0)

    for seconds, name, what in steps:
        await watch_until(loop.time() + seconds)
        await act(store, candidates, name, what)
        assert len(holders(candidates)) <= 1, holders(candidates)
    for name in NAMES:
        await act(store, candidates, name, "mend")
        await act(store, candidates, name, "start")
    await watch_until(loop.time() + 2 * LEASE_SECONDS + 4 * RETRY_SECONDS)
    assert len(holders(candidates)) == 1
    assert store.twins == []
    for one in candidates.values():
        assert not one.task.done()
        await one.kill()


@given(happenings)
@settings(max_examples=6, deadline=None)
def test_never_two_candidates_lead_and_one_does_in_the_end(steps):
    loop = looptime.new_event_loop()
    try:
        loop.run_until_complete(story(steps))
    finally:
        loop.close()

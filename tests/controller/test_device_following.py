"""Whether devices are followed: only for policies that select them, and only where the server serves them."""

import asyncio
from typing import Any

import pytest

from kube.scripted import ScriptedClient
from taintwarden.controller.device_following import DeviceFollowing
from taintwarden.engine.machine import Event, events
from taintwarden.engine.model import DeviceTaintSelector, Policy, TaintSelector
from taintwarden.kube.errors import ApiError, ApiStatus, Unreachable
from taintwarden.kube.watch.stream_timings import StreamTimings
from taintwarden.telemetry.metrics import Metrics

FOR_NODES = Policy(name="nodes", taints=(TaintSelector("sla"),))
FOR_DEVICES = Policy(name="devices", devices=(DeviceTaintSelector("health"),))
NOT_SERVED = ApiError(404, ApiStatus(message="the server could not find the requested resource"))


class Followed:
    def __init__(self, *answers: Any, **more: Any) -> None:
        self.client = ScriptedClient(*answers, **more)
        self.events: list[Event] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.following = DeviceFollowing(
            self.client,
            self.events.append,
            Metrics(),
            StreamTimings(),
            self._spawn,  # type: ignore[arg-type]
        )

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        self.tasks.append(asyncio.create_task(work))
        return self.tasks[-1]

    async def change(self, *policies: Policy) -> None:
        self.following.policies_changed(policies)
        for _ in range(5):
            await asyncio.sleep(0)

    async def end(self) -> None:
        await self.change()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def test_without_a_policy_for_devices_the_server_is_not_asked():
    followed = Followed()
    await followed.change(FOR_NODES)
    assert (followed.client.calls, followed.events, followed.tasks) == ([], [], [])


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (NOT_SERVED, "does not serve resourceclaims and resourceslices of resource.k8s.io/v1"),
        ({"resources": [{"name": "resourceslices"}]}, "does not serve resourceclaims of resource.k8s.io/v1"),
        (ApiError(403, ApiStatus(message="forbidden: no right")), "forbidden: no right"),
        (Unreachable("connection reset"), "connection reset"),
    ],
    ids=["404", "half", "403", "unreachable"],
)
async def test_a_server_that_serves_no_devices_is_a_problem_that_is_told(answer, said):
    followed = Followed(answer)
    await followed.change(FOR_DEVICES)
    [told] = followed.events
    assert isinstance(told, events.DevicesKnown)
    assert not told.known
    assert said in told.problem
    await followed.end()


async def test_when_the_last_policy_goes_devices_are_not_known_any_more():
    followed = Followed(NOT_SERVED)
    await followed.change(FOR_DEVICES)
    await followed.change(FOR_NODES)
    assert followed.events[-1] == events.DevicesKnown(known=False)
    assert followed.tasks[0].cancelling() or followed.tasks[0].done()
    await followed.end()


async def test_each_time_it_is_followed_everything_is_passed_on():
    """Handlers remember what they passed on, which the machine forgets while devices are not known."""
    followed = Followed({"resources": [{"name": "resourceslices"}, {"name": "resourceclaims"}]}, default=NOT_SERVED)
    followed.following.policies_changed((FOR_DEVICES,))
    streams = followed.following._current
    assert streams is not None
    before = streams._handlers
    await followed.change(FOR_DEVICES)
    assert streams._handlers is not before
    assert events.DevicesKnown(known=False) in followed.events
    await followed.end()


async def test_a_stream_that_was_cut_off_holds_nobody_once_it_is_not_followed():
    followed = Followed({"resources": [{"name": "resourceslices"}, {"name": "resourceclaims"}]}, default=NOT_SERVED)
    await followed.change(FOR_DEVICES)
    streams = followed.following._current
    assert streams is not None
    for handler in streams._handlers.values():
        handler.live(live=False)
    await followed.change(FOR_NODES)
    views = [one for one in followed.events if isinstance(one, events.ViewChanged)]
    assert [one.live for one in views] == [False] * 3 + [True] * 3
    assert {one.stream for one in views[:3]} == {one.stream for one in views[3:]}
    await followed.end()


async def test_another_policy_for_the_same_attributes_changes_nothing():
    followed = Followed(NOT_SERVED)
    await followed.change(FOR_DEVICES)
    await followed.change(FOR_DEVICES, FOR_NODES)
    assert len(followed.tasks) == 1
    await followed.end()

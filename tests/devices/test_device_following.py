"""Devices are followed only for policies that select them, and only if the API server serves them."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from kube.scripted import Call, ScriptedClient, Silence, refusal
from taintwarden.engine.events import Event
from taintwarden.engine.policy import DeviceTaintSelector, Policy, TaintSelector
from taintwarden.kube.errors import ApiError, ApiStatus, Unreachable
from taintwarden.kube.watch.watching import StreamTimings
from taintwarden.telemetry.metrics import Metrics
from taintwarden_devices import events as device_events
from taintwarden_devices.following import RECHECK_SECONDS, RETRY_SECONDS, DeviceFollowing
from taintwarden_devices.inventory import Slice
from taintwarden_devices.objects import CLAIMS, DEVICES_PATH, SLICES, TAINT_RULES

FOR_NODES = Policy(name="nodes", taints=(TaintSelector("sla"),))
FOR_DEVICES = Policy(name="devices", devices=(DeviceTaintSelector("health"),))
NOT_SERVED = ApiError(404, ApiStatus(message="404 page not found"))


KNOWN, UNKNOWN = device_events.DevicesKnown(known=True), device_events.DevicesKnown(known=False)
SERVED = {"resources": [{"name": "resourceslices"}, {"name": "resourceclaims"}]}
WITH_RULES = {"resources": [*SERVED["resources"], {"name": "devicetaintrules"}]}
WATCH_SECONDS = 7


class Followed:
    def __init__(self, *answers: Any, **more: Any) -> None:
        self.client = ScriptedClient(*answers, **more)
        self.events: list[Event] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.following = DeviceFollowing(
            self.client,
            self.events.append,
            Metrics(),
            StreamTimings(watch=(WATCH_SECONDS, WATCH_SECONDS)),
            self._spawn,  # type: ignore[arg-type]
        )

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        self.tasks.append(asyncio.create_task(work))
        return self.tasks[-1]

    async def change(self, *policies: Policy) -> None:
        self.following.policies_changed(policies)
        for _ in range(10):
            await asyncio.sleep(0)

    def known_events(self) -> list[device_events.DevicesKnown]:
        return [one for one in self.events if isinstance(one, device_events.DevicesKnown)]

    async def end(self) -> None:
        await self.change()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def test_without_a_policy_for_devices_no_request_is_made():
    followed = Followed()
    await followed.change(FOR_NODES)
    assert (followed.client.calls, followed.events, followed.tasks) == ([], [], [])


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (NOT_SERVED, "does not serve resourceclaims and resourceslices of resource.k8s.io/v1"),
        ({"resources": [{"name": "resourceslices"}]}, "does not serve resourceclaims of resource.k8s.io/v1"),
        (ApiError(403, ApiStatus(message="forbidden: no right")), "forbidden: no right"),
        (ApiError(404, ApiStatus(message="default backend - 404")), "default backend - 404"),
        (Unreachable("connection reset"), "connection reset"),
    ],
    ids=["404", "half", "403", "404 of a load balancer", "unreachable"],
)
async def test_a_server_without_devices_is_reported_as_a_problem(answer, said):
    followed = Followed(answer)
    await followed.change(FOR_DEVICES)
    [reported] = followed.events
    assert isinstance(reported, device_events.DevicesKnown)
    assert not reported.known
    assert said in reported.problem
    await followed.end()


async def test_after_the_last_policy_no_request_is_made():
    followed = Followed(NOT_SERVED)
    await followed.change(FOR_DEVICES)
    await followed.change(FOR_NODES)
    assert all(task.done() for task in followed.tasks)
    await followed.end()


async def test_another_policy_for_the_same_drivers_changes_nothing():
    followed = Followed(NOT_SERVED)
    await followed.change(FOR_DEVICES)
    await followed.change(FOR_DEVICES, FOR_NODES)
    assert len(followed.tasks) == 1
    await followed.end()


# -- a server that serves devices -------------------------------------------------------------------------------------


class Server:
    """A server of these resources that answers lists with the objects of the test."""

    def __init__(self, served: Any = SERVED) -> None:
        self.served = served
        self.lists: dict[str, Any] = {}
        self.refused: dict[str, ApiError] = {}

    def __call__(self, call: Call) -> Any:
        if call.path == DEVICES_PATH:
            return self.served if call.method == "GET" else refusal(405)
        if call.path in self.refused:
            return self.refused[call.path]
        if "watch" in call.params:
            return [Silence(float(call.params["timeoutSeconds"]))]
        return self.lists.get(call.path, {"metadata": {"resourceVersion": "7"}, "items": []})


SLICE = {
    "metadata": {"name": "s1", "uid": "u1", "resourceVersion": "3"},
    "spec": {
        "driver": "d",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0", "attributes": {"tier": {"string": "gold"}}}],
    },
}


def of_driver(driver: str) -> Policy:
    return Policy(name=f"of-{driver}", devices=(DeviceTaintSelector("health", driver),))


async def following(server: Server, *policies: Policy) -> Followed:
    followed = Followed(default=server)
    await followed.change(*(policies or (FOR_DEVICES,)))
    await asyncio.sleep(2)
    return followed


@pytest.mark.looptime
async def test_devices_are_known_once_they_are_listed():
    followed = await following(Server())
    assert followed.known_events() == [KNOWN]
    await followed.end()
    assert followed.known_events() == [KNOWN, UNKNOWN]


@pytest.mark.looptime
async def test_all_objects_are_passed_on_each_time_that_devices_are_followed():
    """Handlers remember the events that they passed on, which the machine drops while devices are not known."""
    server = Server()
    server.lists[SLICES.path] = {"metadata": {"resourceVersion": "7"}, "items": [SLICE]}
    followed = await following(server)
    await followed.change(FOR_NODES)
    await followed.change(FOR_DEVICES)
    await asyncio.sleep(2)
    seen = [one for one in followed.events if isinstance(one, device_events.DevicesKnown | device_events.SliceChanged)]
    slices = device_events.SliceChanged("s1", Slice("d", "p", 1, 1, {"gpu-0": ()}), listed=True)
    assert seen == [slices, KNOWN, UNKNOWN, slices, KNOWN]
    await followed.end()


@pytest.mark.looptime
@pytest.mark.parametrize("changes", [(FOR_DEVICES, FOR_NODES), (FOR_NODES, FOR_DEVICES, FOR_NODES)])
async def test_a_stream_that_ended_delivers_nothing(changes):
    """The next stream does not know such an object, and would never report its deletion."""
    server = Server()
    server.lists[SLICES.path] = {"metadata": {"resourceVersion": "7"}, "items": [SLICE]}
    followed = await following(server)
    for one in changes:
        followed.following.policies_changed((one,))
    await asyncio.sleep(2)
    assert followed.events[-1] == UNKNOWN
    assert all(task.done() for task in followed.tasks)


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("served", "listed"), [(SERVED, {SLICES, CLAIMS}), (WITH_RULES, {SLICES, CLAIMS, TAINT_RULES})]
)
async def test_the_served_kinds_are_listed_and_watched(served, listed):
    followed = await following(Server(served))
    calls = [call for call in followed.client.calls if call.path != DEVICES_PATH]
    assert {call.path for call in calls if "watch" not in call.params} == {one.path for one in listed}
    watches = {call.path: call.params["timeoutSeconds"] for call in calls if "watch" in call.params}
    assert watches == {one.path: str(WATCH_SECONDS) for one in listed}
    await followed.end()


@pytest.mark.looptime
@pytest.mark.parametrize(("driver", "kept"), [("", 1), ("d", 1), ("other", 0)])
async def test_only_slices_of_drivers_that_policies_name_are_kept(driver, kept):
    server = Server()
    server.lists[SLICES.path] = {"metadata": {"resourceVersion": "7"}, "items": [SLICE]}
    followed = await following(server, of_driver(driver))
    assert len([one for one in followed.events if isinstance(one, device_events.SliceChanged)]) == kept
    await followed.end()


@pytest.mark.looptime
async def test_a_policy_that_names_another_driver_lists_all_kinds_again():
    server = Server()
    server.lists[SLICES.path] = {"metadata": {"resourceVersion": "7"}, "items": [SLICE]}
    followed = await following(server, of_driver("other"))
    await followed.change(of_driver("other"), of_driver("d"))
    await asyncio.sleep(2)
    assert len([one for one in followed.events if isinstance(one, device_events.SliceChanged)]) == 1
    await followed.end()


@pytest.mark.looptime
async def test_a_list_that_fails_is_reported_once_for_the_same_reason():
    server = Server()
    server.lists[CLAIMS.path] = refusal(403, "claims are forbidden")
    with capture_logs() as logs:
        followed = await following(server)
        await asyncio.sleep(60)
    problems = [one.problem for one in followed.known_events() if one.problem]
    assert len(problems) == 1
    assert "claims are forbidden" in problems[0]
    assert [one["reason"] for one in logs if one["event"] == "devices-not-known"] == problems
    await followed.end()


@pytest.mark.looptime
async def test_a_server_without_devices_gets_another_request_after_a_pause():
    server = Server(NOT_SERVED)
    followed = await following(server)
    assert len(followed.client.calls) == 1
    await asyncio.sleep(RETRY_SECONDS)
    assert len(followed.client.calls) == 2
    server.served = SERVED
    await asyncio.sleep(RETRY_SECONDS)
    assert followed.known_events()[-1] == KNOWN
    await followed.end()


@pytest.mark.looptime
async def test_a_server_that_serves_more_kinds_after_an_upgrade_is_followed_again():
    server = Server()
    followed = await following(server)
    server.served = WITH_RULES
    await asyncio.sleep(RECHECK_SECONDS + 2)
    assert followed.known_events() == [KNOWN, UNKNOWN, KNOWN]
    assert TAINT_RULES.path in followed.client.paths()
    await followed.end()


@pytest.mark.looptime
async def test_rules_that_are_not_served_any_more_do_not_make_devices_unknown():
    server = Server(WITH_RULES)
    followed = await following(server)
    server.served, server.refused = SERVED, {TAINT_RULES.path: NOT_SERVED}
    await asyncio.sleep(100)
    assert followed.known_events() == [KNOWN, UNKNOWN, KNOWN]
    await followed.end()


@pytest.mark.looptime
async def test_devices_that_are_not_served_any_more_are_reported_as_a_problem():
    server = Server()
    followed = await following(server)
    server.served, server.refused = NOT_SERVED, dict.fromkeys((SLICES.path, CLAIMS.path), NOT_SERVED)
    await asyncio.sleep(100)
    assert "does not serve" in followed.known_events()[-1].problem
    server.served, server.refused = SERVED, {}
    await asyncio.sleep(RETRY_SECONDS + 2)
    assert followed.known_events()[-1] == KNOWN
    await followed.end()


@pytest.mark.looptime
async def test_an_outage_does_not_make_devices_unknown():
    server = Server(WITH_RULES)
    followed = await following(server)
    server.served = Unreachable("gone")
    server.refused = dict.fromkeys((SLICES.path, CLAIMS.path, TAINT_RULES.path), Unreachable("gone"))
    await asyncio.sleep(100)
    server.served, server.refused = WITH_RULES, {}
    await asyncio.sleep(100)
    assert followed.known_events() == [KNOWN]
    await followed.end()


@pytest.mark.looptime
async def test_after_the_end_nothing_is_delivered():
    server = Server()
    followed = await following(server)
    await followed.end()
    delivered = len(followed.events)
    await asyncio.sleep(100)
    assert len(followed.events) == delivered

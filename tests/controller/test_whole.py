"""The whole operator against an API server that misbehaves evicts each pod that is due once, and no other pod."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import aiohttp
import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from controller.whole import TIMINGS, Whole, whole
from controlplane.api_server import free_port
from patience import PATIENCE_SECONDS, until
from taintwarden import app as app_module
from taintwarden.app import App
from taintwarden.engine import events
from taintwarden.engine.commands import Command
from taintwarden.engine.model import Instant
from taintwarden.kube.errors import ConfigError, KubeError, Untrusted
from taintwarden.kube.wire.resources import PODS

WAVE = [f"web-{number}" for number in range(20)]
ROCKS = [f"rock-{number}" for number in range(5)]


@pytest.fixture
async def scene(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Whole]:
    """Two nodes with pods that need more than 950; the first also has some that accept anything above 100."""
    async with whole(monkeypatch, tmp_path) as made:
        made.policy()
        for name in ("n1", "n2"):
            made.node(name)
        made.pods("n1", *WAVE[:10])
        made.pods("n2", *WAVE[10:])
        made.pods("n1", *ROCKS, above="100")
        yield made


async def finished(scene: Whole) -> None:
    """Wait until each pod of the wave was evicted once, and check that no other pod was."""
    await scene.until(lambda: not scene.observed(*WAVE))
    assert scene.observed() >= set(ROCKS)
    assert set(scene.evictions) == set(WAVE)
    assert set(scene.evictions.values()) == {1}


def drop(scene: Whole) -> None:
    for node in ("n1", "n2"):
        scene.taint(node, "940")


async def leads(scene: Whole, identity: str = "one") -> None:
    app = await scene.start(identity)
    await scene.until(lambda: app.machine.view.is_leading)


async def test_a_wave_is_evicted_through_errors_of_every_kind(scene: Whole) -> None:
    await leads(scene)
    for code in (500, 429, 503):
        scene.faults.answer(code, method="POST", path="/eviction$", times=10)
    scene.faults.cut(method="POST", path="/eviction$", times=10)
    scene.faults.slow(0.05, method="POST", path="/eviction$", times=10)
    drop(scene)
    await finished(scene)


async def test_a_wave_is_evicted_after_its_grace(scene: Whole) -> None:
    """The fixture checks at the end that no pod left earlier."""
    patient = [f"patient-{number}" for number in range(5)]
    scene.pods("n1", *patient, violationGraceSeconds=1)
    await leads(scene)
    drop(scene)
    await scene.until(lambda: not scene.observed(*patient))


async def test_a_wave_is_evicted_while_watches_are_cut(scene: Whole) -> None:
    await leads(scene)
    scene.faults.cut_watch(times=6)
    drop(scene)
    await finished(scene)


async def test_a_wave_is_evicted_while_pods_cannot_be_decoded(scene: Whole) -> None:
    await leads(scene)
    scene.faults.garble_watch("pods", times=5)
    drop(scene)
    await scene.until(lambda: len(scene.observed(*WAVE)) == 0)
    assert scene.observed() >= set(ROCKS)


async def test_a_recovery_while_the_operator_is_cut_off_spares_the_pods(scene: Whole) -> None:
    """While it is cut off, the operator evicts no pod, since it does not know the node's present taints."""
    await leads(scene)
    away = scene.faults.answer(503, method="GET", path="/api/v1/(nodes|pods)$", times=1_000_000)
    scene.cluster.drop_watches("nodes")
    scene.cluster.drop_watches("pods")
    await scene.until(lambda: away.occurrences >= 2)
    drop(scene)
    scene.cluster.expire_history("nodes")
    for node in ("n1", "n2"):
        scene.taint(node, "980")
    away.times = 0
    await scene.until(lambda: scene.cluster.open_watches("nodes") and scene.cluster.open_watches("pods"))
    await asyncio.sleep(0.3)
    assert scene.evictions == {}


async def test_changes_in_a_gap_with_expired_history_are_noticed(scene: Whole) -> None:
    await leads(scene)
    away = scene.faults.answer(503, method="GET", path="/api/v1/(nodes|pods)$", times=1_000_000)
    scene.cluster.drop_watches()
    await scene.until(lambda: away.occurrences >= 2)
    drop(scene)
    scene.cluster.delete("pods", WAVE[0], "default", grace_seconds=0)
    scene.cluster.expire_history()
    away.times = 0
    await scene.until(lambda: not scene.observed(*WAVE))
    assert set(scene.evictions) == set(WAVE[1:])


async def test_an_api_server_that_hangs_ends_the_lead_and_no_pod_is_evicted_twice(scene: Whole) -> None:
    scene.timings = replace(TIMINGS, lease=replace(TIMINGS.lease, duration=2, renew_deadline=1.0))
    await leads(scene)
    [app] = scene.apps
    hanging = scene.faults.hang(path=".*", times=1_000_000)
    await scene.until(lambda: not app.lease.is_held)
    await scene.until(lambda: not app.machine.view.is_leading)
    drop(scene)
    hanging.times = 0
    hanging.lifted.set()
    await finished(scene)


async def test_without_a_leader_no_replica_is_ready(scene: Whole) -> None:
    """A right may be missing, or the API server may refuse the Lease of every replica."""
    scene.timings = replace(TIMINGS, lease=replace(TIMINGS.lease, duration=1, renew_deadline=1.0))
    refused = scene.faults.answer(400, method="POST", path="/leases", times=1_000_000)
    app = await scene.start()
    await scene.until(lambda: app.unready() == "no replica leads, so no pod is evicted")
    refused.times = 0
    await scene.until(lambda: app.machine.view.is_leading)
    assert app.unready() == ""


async def test_a_stop_waits_for_calls_in_progress(scene: Whole) -> None:
    """Calls that were not sent are dropped, since their reasons are no longer kept up to date."""
    scene.timings = replace(TIMINGS, stop_seconds=PATIENCE_SECONDS)
    await leads(scene)
    [app] = scene.apps
    slow = scene.faults.slow(0.3, method="POST", path="/eviction$", times=1_000)
    drop(scene)
    await scene.until(lambda: slow.occurrences)
    in_progress = slow.occurrences
    await scene.stop(app)
    assert sum(scene.evictions.values()) >= in_progress


async def test_no_call_is_sent_after_the_lease_is_released(scene: Whole) -> None:
    """A PATCH that is answered too late before a stop is not followed by its DELETE."""
    scene.timings = replace(TIMINGS, stop_seconds=0.4)
    policy = scene.cluster.store.get("taintevictionpolicies", "sla")
    policy["spec"]["eviction"]["method"] = "Delete"
    scene.cluster.store.update("taintevictionpolicies", policy)
    await leads(scene)
    [app] = scene.apps
    patch = scene.faults.slow(0.6, method="PATCH", path="/pods/[^/]+/status$", times=1_000)
    scene.faults.slow(0.36, method="POST", path="/events$", times=1_000)
    drop(scene)
    await scene.until(lambda: patch.occurrences)
    await scene.stop(app)
    await asyncio.sleep(0.3)
    assert scene.faults.count("DELETE", "/pods/") == 0
    assert scene.observed() == {*WAVE, *ROCKS}


async def test_a_finished_wave_is_reported_in_status_and_events(scene: Whole) -> None:
    await leads(scene)
    drop(scene)
    await finished(scene)

    def conditions() -> dict[str, str]:
        return {one["type"]: one["status"] for one in scene.status_of().get("conditions", ())}

    await scene.until(lambda: scene.status_of().get("evicted") == len(WAVE))
    await scene.until(lambda: conditions().get("Progressing") == "False")  # accepted is not gone
    held = {"Accepted": "True", "Ready": "True", "Enforcing": "True", "Progressing": "False", "GuardTripped": "False"}
    assert conditions() == held

    def evicted_pods() -> set[str]:
        events = scene.cluster.store.list("events")
        return {one["involvedObject"]["name"] for one in events if one["reason"] == "Evicted"}

    await scene.until(lambda: evicted_pods() == set(WAVE))


async def test_probes_and_metrics_report_when_the_operator_is_ready(scene: Whole) -> None:
    port = free_port()
    blocked = scene.faults.answer(503, method="GET", path="/api/v1/nodes$", times=1_000_000)
    app = await scene.start(http_port=port)
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:

        async def ask(path: str) -> tuple[int, str]:
            async with session.get(path) as response:
                return response.status, await response.text()

        assert await ask("/readyz") == (503, "the cluster is not fully known yet\n")
        assert await ask("/livez") == (200, "ok\n")
        blocked.times = 0
        await scene.until(lambda: app.machine.view.is_leading)
        assert await ask("/readyz") == (200, "ok\n")
        assert "taintwarden_leader 1.0" in (await ask("/metrics"))[1]
        assert "taintwarden_pods 25.0" in (await ask("/metrics"))[1]


def take_event(scene: Whole, app: App) -> None:
    scene.taint("n1", "970")


def end_gap(scene: Whole, app: App) -> None:
    """Run a timer of a stream, whose errors asyncio only logs."""
    asyncio.get_running_loop().call_soon(partial(app.following.handlers[PODS].live, live=False))


@pytest.mark.parametrize(("cause", "kind"), [(take_event, events.NodeSeen), (end_gap, events.ViewChanged)])
async def test_a_step_that_fails_ends_the_process_with_a_reason(
    scene: Whole, monkeypatch: pytest.MonkeyPatch, cause: Callable[[Whole, App], None], kind: type[events.Event]
) -> None:
    app = await scene.start()
    await scene.until(lambda: app.machine.view.is_synced)

    step = app.machine.step

    def fail(event: events.Event, now: Instant) -> list[Command]:
        if isinstance(event, kind):
            raise RuntimeError("boom")
        return step(event, now)

    monkeypatch.setattr(app.machine, "step", fail)
    cause(scene, app)
    await until(lambda: scene.killed)
    assert scene.killed == [signal.SIGTERM]
    assert "boom" in app.dead()
    scene.killed.clear()


# -- how it starts ----------------------------------------------------------------------------------------------------


async def test_a_port_that_is_in_use_is_an_error_that_names_it(scene: Whole) -> None:
    listener = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with listener:
        port = listener.sockets[0].getsockname()[1]
        settings = app_module.Settings(kubeconfig=str(scene.kubeconfig), http_host="127.0.0.1", http_port=port)
        with pytest.raises(ConfigError, match=f"127.0.0.1:{port}"):
            await app_module.run(settings)


async def test_an_api_server_that_cannot_be_reached_is_an_error(scene: Whole, tmp_path: Path) -> None:
    file = tmp_path / "elsewhere"
    file.write_text(re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:1", scene.kubeconfig.read_text()))
    with pytest.raises(KubeError):
        await app_module.App.connect(
            app_module.Settings(kubeconfig=str(file)), app_module.AppTimings(starting_seconds=0.0)
        )


async def test_an_api_server_that_is_not_reached_yet_is_waited_for(
    scene: Whole, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pods of a node that boots start before it routes to the Service of the API server."""
    sleeps = []

    async def sleep(seconds: float) -> None:
        sleeps.append(seconds)

    monkeypatch.setattr(app_module.asyncio, "sleep", sleep)
    cut = scene.faults.cut(path="/taintevictionpolicies$", times=4)
    app = await app_module.App.connect(scene.settings())
    monkeypatch.undo()
    await app.client.__aexit__()
    assert sleeps
    assert cut.times == 0


async def test_an_api_server_that_is_not_trusted_is_an_error_at_once(
    scene: Whole, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def untrusted(*_: object) -> None:
        asked.append(True)
        raise Untrusted("another authority")

    monkeypatch.setattr(app_module, "check_definition", untrusted)
    with pytest.raises(Untrusted):
        await app_module.App.connect(scene.settings())
    assert len(asked) == 1


async def test_an_api_server_without_the_definitions_is_an_error(scene: Whole) -> None:
    scene.faults.answer(404, path="/taintevictionpolicies$")
    with pytest.raises(KubeError, match="crds"):
        await app_module.App.connect(scene.settings())


async def test_an_api_server_that_gets_ready_is_waited_for(scene: Whole, monkeypatch: pytest.MonkeyPatch) -> None:
    sleeps = []

    async def sleep(seconds: float) -> None:
        sleeps.append(seconds)

    monkeypatch.setattr(app_module.asyncio, "sleep", sleep)
    scene.faults.answer(503, path="/taintevictionpolicies$", times=2)
    scene.faults.answer(429, path="/tolerationprofiles$", times=3)
    app = await app_module.App.connect(scene.settings())
    monkeypatch.undo()
    await app.client.__aexit__()
    assert sleeps == [1.0] * 5


async def test_operators_that_are_switched_off_are_logged(scene: Whole) -> None:
    with capture_logs() as logs:
        await scene.start(numeric_operators=False, semver_operators=False)
    logged = [entry["operators"] for entry in logs if entry["event"] == "operators-switched-off"]
    assert logged == ["Gt, Lt", "Semver*"]


async def test_a_dry_run_evicts_no_pod_and_its_condition_says_why(scene: Whole) -> None:
    with capture_logs() as logs:
        app = await scene.start(dry_run=True)
        await scene.until(lambda: app.machine.view.is_leading)
        drop(scene)
        await scene.until(lambda: sum(entry["event"] == "eviction-rehearsed" for entry in logs) == len(WAVE))
    await scene.until(lambda: "conditions" in scene.status_of())
    enforcing = next(one for one in scene.status_of()["conditions"] if one["type"] == "Enforcing")
    assert (enforcing["status"], enforcing["reason"]) == ("False", "DryRun")
    assert "--dry-run" in enforcing["message"]
    assert "dry-run" in [entry["event"] for entry in logs]
    assert not scene.evictions


# -- policies that change ----------------------------------------------------------------------------------------------


@pytest.fixture
async def running(scene: Whole) -> AsyncIterator[Whole]:
    """`taintwarden run`, in the process."""
    kill = os.kill
    task = asyncio.create_task(app_module.run(scene.settings(), TIMINGS))
    await scene.until(lambda: scene.status_of().get("conditions"))
    await scene.until(lambda: scene.cluster.open_watches("taintevictionpolicies"))
    yield scene
    assert not task.done()
    signal.raise_signal(signal.SIGTERM)
    assert await asyncio.wait_for(task, PATIENCE_SECONDS) is None
    assert kill is os.kill


async def test_nothing_is_evicted_while_policies_are_not_known(running: Whole) -> None:
    """A policy may have been paused or deleted meanwhile."""
    scene = running
    away = scene.faults.answer(503, method="GET", path="/taintevictionpolicies$", times=1_000_000)
    scene.cluster.drop_watches("taintevictionpolicies")
    await scene.until(lambda: away.occurrences >= 2)
    await asyncio.sleep(TIMINGS.streams.gap)
    drop(scene)
    await asyncio.sleep(0.3)
    assert scene.evictions == {}
    away.times = 0
    await finished(scene)


async def test_a_missing_definition_is_logged_with_its_remedy(running: Whole) -> None:
    scene = running
    with capture_logs() as logs:
        scene.cluster.delete("customresourcedefinitions", "tolerationprofiles.taintwarden.io")
        scene.cluster.drop_watches("tolerationprofiles")
        await scene.until(lambda: [one for one in logs if "kubectl apply -f crds/" in one.get("detail", "")])


@pytest.mark.parametrize("code", [410, 500])
async def test_a_watch_of_policies_that_fails_does_not_end_the_operator(running: Whole, code: int) -> None:
    scene = running
    scene.faults.fail_watch(code, "taintevictionpolicies")
    scene.policy("other", taints=[{"key": "other"}])
    drop(scene)
    await finished(scene)

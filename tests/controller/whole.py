"""The whole operator in the process, against an API server that misbehaves on demand, with its patience shortened."""

import asyncio
import gc
import json
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from chaos.embedded import Kept
from contract.api import pod as pod_body
from definitions import define
from limits_off import LIMITS_OFF
from localcluster import LocalCluster
from patience import PATIENCE_SECONDS
from taintwarden import app as app_module
from taintwarden.app import App, AppTimings
from taintwarden.engine.machine import Timings
from taintwarden.engine.outcomes import Outcome
from taintwarden.kube.calls.lease import LeaseTimings
from taintwarden.kube.watch.watching import StreamTimings
from taintwarden.plugin import load_plugin
from taintwarden.settings import Settings

EVICTION = re.compile(r"/namespaces/([^/]+)/pods/([^/]+)/eviction$")

SOON = dict.fromkeys((Outcome.FAILED, Outcome.THROTTLED, Outcome.BLOCKED), (0.05, 0.2))
TIMINGS = AppTimings(
    streams=StreamTimings(gap=0.5, short_watch=1, opening=0.5, idle=0.5, back_off=(0.02, 0.2)),
    machine=Timings(
        write_failed=(0.1, 0.1),
        write_refused=(0.1, 0.1),
        min_pause=0.05,
        condition_rest=0.2,
        condition_soon=0.02,
        condition_outdated=0.1,
        condition_refused=0.2,
        back_off={**Timings().back_off, **SOON},
    ),
    lease=LeaseTimings(duration=4, renew_deadline=3.0, retry=0.1),  # a machine that is busy with a wave renews it
    refresh_seconds=0.1,
    stop_seconds=1.0,
)
"""Timings of tenths of a second instead of seconds."""

STALE_SECONDS = 2.0
"""Maximum age of the state that an operator acts on, of objects whose requests are not disturbed."""
INSTALLED = lru_cache(load_plugin)
"""All distributions of the environment are read once, not for each operator."""
Json = dict[str, Any]


class Whole:
    """A cluster with nodes and pods, and operators in it."""

    def __init__(self, cluster: LocalCluster, kubeconfig: Path) -> None:
        self.cluster = cluster
        self.faults = cluster.faults
        self.kubeconfig = kubeconfig
        self.timings = TIMINGS
        self.apps: list[App] = []
        self.killed: list[int] = []

    # -- the cluster -----------------------------------------------------------------------------------------------

    def policy(self, name: str = "sla", **spec: Any) -> None:
        base = {"taints": [{"key": "sla"}], "limits": LIMITS_OFF}
        self.cluster.create("taintevictionpolicies", {"metadata": {"name": name}, "spec": base | spec})

    def profile(self, name: str, *tolerations: Json, labels: dict[str, str] | None = None) -> None:
        """A profile for pods of the namespace `default` with these labels, or for all of them."""
        spec = {"podSelector": {"matchLabels": labels or {}}, "tolerations": list(tolerations)}
        self.cluster.create("tolerationprofiles", {"metadata": {"name": name, "namespace": "default"}, "spec": spec})

    def node(self, name: str, value: str = "980") -> None:
        self.cluster.create("nodes", {"metadata": {"name": name}})
        self.taint(name, value)

    def taint(self, name: str, value: str) -> None:
        node = self.cluster.store.get("nodes", name)
        node["spec"]["taints"] = [{"key": "sla", "value": value, "effect": "NoExecute"}] if value else []
        self.cluster.store.update("nodes", node)

    def pods(self, node: str, *names: str, above: str = "950", **more: Any) -> None:
        """Pods that ask for an SLA above a value, running at once."""
        asked = [{"key": "sla", "operator": "Gt", "value": above} | more]
        for name in names:
            body = pod_body(name, nodeName=node, tolerations=[{"operator": "Exists"}])
            body["metadata"]["annotations"] = {"taintwarden.io/tolerations": json.dumps(asked)}
            self.cluster.create("pods", body)

    def observed(self, *names: str) -> set[str]:
        """The pods that exist and do not terminate."""
        there = {
            one["metadata"]["name"]
            for one in self.cluster.store.list("pods")
            if "deletionTimestamp" not in one["metadata"]
        }
        return there & set(names) if names else there

    @property
    def evictions(self) -> Counter[str]:
        """Number of evictions of each pod that the API server accepted."""
        met = [(EVICTION.search(one.path), one.status) for one in self.faults.requests]
        return Counter(match[2] for match, code in met if match and code == 201)

    def status_of(self, name: str = "sla") -> Json:
        found: Json = self.cluster.store.get("taintevictionpolicies", name).get("status") or {}
        return found

    async def until(self, holds: Callable[[], Any]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not holds():
                self.check()
                await asyncio.sleep(0.01)
        self.check()

    def check(self) -> None:
        """Raise AssertionError if an operator has failed."""
        assert not self.killed, [app.failure for app in self.apps]

    # -- operators ---------------------------------------------------------------------------------------------------

    def settings(self, identity: str = "one", http_port: int = 0, **more: Any) -> Settings:
        own = self.kubeconfig.with_name(identity)
        own.write_text(self.kubeconfig.read_text().replace("user: {}", f"user: {{token: {identity}}}"))
        return Settings(
            kubeconfig=str(own),
            identity=identity,
            http_host="127.0.0.1",
            http_port=http_port,
            max_evictions_per_second=0.0,
            events_per_second=1_000.0,
            **more,
        )

    async def start(self, identity: str = "one", **more: Any) -> App:
        app = await self.connect(identity, **more)
        await app.start()
        return app

    async def connect(self, identity: str = "one", **more: Any) -> App:
        """An operator that has reached the cluster, and follows no kind yet."""
        app = await App.connect(self.settings(identity, **more), self.timings)
        self.apps.append(app)
        return app

    async def crash(self, app: App) -> None:
        """End an operator as kill -9 would: it finishes and releases nothing; its lease lasts one second."""
        self.apps.remove(app)
        while tasks := [*app._tasks, *app._calls]:
            for task in tasks:
                task.cancel()
            _, stuck = await asyncio.wait(tasks, timeout=PATIENCE_SECONDS)
            assert not stuck, stuck
        for server in app._servers:
            await server.stop()
        await app.client.__aexit__()
        for lease in self.cluster.store.list("leases"):
            if lease["spec"]["holderIdentity"] == app.settings.identity:
                lease["spec"]["leaseDurationSeconds"] = 1  # others would wait for all of it
                self.cluster.store.update("leases", lease)

    async def stop(self, app: App) -> None:
        self.apps.remove(app)
        await app.stop()


@asynccontextmanager
async def whole(monkeypatch: pytest.MonkeyPatch, path: Path) -> AsyncIterator[Whole]:
    """A cluster; the checker verifies at the end that evictions were due, happened once, and by the leader."""
    monkeypatch.setattr(gc, "collect", lambda: 0)  # the whole test run's heap is no cluster
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(app_module, "load_plugin", INSTALLED)
    thresholds = gc.get_threshold()
    cluster = LocalCluster(kubelet=True, termination_seconds=0.05, bookmark_seconds=0.1)
    define(cluster)
    cluster.create("namespaces", {"metadata": {"name": "taintwarden-system"}})
    kept = Kept(cluster)
    async with cluster.serve() as server:
        made = Whole(cluster, server.write_kubeconfig(path / "kubeconfig"))
        monkeypatch.setattr(os, "kill", lambda pid, number: made.killed.append(number))
        try:
            with capture_logs():  # else each line is formatted, and a failure with all variables
                yield made
            made.check()
            verdict = kept.verdict(STALE_SECONDS)
            assert verdict.breaches().keys() <= {"over"}, verdict.findings
        finally:
            monkeypatch.undo()
            cluster.faults.clear()
            for app in list(made.apps):
                await made.crash(app)
            gc.set_threshold(*thresholds)

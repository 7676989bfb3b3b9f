"""A cluster with policies in it, and commands run on it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from click.testing import Result

from cli.world import Json
from definitions import define
from localcluster import LocalCluster

POLICIES = "taintevictionpolicies"
Run = Callable[..., Coroutine[Any, Any, Result]]


def empty_cluster() -> LocalCluster:
    """One that knows policies and profiles."""
    cluster = LocalCluster(comparison_operators=True)
    define(cluster, POLICIES, "tolerationprofiles")
    return cluster


def stored(cluster: LocalCluster, name: str = "sla") -> Json:
    return cluster.store.get(POLICIES, name)


def annotations(cluster: LocalCluster, name: str = "sla") -> Json:
    return stored(cluster, name)["metadata"].get("annotations", {})


def set_status(cluster: LocalCluster, name: str = "sla", **status: Any) -> None:
    """What the operator would have written."""

    def write(policy: Json) -> None:
        policy["status"] = {"observedGeneration": policy["metadata"]["generation"]} | status

    cluster.store.modify(POLICIES, name, "", write)


def condition(kind: str, status: str, message: str = "", reason: str = "Test") -> Json:
    since = "2026-01-31T12:00:00Z"
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}


@asynccontextmanager
async def running(cluster: LocalCluster, cli: Callable[..., Result], folder: Path) -> AsyncIterator[Run]:
    """Run `taintwarden` with these arguments on the cluster."""
    async with cluster.serve() as server:
        env = {"TAINTWARDEN_KUBECONFIG": str(server.write_kubeconfig(folder / "kubeconfig"))}

        async def run(*args: str, stdin: str | None = None) -> Result:
            return await asyncio.to_thread(cli, *args, stdin=stdin, env=env)

        yield run

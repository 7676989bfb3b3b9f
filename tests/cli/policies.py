"""A cluster with policies in it, and commands run on it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from click.testing import Result

from cli.world import Json, budget
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


def add_deployment(cluster: LocalCluster) -> None:
    """Add Deployment web of one replica, its ReplicaSet web-1 (UID rs-web-1), and a budget that never allows."""
    owner = {"kind": "Deployment", "name": "web", "uid": "d-web", "controller": True}
    sets = {"name": "web-1", "namespace": "shop", "uid": "rs-web-1", "ownerReferences": [owner]}
    cluster.store.create("replicasets", {"metadata": sets, "spec": {"replicas": 1}})
    counts = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
    web = {"metadata": {"name": "web", "namespace": "shop", "uid": "d-web"}, "spec": {"replicas": 1}}
    cluster.store.create("deployments", web | {"status": counts})
    cluster.store.create("poddisruptionbudgets", budget())


def set_status(cluster: LocalCluster, name: str = "sla", **status: Any) -> None:
    """Write a status as the operator would."""

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

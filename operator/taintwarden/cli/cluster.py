"""Reads what ``explain`` needs from a cluster, with the rights of whoever asks: five requests, each bounded in time."""

import asyncio
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from taintwarden.cli.facts import Facts
from taintwarden.kube.client import Client
from taintwarden.kube.connection import Connection
from taintwarden.kube.errors import ApiError, KubeError, Unreachable
from taintwarden.kube.objects import BudgetObject, NamespaceObject, NodeObject, PodObject
from taintwarden.kube.policies import PATH as POLICIES_PATH

TIMEOUT_SECONDS = 10.0
MAX_BUDGETS = 500

T = TypeVar("T")


class ClusterError(Exception):
    """The cluster did not tell what is needed; the message is one line and says what was asked."""


class _Budgets(msgspec.Struct):
    items: list[BudgetObject] = []


class _Policies(msgspec.Struct):
    items: list[dict[str, Any]] = []


async def facts_from_cluster(connection: Connection, namespace: str, name: str, now: float) -> Facts:
    """The pod, then all that belongs to it at once.

    Raises:
        ClusterError: the pod, its node or the policies cannot be read.

    """
    async with Client(connection, max_connections=4) as client:
        reader = _Reader(client, connection.server)
        core, space = "/api/v1", quote(namespace, safe="")
        pod = await reader.read(f"{core}/namespaces/{space}/pods/{quote(name, safe='')}", PodObject, "pods")
        if pod is None:
            msg = f"there is no pod {namespace}/{name} in the cluster at {connection.server}"
            raise ClusterError(msg)
        node_path = f"{core}/nodes/{quote(pod.spec.node_name, safe='')}"
        node, (labels, unlabelled), policies, (budgets, problem) = await asyncio.gather(
            reader.read(node_path, NodeObject, "nodes") if pod.spec.node_name else _nothing(),
            reader.namespace_labels(f"{core}/namespaces/{space}"),
            reader.read(POLICIES_PATH, _Policies, "taintevictionpolicies"),
            reader.budgets(f"/apis/policy/v1/namespaces/{space}/poddisruptionbudgets"),
        )
    if policies is None:
        msg = f"the cluster at {connection.server} does not know TaintEvictionPolicies: apply the CRDs first"
        raise ClusterError(msg)
    return Facts(pod, now, node, labels, unlabelled, policies.items, budgets, problem)


class _Reader:
    def __init__(self, client: Client, server: str) -> None:
        self._client = client
        self._server = server

    async def read(self, path: str, wanted: type[T], what: str, params: dict[str, str] | None = None) -> T | None:
        """One object, or one page of a list; None where there is no such thing."""
        try:
            body = await self._client.request("GET", path, params=params, timeout_seconds=TIMEOUT_SECONDS)
            return msgspec.json.decode(body, type=wanted)
        except ApiError as error:
            if error.code == 404:
                return None
            verb = "you may not read" if error.code in (401, 403) else "cannot read"
            msg = f"{verb} {what}: {_one_line(error)}"
            raise ClusterError(msg) from error
        except Unreachable as error:
            msg = f"cannot reach the cluster at {self._server}: {_one_line(error)}"
            raise ClusterError(msg) from error
        except (KubeError, msgspec.DecodeError) as error:
            msg = f"cannot read {what}: {_one_line(error)}"
            raise ClusterError(msg) from error

    async def namespace_labels(self, path: str) -> tuple[dict[str, str] | None, str]:
        """The labels, or why they are not known: few policies ask for them."""
        try:
            namespace = await self.read(path, NamespaceObject, "namespaces")
        except ClusterError as error:
            return None, str(error)
        return (namespace.metadata.labels, "") if namespace else (None, "the namespace is gone")

    async def budgets(self, path: str) -> tuple[list[BudgetObject], str]:
        """The budgets of the namespace, or why they are not known: they explain more, and decide nothing."""
        try:
            found = await self.read(path, _Budgets, "poddisruptionbudgets", {"limit": str(MAX_BUDGETS)})
        except ClusterError as error:
            return [], str(error)
        return (found.items, "") if found else ([], "the cluster does not serve policy/v1")


async def _nothing() -> None:
    """A pod without a node has none to read."""


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())

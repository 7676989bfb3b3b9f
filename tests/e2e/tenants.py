"""A tenant with a token of its own, which may write pods, budgets and profiles in its namespace, and nothing else."""

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from api import profile_cases
from controlplane import Cluster, Json, Target

ACCOUNT = "tenant"
VERBS = ["create", "patch", "update", "delete", "get", "list"]
ROLE = {
    "metadata": {"name": ACCOUNT},
    "rules": [
        {"apiGroups": [""], "resources": ["pods"], "verbs": VERBS},
        {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": VERBS},
        {"apiGroups": ["taintwarden.io"], "resources": ["tolerationprofiles"], "verbs": VERBS},
    ],
}
"""Rights of a tenant. Kubernetes' role `edit` is empty here, since no controller aggregates it."""
THREADS = 4
PART = 50
POD_BYTES = 1_000_000
TOLERATION = {"key": "sla", "operator": "Gt", "value": "950"}
RUNNING = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


class Tenant:
    """Its namespace and its client. Close it.

    `more`: rules in addition to those of `ROLE`.
    """

    def __init__(
        self, target: Target, namespace: str, labels: Mapping[str, str] | None = None, more: Iterable[Json] = ()
    ) -> None:
        self.admin = target.client
        self.namespace = namespace
        self.admin.create_namespace(namespace, labels)
        self.admin.create("serviceaccounts", {"metadata": {"name": ACCOUNT}}, namespace)
        self.admin.create("roles", {**ROLE, "rules": [*ROLE["rules"], *more]}, namespace)
        subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ACCOUNT}
        binding = {"metadata": {"name": ACCOUNT}, "subjects": [subject], "roleRef": reference}
        self.admin.create("rolebindings", binding, namespace)
        path = {"name": ACCOUNT, "subresource": "token"}
        token = self.admin.create("serviceaccounts", {"spec": {"expirationSeconds": 3_600}}, namespace, **path)
        self._target, self._token = target, token["status"]["token"]
        self.client = self.another_client()
        self.client.wait_allowed("create", "", "pods", namespace)

    def another_client(self) -> Cluster:
        """Return a client for another thread. Close it."""
        return Cluster(self._target.server, self._target.ca, token=self._token)

    def pod(
        self,
        name: str,
        node: str,
        *,
        metadata: Mapping[str, Any] | None = None,
        spec: Mapping[str, Any] | None = None,
        containers: Sequence[Json] = ({"name": "main", "image": "registry.example.com/none"},),
    ) -> Json:
        """A pod that the tenant binds itself; the admin reports that it runs, since its node has no kubelet."""
        body = {
            "metadata": {"name": name} | dict(metadata or {}),
            "spec": {"nodeName": node, "containers": list(containers), "terminationGracePeriodSeconds": 0}
            | dict(spec or {}),
        }
        pod = self.client.create("pods", body, self.namespace)
        self.admin.patch("pods", name, {"status": RUNNING}, self.namespace, subresource="status")
        return pod

    def profile(self, name: str, *tolerations: Json, **metadata: Any) -> None:
        """A TolerationProfile for all pods of the namespace."""
        self.client.create("tolerationprofiles", profile(name, *tolerations, **metadata), self.namespace)

    def close(self) -> None:
        """Remove what it has."""
        self.client.close()
        for resource in ("tolerationprofiles", "pods"):
            while self.admin.items(resource, self.namespace, limit=1):  # a server is slow with many large ones
                self.admin.delete_all(resource, self.namespace, limit=PART)


def profile(name: str, *tolerations: Json, **metadata: Any) -> Json:
    """The object."""
    made = profile_cases.profile({"tolerations": list(tolerations)}, name)
    return made | {"metadata": {"name": name, **metadata}}


# -- much of it -------------------------------------------------------------------------------------------------------

Call = Callable[[Cluster], Any]
"""Sends one request with the client of a thread."""


def at_once(tenant: Tenant, calls: Sequence[Call]) -> None:
    """Make the calls, each with a client of its thread."""

    def some(number: int) -> None:
        client = tenant.another_client()
        for call in calls[number::THREADS]:
            call(client)
        client.close()

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(some, range(THREADS)))


def in_turn(names: Iterable[str], ended: threading.Event, pause_seconds: float = 0.0) -> Iterator[str]:
    """These names repeatedly, until `ended` is set."""
    for name in itertools.cycle(names):
        if ended.wait(pause_seconds):
            return
        yield name


def small_profile(tenant: Tenant, number: int) -> Call:
    """The creation of one of many; `change_labels` changes them."""
    body = profile(f"small-{number:04}", TOLERATION)
    return lambda client: client.create("tolerationprofiles", body, tenant.namespace)


def large_pod(tenant: Tenant, number: int, node: str) -> Call:
    """The creation of a pod of a megabyte."""
    container = {"name": "main", "image": "registry.example.com/none", "args": ["x" * POD_BYTES]}
    spec = {"nodeName": node, "containers": [container], "terminationGracePeriodSeconds": 0}
    body = {"metadata": {"name": f"large-{number}"}, "spec": spec}
    return lambda client: client.create("pods", body, tenant.namespace)


def change_labels(tenant: Tenant, profiles: int, ended: threading.Event) -> int:
    """Change labels of `profiles` small profiles until `ended` is set. Returns the number of changes."""

    def change(number: int) -> int:
        client, made = tenant.another_client(), 0
        for name in in_turn([f"small-{one:04}" for one in range(number, profiles, THREADS)], ended):
            client.patch("tolerationprofiles", name, {"metadata": {"labels": {"changed": str(made)}}}, tenant.namespace)
            made += 1
        client.close()
        return made

    with ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(change, range(THREADS)))

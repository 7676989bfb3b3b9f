"""What is judged: the operator, or beside it Kubernetes' own controller for taints."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

import urllib3

from chaos.judge.rules import Subject
from chaos.plane import CLIENT_LIMITS
from controlplane import Operator, api_server
from controlplane.control_plane import ControlPlane
from controlplane.health import PROBE_SECONDS, is_healthy
from controlplane.processes import Process
from controlplane.target import OPERATOR_NAMESPACE, OPERATOR_SERVICE_ACCOUNT

MANAGER = "kube-controller-manager"
ROLES = (f"system:{MANAGER}", "system:controller:node-controller")
"""What Kubernetes gives to its controller manager, and to the controller for taints in it."""
CONTROLLER = "taint-eviction-controller,daemonset-controller"
"""The one finds no pod of a node without an index that the other makes; there are no DaemonSets."""
LEADS = f'leader_election_master_status{{name="{MANAGER}"}} 1'


class Program(Protocol):
    """One replica as a process."""

    process: Process

    @property
    def leads(self) -> bool: ...

    def is_live(self) -> bool: ...


@dataclass(frozen=True)
class Controller:
    """What two replicas run."""

    name: str
    namespace: str
    account: str
    lease: str
    program: Callable[[ControlPlane, Path, str, str], Program]
    """With the control plane, a kubeconfig, a name, and the namespace of the Lease."""
    is_built_in: bool = False

    @property
    def subject(self) -> Subject:
        """The same, as the judge knows it."""
        user = f"system:serviceaccount:{self.namespace}:{self.account}"
        return Subject(user, f"{self.namespace}/{self.lease}", self.is_built_in)


def operator(cluster: ControlPlane, kubeconfig: Path, name: str, namespace: str) -> Program:
    return Operator(kubeconfig, cluster.folder, name=name, namespace=namespace)


class BuiltIn:
    """kube-controller-manager with no controller but that for taints, and otherwise as it is by default.

    It has one account for both parts of its work, so that the token says which replica has deleted a pod.
    """

    def __init__(
        self, cluster: ControlPlane, kubeconfig: Path, name: str, namespace: str, limits: Sequence[str] = ()
    ) -> None:
        port = api_server.free_port()
        self._url, self._ca = f"https://{api_server.LOOPBACK}:{port}", cluster.ca
        extra = (
            f"--controllers={CONTROLLER}",
            "--leader-elect=true",
            f"--leader-elect-resource-namespace={namespace}",
            "--authentication-kubeconfig=",
            "--authorization-kubeconfig=",
            "--authorization-always-allow-paths=/healthz,/metrics",
            *limits,
        )
        serving, gates = cluster.server_certificate(f"{name}-serving"), cluster.feature_gates
        command = api_server.controller(MANAGER, port, kubeconfig, serving, gates, extra)
        self.process = Process(name, command, cluster.folder / f"{name}.log")

    @property
    def leads(self) -> bool:
        with urllib3.PoolManager(retries=False, timeout=PROBE_SECONDS, ca_certs=str(self._ca)) as pool:
            return LEADS in pool.request("GET", f"{self._url}/metrics").data.decode().splitlines()

    def is_live(self) -> bool:
        return is_healthy(f"{self._url}/healthz", self._ca)


OPERATOR = Controller("operator", OPERATOR_NAMESPACE, OPERATOR_SERVICE_ACCOUNT, "taintwarden", operator)
BUILT_IN = Controller("built-in", "kube-system", MANAGER, MANAGER, BuiltIn, is_built_in=True)
UNTHROTTLED = replace(BUILT_IN, name="unthrottled", program=partial(BuiltIn, limits=CLIENT_LIMITS))
"""The built-in one with a client that does not wait: by default it sends 20 requests a second, in bursts of 30."""
CONTROLLERS = {one.name: one for one in (OPERATOR, BUILT_IN, UNTHROTTLED)}


def give_rights(cluster: ControlPlane) -> None:
    """An account for the built-in controller."""
    cluster.client.create("serviceaccounts", {"metadata": {"name": BUILT_IN.account}}, BUILT_IN.namespace)
    subject = {"kind": "ServiceAccount", "name": BUILT_IN.account, "namespace": BUILT_IN.namespace}
    for role in ROLES:
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
        body = {"metadata": {"name": f"chaos:{role}"}, "roleRef": reference, "subjects": [subject]}
        cluster.client.create("clusterrolebindings", body)

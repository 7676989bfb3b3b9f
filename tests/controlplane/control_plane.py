"""A real Kubernetes control plane for tests: etcd and kube-apiserver on loopback, more on request."""

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from controlplane import api_server
from controlplane.certificates import Authority, Pair, service_account_keys
from controlplane.client import Json
from controlplane.comparisons import known_gates
from controlplane.health import is_healthy
from controlplane.kubeconfig import write_kubeconfig
from controlplane.network import Link, Network
from controlplane.processes import Process
from controlplane.target import Target
from controlplane.waiting import wait_until

STOP_SECONDS = 15
# A server that is watched takes a minute to end in order, waiting for the watches; its data are safe in etcd.
WATCHED_SECONDS = 2


class ControlPlane(Target):
    """Starts in seconds, keeps everything in one folder, leaves no process behind.

    `folder` stays when given, for its logs; otherwise it is temporary. `served` are versions of APIs that are served,
    or not, in place of the default. The server's address and data stay the same
    over `stop_api_server` and `start_api_server`. Start it from a thread that lives as long as it should.
    """

    ready_seconds = 60
    """Maximum seconds until each process is ready."""

    def __init__(
        self,
        folder: Path | None = None,
        *,
        feature_gates: Mapping[str, bool] | None = None,
        served: Mapping[str, bool] | None = None,
    ):
        self._is_temporary = folder is None
        folder = folder or Path(tempfile.mkdtemp(prefix="taintwarden-"))
        self.feature_gates = dict(feature_gates or {})
        self._authority = Authority(folder)
        self._service_accounts = service_account_keys(folder)
        self._controllers: list[Process] = []
        self._network: Network | None = None
        admin = self._authority.client("taintwarden-e2e-admin", "system:masters")
        ca = self._authority.pair.certificate
        etcd_port, port = api_server.free_port(), api_server.free_port()
        server = f"https://{api_server.LOOPBACK}:{port}"
        super().__init__(server, ca, admin, folder)
        self.client.native_comparisons = bool(known_gates())
        self.etcd = self._process("etcd", api_server.etcd(folder, etcd_port))
        self._etcd_health = f"http://{api_server.LOOPBACK}:{etcd_port}/health"
        names = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
        serving = self._authority.server("serving", names, (api_server.LOOPBACK, "10.0.0.1"))
        accounts = self._service_accounts
        command = api_server.kube_apiserver(folder, port, etcd_port, ca, serving, accounts, self.feature_gates, served)
        self.api_server = self._process("kube-apiserver", command, WATCHED_SECONDS)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def processes(self) -> list[Process]:
        return [self.etcd, self.api_server, *self._controllers]

    def start(self) -> None:
        """Start etcd and the API server and wait for both. Raises ProcessFailedError with the end of a log."""
        self.etcd.start()
        self.etcd.wait_ready(lambda: is_healthy(self._etcd_health), self.ready_seconds)
        self.start_api_server()
        wait_until(lambda: self.answers("/api/v1/namespaces/default"), self.ready_seconds, "the default namespace")
        self.client.create("serviceaccounts", {"metadata": {"name": "default"}}, "default")

    def stop(self) -> None:
        """End everything at once, the newest process first: nothing of it is used again. Safe to call twice."""
        self.client.close()
        if self._network:
            self._network.__exit__()
            self._network = None
        for process in reversed(self.processes):
            process.kill()
        if self._is_temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    def stop_api_server(self, *, kill: bool = False) -> None:
        """An outage: connections break, the port refuses. `kill` for one without a good-bye."""
        self.client.close()
        if kill:
            self.api_server.kill()
        else:
            self.api_server.stop()

    def start_api_server(self) -> None:
        """Start the server, also again, and wait until it is ready, its bootstrap RBAC roles included.

        Ready is not all: custom resources first answer 429, "storage is (re)initializing".
        """
        self.api_server.start()
        self.api_server.wait_ready(lambda: self.answers("/readyz"), self.ready_seconds)
        self.wait_served(self.client.items("customresourcedefinitions"))

    def start_controller_manager(self, controllers: str, extra_args: Sequence[str] = ()) -> Process:
        """Start kube-controller-manager with these controllers, such as "disruption-controller"."""
        keys = [
            f"--controllers={controllers}",
            f"--service-account-private-key-file={self._service_accounts.key}",
            f"--root-ca-file={self.ca}",
            "--use-service-account-credentials=true",
        ]
        return self._start_controller("kube-controller-manager", [*keys, *extra_args])

    def start_scheduler(self, extra_args: Sequence[str] = ()) -> Process:
        """Start kube-scheduler; it needs Ready nodes with free resources, as Cluster.create_node makes them."""
        return self._start_controller("kube-scheduler", extra_args)

    def start_configured_scheduler(self, name: str, configuration: Json) -> Process:
        """Start kube-scheduler as `name`, with a KubeSchedulerConfiguration and this program's own kubeconfig in it."""
        identity = self._authority.client("system:kube-scheduler")
        kubeconfig = write_kubeconfig(self.folder / f"{name}.kubeconfig", self.server, self.ca, client=identity)
        connection = {"kubeconfig": str(kubeconfig), "qps": 500, "burst": 1000}
        path = self.folder / f"{name}.json"
        election = {"leaderElect": False}
        path.write_text(json.dumps({**configuration, "clientConnection": connection, "leaderElection": election}))
        return self._start_controller("kube-scheduler", [f"--config={path}"], log_name=name)

    def link(self) -> Link:
        """A new way to the API server, on which tests set conditions. It ends with the control plane."""
        if self._network is None:
            assert self.ca
            self._network = Network(self.server, self.ca, self.server_certificate("network"))
            self._network.__enter__()
        return Link(self._network)

    def audit(self) -> list[Json]:
        """Every eviction and deletion of a pod so far, as the API server's audit log has them."""
        log = self.folder / "audit.log"
        events = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        kinds = ("", "eviction")
        return [
            one
            for one in events
            if one["stage"] == "ResponseComplete"
            and (one["objectRef"]["resource"], one["objectRef"].get("subresource", "") in kinds) == ("pods", True)
        ]

    def server_certificate(self, name: str) -> Pair:
        """A certificate for another server on loopback, such as a proxy, of the same authority."""
        return self._authority.server(name, ("localhost",), (api_server.LOOPBACK,))

    def client_certificate(self, name: str, group: str = "") -> Pair:
        """A certificate of a client of this name, of the same authority."""
        return self._authority.client(name, group)

    def _start_controller(self, name: str, extra: Sequence[str], log_name: str = "") -> Process:
        identity = self._authority.client(f"system:{name}")
        kubeconfig = write_kubeconfig(self.folder / f"{name}.kubeconfig", self.server, self.ca, client=identity)
        port = api_server.free_port()
        serving = self.server_certificate(f"{name}-serving")
        command = api_server.controller(name, port, kubeconfig, serving, self.feature_gates, extra)
        process = self._process(log_name or name, command)
        self._controllers.append(process)
        process.start()
        url = f"https://{api_server.LOOPBACK}:{port}/healthz"
        process.wait_ready(lambda: is_healthy(url, self.ca), self.ready_seconds)
        return process

    def _process(self, name: str, command: Sequence[str | Path], patience_seconds: float = STOP_SECONDS) -> Process:
        return Process(name, command, self.folder / f"{name}.log", patience_seconds=patience_seconds)

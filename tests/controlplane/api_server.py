"""The command lines of the control plane's programs."""

import json
import os
import random
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from controlplane.binaries import binary, is_before
from controlplane.certificates import Pair

LOOPBACK = "127.0.0.1"
PORTS = range(10_000, 30_000)  # above them are NodePorts and what kernels give away
_given: set[int] = set()
# Enough to count who evicted or deleted which pod, and how often; all else would only cost time.
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "Metadata",
            "verbs": ["create", "delete", "deletecollection"],
            "resources": [{"group": "", "resources": ["pods", "pods/eviction"]}],
        },
        {"level": "None"},
    ],
}


def free_port() -> int:
    """A port without a listener; programs that are restarted need to keep theirs, so none may pick its own.

    It is below the kernel's ephemeral ports, which a connection of another program could take meanwhile. No port is
    returned twice, since the first program may not listen yet; so processes that divide the tests share no port.
    """
    worker, workers = os.environ.get("PYTEST_XDIST_WORKER", "gw0"), os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")
    own = PORTS[int(worker.removeprefix("gw")) :: int(workers)]
    while True:
        port = random.choice(own)
        with socket.socket() as listener, suppress(OSError):
            listener.bind((LOOPBACK, port))
            if port not in _given:
                _given.add(port)
                return port


def gates(feature_gates: Mapping[str, bool]) -> list[str]:
    return pairs("feature-gates", feature_gates)


def pairs(flag: str, values: Mapping[str, bool]) -> list[str]:
    """The flag with these values; no flag without any."""
    text = ",".join(f"{name}={str(value).lower()}" for name, value in values.items())
    return [f"--{flag}={text}"] if text else []


def etcd(folder: Path, port: int) -> list[str | Path]:
    """Without fsync: the data need to survive a stop of the API server, not a power cut."""
    url = f"http://{LOOPBACK}:{port}"
    # As kubeadm sets it. Newer API servers ask for progress when they need it; older ones have no bookmark without.
    progress = ["--experimental-watch-progress-notify-interval=5s"] if is_before(34) else []
    return [
        binary("etcd"),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls=http://{LOOPBACK}:0",
        "--unsafe-no-fsync",
        "--log-level=warn",
        *progress,
    ]


def kube_apiserver(
    folder: Path,
    port: int,
    etcd_port: int,
    ca: Path,
    serving: Pair,
    service_accounts: Pair,
    feature_gates: Mapping[str, bool],
    served: Mapping[str, bool] | None = None,
) -> list[str | Path]:
    """RBAC, TLS and admission as in a cluster; only what needs nodes or a network is left out."""
    audit_policy = folder / "audit-policy.json"
    audit_policy.write_text(json.dumps(AUDIT_POLICY))
    return [
        binary("kube-apiserver"),
        f"--etcd-servers=http://{LOOPBACK}:{etcd_port}",
        f"--bind-address={LOOPBACK}",
        f"--advertise-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--cert-dir={folder}",
        f"--tls-cert-file={serving.certificate}",
        f"--tls-private-key-file={serving.key}",
        f"--client-ca-file={ca}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={service_accounts.certificate}",
        f"--service-account-signing-key-file={service_accounts.key}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--endpoint-reconciler-type=none",  # it refuses to advertise a loopback address
        f"--audit-policy-file={audit_policy}",
        f"--audit-log-path={folder / 'audit.log'}",
        "--audit-log-maxsize=10000",  # MB: judges read one file, also of a long run
        "--profiling=false",
        *gates(feature_gates),
        *pairs("runtime-config", served or {}),
    ]


def controller(
    name: str, port: int, kubeconfig: Path, serving: Pair, feature_gates: Mapping[str, bool], extra: Sequence[str]
) -> list[str | Path]:
    """Arguments common to kube-controller-manager and kube-scheduler. The last value of a flag wins: `extra`'s."""
    return [
        binary(name),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--tls-cert-file={serving.certificate}",
        f"--tls-private-key-file={serving.key}",
        "--leader-elect=false",
        *gates(feature_gates),
        *extra,
    ]

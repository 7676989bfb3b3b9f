"""The container of a rendered Deployment as a process: its arguments, its environment, its probes, and nothing else.

Its conditions are those of its pod, made by the kernel alone, without engine, image or kubelet: another user without an
entry in /etc/passwd, a root file system of its own that is read-only, no capability, a bound on memory, the files
of the service account. Ports and addresses are the machine's own, since all processes share its network.
"""

import os
import re
import subprocess
import sys
import uuid
from functools import cache
from pathlib import Path
from typing import Any, Self

import pytest

from controlplane import Process, Target
from controlplane.api_server import LOOPBACK, free_port
from controlplane.binaries import ROOT
from controlplane.health import is_healthy
from controlplane.operator_process import EXECUTABLE, STOP_SECONDS, Operator

Json = dict[str, Any]
POD_NAME = "taintwarden-0"
TOKEN_SECONDS = 3600
UNITS = {"Mi": 2**20, "Gi": 2**30}
IMAGE_VARIABLES = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}
"""Those of deploy/Dockerfile, beside PATH. There is no USER, and no HOME."""

# The folders of the new root are new, so that another user may pass through them to a clone in root's home.
IN_POD = """
set -eu
root=$1 account=$2 user=$3 group=$4 bytes=$5
shift 5
mount -t tmpfs -o mode=755 pod "$root"
show() {
  mkdir -p "$root$1"
  mount --bind "$1" "$root$1"
  mount -o remount,bind,ro "$root$1"
}
for path in /bin /lib /lib64; do
  if [ -L $path ]; then cp -P $path "$root"; elif [ -e $path ]; then show $path; fi
done
while [ "$1" != -- ]; do
  show "$1"
  shift
done
shift
mkdir -p "$root/dev" "$root/proc" "$root/tmp" "$root/var/run/secrets/kubernetes.io/serviceaccount"
mount --rbind /dev "$root/dev"
mount --rbind /proc "$root/proc"
cp "$account"/* "$root/var/run/secrets/kubernetes.io/serviceaccount"
chmod -R a+rX "$root/var"
mount -o remount,ro "$root"
exec prlimit --data="$bytes" chroot "$root" setpriv --reuid="$user" --regid="$group" --clear-groups \\
  --inh-caps=-all --ambient-caps=-all --bounding-set=-all --no-new-privs --pdeathsig=KILL "$@"
"""


class RenderedOperator(Operator):
    """Start it with `with`; it is ready then, by the Deployment's own probe. Without the right to mount, tests skip."""

    def __init__(self, deployment: Json, server: str, service_account: Path, folder: Path) -> None:
        if not may_mount():
            pytest.skip("the conditions of a pod take root, and a machine on which root may mount")
        self.environment = environment(deployment)
        template = deployment["spec"]["template"]["spec"]
        [self._container] = template["containers"]
        assert self._container["securityContext"]["readOnlyRootFilesystem"] is True
        assert self._container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        self._ports = {port["name"]: free_port() for port in self._container["ports"]}
        self.url = f"http://{LOOPBACK}:{self._ports['http']}"
        ports = {f"TAINTWARDEN_{name.upper()}_PORT": str(port) for name, port in self._ports.items()}
        host, _, port = server.removeprefix("https://").rpartition(":")
        service = {"KUBERNETES_SERVICE_HOST": host.strip("[]"), "KUBERNETES_SERVICE_PORT": port}
        path = {"PATH": f"{EXECUTABLE.parent}:/usr/bin:/bin"}
        variables = self.environment | ports | service | path | IMAGE_VARIABLES
        user = template["securityContext"]
        (root := folder / "root").mkdir()
        command = [
            *("/usr/bin/unshare", "--mount", "/bin/sh", "-c", IN_POD, "in-pod", root, service_account),
            *(user["runAsUser"], user["runAsGroup"], memory_limit(self._container), *shown_folders(), "--"),
            *("/usr/bin/env", "-i", *(f"{name}={value}" for name, value in variables.items())),
            *(EXECUTABLE, *self._container["args"]),
        ]
        self.process = Process("rendered", command, folder / "rendered.log", patience_seconds=STOP_SECONDS)

    @classmethod
    def on(cls, target: Target, deployment: Json, folder: Path) -> Self:
        """With a token of the service account that the Deployment names, as its kubelet would mount it."""
        account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
        path = {"name": account, "subresource": "token"}
        body: Json = {"spec": {"expirationSeconds": TOKEN_SECONDS}}
        token = target.client.create("serviceaccounts", body, deployment["metadata"]["namespace"], **path)
        (files := folder / "service-account").mkdir()
        (files / "token").write_text(token["status"]["token"])
        (files / "ca.crt").write_bytes(target.ca.read_bytes() if target.ca else b"")
        (files / "namespace").write_text(deployment["metadata"]["namespace"])
        return cls(deployment, target.server, files, folder)

    def is_ready(self) -> bool:
        return self.answers("readinessProbe")

    def answers(self, probe: str) -> bool:
        """Return True if one of the Deployment's probes gets its 200."""
        asked = self._container[probe]["httpGet"]
        assert asked["port"] == "http"
        return is_healthy(self.url + asked["path"])


@cache
def may_mount() -> bool:
    """Return True if this process may mount in a namespace of its own. In an unprivileged container root may not."""
    command = ["/usr/bin/unshare", "--mount", "/bin/mount", "-t", "tmpfs", "pod", "/tmp"]
    return os.geteuid() == 0 and subprocess.run(command, check=False, capture_output=True).returncode == 0


def environment(deployment: Json) -> dict[str, str]:
    """The variables of the container, with what the kubelet fills in."""
    template = deployment["spec"]["template"]
    namespace = deployment["metadata"]["namespace"]
    fields = {"metadata.name": POD_NAME, "metadata.namespace": namespace, "metadata.uid": str(uuid.uuid4())}
    found = {}
    for one in template["spec"]["containers"][0]["env"]:
        assert re.fullmatch(r"[A-Z_]+", one["name"])
        found[one["name"]] = one["value"] if "value" in one else fields[one["valueFrom"]["fieldRef"]["fieldPath"]]
    return found


def memory_limit(container: Json) -> int:
    """Return the limit in bytes. The kernel bounds the data segment here, since control groups are not available."""
    limit: str = container["resources"]["limits"]["memory"]
    return int(limit[:-2]) * UNITS[limit[-2:]]


def shown_folders() -> list[Path]:
    """Folders that the program sees: programs, names and zones, its interpreter, and the clone it comes from."""
    needed = {Path("/usr"), Path("/etc"), Path(sys.base_prefix).resolve(), ROOT}
    return sorted(path for path in needed if not any(path.is_relative_to(other) for other in needed - {path}))

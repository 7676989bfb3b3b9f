"""People with some rights and no others, whose commands tests run."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from controlplane import Cluster, Json, Target
from controlplane.kubeconfig import write_kubeconfig
from controlplane.operator_process import BYTECODE, EXECUTABLE


@contextmanager
def user(target: Target, namespace: str, rules: Sequence[Json], path: Path) -> Iterator[Path]:
    """The kubeconfig of the account `default` of a namespace, which has these rights in the whole cluster meanwhile."""
    cluster = target.client
    account = {"kind": "ServiceAccount", "name": "default", "namespace": namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": namespace}
    cluster.create("clusterroles", {"metadata": {"name": namespace}, "rules": list(rules)})
    cluster.create("clusterrolebindings", {"metadata": {"name": namespace}, "roleRef": role, "subjects": [account]})
    token = cluster.create("serviceaccounts", {"spec": {}}, namespace, name="default", subresource="token")
    bearer: str = token["status"]["token"]
    wait_granted(target, bearer, rules[-1])
    yield write_kubeconfig(path, target.server, target.ca, token=bearer)
    cluster.delete("clusterrolebindings", namespace)
    cluster.delete("clusterroles", namespace)


def wait_granted(target: Target, token: str, rule: Json) -> None:
    """Wait until the user with this token has the rights of a rule."""
    client = Cluster(target.server, target.ca, token=token)
    client.wait_allowed(rule["verbs"][0], rule["apiGroups"][0], rule["resources"][0])
    client.close()


def run(command: Sequence[str | Path], kubeconfig: Path) -> subprocess.CompletedProcess[str]:
    """Run a command as a user who has this kubeconfig, and `taintwarden` on the PATH."""
    path = f"{EXECUTABLE.parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **BYTECODE, "PATH": path, "KUBECONFIG": str(kubeconfig)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)

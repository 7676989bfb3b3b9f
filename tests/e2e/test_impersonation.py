"""A kubeconfig that impersonates a user: the commands have the rights of that user, as kubectl has."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane import Cluster, ControlPlane, Json
from controlplane.binaries import binary
from controlplane.operator_process import EXECUTABLE
from e2e import users
from taintwarden.kube.auth.connection import Connection
from taintwarden.kube.http.client import Client

EXTRA = {"example.com/reason": ["on call", "night"], "50%": ["x"]}
JANE = {"as": "jane", "as-uid": "7", "as-groups": ["dev", "ops"], "as-user-extra": EXTRA}
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@pytest.fixture
def kubeconfig(own_control_plane: ControlPlane, tmp_path: Path) -> Path:
    """An administrator's, with the user to act as."""
    content = yaml.safe_load(own_control_plane.admin_kubeconfig.read_text())
    content["users"][0]["user"] |= JANE
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(content))
    return path


def kubectl(kubeconfig: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return users.run([binary("kubectl"), *args], kubeconfig)


async def test_the_server_sees_the_user_that_kubectl_names(kubeconfig: Path) -> None:
    named = kubectl(kubeconfig, "auth", "whoami", "-o", "json")
    async with Client(Connection.load(str(kubeconfig))) as client:
        ours = json.loads(await client.request("POST", REVIEWS, body={"kind": "SelfSubjectReview"}))
    assert ours["status"]["userInfo"] == json.loads(named.stdout)["status"]["userInfo"]
    assert ours["status"]["userInfo"]["groups"] == ["dev", "ops", "system:authenticated"]


@pytest.mark.parametrize("command", [["pause"], ["status"], ["guard", "reset"]], ids=" ".join)
def test_a_user_whom_kubectl_refuses_is_refused(
    cluster: Cluster, create_policy: Callable[..., Json], kubeconfig: Path, command: list[str]
) -> None:
    name: Any = create_policy({"taints": [{"key": "sla"}], "mode": "DryRun"})["metadata"]["name"]
    assert "Forbidden" in kubectl(kubeconfig, "patch", "taintevictionpolicies", name, "--type=merge", "-p", "{}").stderr
    said = users.run([EXECUTABLE, *command, name], kubeconfig)
    assert said.returncode != 0
    assert 'User "jane" cannot' in said.stderr
    assert "paused" not in cluster.get("taintevictionpolicies", name)["spec"]

"""The operator as its pod runs it: what it may not do there, and that it does its work all the same.

The same is seen in a container by `tests/kind`, which CI may not have.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane import Cluster, ControlPlane
from deploy.rendering import BASE, by_key, kustomize
from e2e.rendered_operator import RenderedOperator, memory_limit
from e2e.stories import NO_LIMITS, complaints, taint

CONTAINER_USER = "65532"


@pytest.fixture(scope="module")
def operator(own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RenderedOperator]:
    deployment = by_key(kustomize(BASE))["Deployment", "taintwarden"]
    with RenderedOperator.on(own_control_plane, deployment, tmp_path_factory.mktemp("pod")) as running:
        yield running


def about(operator: RenderedOperator, name: str) -> str:
    """What the kernel says of the process."""
    return Path(f"/proc/{operator.process.pid}/{name}").read_text()


def test_it_has_no_right_and_no_name(operator: RenderedOperator) -> None:
    status = dict(line.split(":", 1) for line in about(operator, "status").splitlines())
    assert set(status["Uid"].split()) == set(status["Gid"].split()) == {CONTAINER_USER}
    assert [int(status[name], 16) for name in ("CapEff", "CapPrm", "CapBnd")] == [0, 0, 0]
    assert status["NoNewPrivs"].strip() == "1"
    assert f":{CONTAINER_USER}:" not in Path("/etc/passwd").read_text()
    names = {one.partition("=")[0] for one in about(operator, "environ").split("\0")}
    assert not {"HOME", "USER", "LOGNAME"} & names


def test_it_can_write_no_file(operator: RenderedOperator) -> None:
    root = Path(f"/proc/{operator.process.pid}/root")
    for folder in ("", "tmp", "etc", "usr"):
        with pytest.raises(OSError, match="Read-only file system"):
            (root / folder / "taintwarden-test").touch()


def test_its_memory_is_bounded(operator: RenderedOperator) -> None:
    deployment = by_key(kustomize(BASE))["Deployment", "taintwarden"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    [line] = [line for line in about(operator, "limits").splitlines() if line.startswith("Max data size")]
    assert line.split()[3:5] == [str(memory_limit(container))] * 2


def test_it_follows_policies_and_evicts(
    operator: RenderedOperator, cluster: Cluster, namespace: str, create_policy: Callable[..., Any]
) -> None:
    node = f"{namespace}-n1"
    cluster.create_node(node, taints=[taint("900")], labels={"test": namespace})
    cluster.create_pod("doomed", namespace, node)
    selector = {"matchLabels": {"test": namespace}}
    create_policy({"taints": [{"key": "sla"}], "nodeSelector": selector, "limits": NO_LIMITS})
    cluster.wait_evicted("doomed", namespace)
    assert complaints(operator) == []


def test_it_ends_in_order(operator: RenderedOperator) -> None:
    """The last of this file."""
    assert operator.process.stop() == 0

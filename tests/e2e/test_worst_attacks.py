"""The worst of a tenant and a kubelet with their own credentials, against two replicas on a control plane."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from controlplane import Client, ControlPlane, Json, Operator
from e2e import worst_attacks
from e2e.worst_attacks import Judgements, Story

pytestmark = pytest.mark.timeout(600)  # the first test waits for the whole story

KUBELET_NODE = "attacked-kubelet"


class Processes:
    """Two replicas as processes. Its `stack` ends them."""

    kubelet_node = KUBELET_NODE

    def __init__(self, target: ControlPlane, folder: Path, stack: ExitStack) -> None:
        self.target = target
        kubeconfig = target.operator_kubeconfig()
        self._replicas = [Operator(kubeconfig, folder, name=name) for name in ("leader", "follower")]
        self._stack = stack

    def start(self) -> None:
        """As worst_attacks.Ground says."""
        for replica in self._replicas:
            self._stack.enter_context(replica)
        self._replicas[0].wait_leading()

    def kubelet(self) -> Client:
        """As worst_attacks.Ground says."""
        pair = self.target.client_certificate(f"system:node:{KUBELET_NODE}", "system:nodes")
        return Client(self.target.server, self.target.ca, certificate=pair)

    def logs(self) -> list[Json]:
        """As worst_attacks.Ground says."""
        return [line for one in self._replicas for line in one.logs()]

    def peak_bytes(self) -> list[int]:
        """As worst_attacks.Ground says."""
        return [peak_bytes(one) for one in self._replicas]


def peak_bytes(replica: Operator) -> int:
    status = Path(f"/proc/{replica.process.pid}/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) * 1024


@pytest.fixture(scope="module")
def story(own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    own_control_plane.client.create_node(KUBELET_NODE)
    with ExitStack() as stack:
        stack.callback(own_control_plane.client.delete, "nodes", KUBELET_NODE)
        ground = Processes(own_control_plane, tmp_path_factory.mktemp("worst"), stack)
        yield stack.enter_context(worst_attacks.played(ground))


class TestTheWorst(Judgements):
    """What holds during each attack, and over all of them."""

"""The worst of a tenant and a kubelet with their own credentials, against the installation on kind."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane import OPERATOR_NAMESPACE, Client, Json, Target
from controlplane.certificates import Pair
from e2e import worst_attacks
from e2e.worst_attacks import Judgements, Story
from kind.installation import Installation
from kind.nodes import on_node

KUBELET_CREDENTIAL = "/var/lib/kubelet/pki/kubelet-client-current.pem"
RESTARTED = "taintwarden-e2e/restarted-at"
PEAK = "print(next(line.split()[1] for line in open('/proc/1/status') if line.startswith('VmHWM')))"

pytestmark = pytest.mark.timeout(1_200)  # the first test waits for the whole story


class Installed:
    """The replicas of the installation, and the credential that a worker's kubelet has on its disk."""

    def __init__(self, target: Target, operator: Installation, kubelet_node: str, folder: Path) -> None:
        self.target = target
        self.kubelet_node = kubelet_node
        self._operator = operator
        self._folder = folder

    def start(self) -> None:
        """As worst_attacks.Ground says."""
        stamp = {"spec": {"template": {"metadata": {"annotations": {RESTARTED: str(time.time())}}}}}
        self.target.client.patch("deployments", self._operator.name, stamp, OPERATOR_NAMESPACE)
        self._operator.wait_complete()
        self._operator.leader()

    def kubelet(self) -> Client:
        """As worst_attacks.Ground says."""
        credential = self._folder / "kubelet.pem"
        credential.touch(mode=0o600)
        credential.write_text(on_node(self.kubelet_node, "cat", KUBELET_CREDENTIAL))
        return Client(self.target.server, self.target.ca, certificate=Pair(credential, credential))

    def logs(self) -> list[Json]:
        """As worst_attacks.Ground says."""
        lines = [line for one in self._operator.pods() for line in self._operator.log(one).splitlines()]
        return [json.loads(line) for line in lines if line.startswith("{")]

    def peak_bytes(self) -> list[int]:
        """As worst_attacks.Ground says. A container that was started again would have forgotten its most."""
        assert not any(map(self._operator.restarts, self._operator.pods()))
        return [int(self._operator.execute(one, PEAK)) * 1024 for one in self._operator.pods()]


@pytest.fixture(scope="module")
def story(target: Target, workers: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    ground = Installed(target, Installation(target.client), workers[0], tmp_path_factory.mktemp("worst"))
    with worst_attacks.played(ground) as story:
        yield story


class TestTheWorst(Judgements):
    """What holds during each attack, and over all of them."""

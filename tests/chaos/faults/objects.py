"""Faults that people make: objects deleted, tokens revoked, a level of flow control without seats."""

import time

from chaos.faults.base import Fault, Scene
from chaos.replicas import LEASE
from chaos.world import policies
from controlplane import OPERATOR_NAMESPACE, ApiError, wait_until
from controlplane.binaries import ROOT
from controlplane.manifests import documents
from controlplane.target import OPERATOR_SERVICE_ACCOUNT

DEFINITION = "taintevictionpolicies.taintwarden.io"
STARVED = "starved"
FLOW = "flowcontrol.apiserver.k8s.io/v1"


class PoliciesDeleted(Fault):
    """The policies are deleted in a wave, and created again."""

    name = "policies-deleted"

    def start(self, scene: Scene) -> None:
        for body in policies():
            scene.plane.client.delete("taintevictionpolicies", body["metadata"]["name"])

    def end(self, scene: Scene) -> None:
        for body in policies():
            scene.plane.client.create("taintevictionpolicies", body)


class DefinitionsDeleted(Fault):
    """The definition of policies is deleted in a wave, with all policies, and applied again."""

    name = "crds-deleted"
    seconds = 25

    def start(self, scene: Scene) -> None:
        client = scene.plane.client
        client.delete("customresourcedefinitions", DEFINITION)
        wait_until(
            lambda: client.find("customresourcedefinitions", DEFINITION) is None, 60, "the definition to be gone"
        )

    def end(self, scene: Scene) -> None:
        scene.plane.apply_crds()
        for body in policies():
            wait_until(lambda body=body: self._created(scene, body), 30, "a policy to be accepted")

    @staticmethod
    def _created(scene: Scene, body: dict[str, object]) -> bool:
        try:
            scene.plane.client.create("taintevictionpolicies", body)
        except ApiError as error:
            return error.status == 409
        return True


class NamespaceDeleted(Fault):
    """A namespace with its workloads is deleted in a wave, and created again."""

    name = "namespace-deleted"

    def start(self, scene: Scene) -> None:
        self._namespace = scene.random.choice(scene.world.namespaces)
        self._names = scene.world.abandon(self._namespace)

    def end(self, scene: Scene) -> None:
        scene.world.settle(self._namespace, self._names)


class LeaseDeleted(Fault):
    """The Lease is deleted, every four seconds."""

    name = "lease-deleted"

    def prepare(self, scene: Scene) -> None:
        self._deleted = 0

    def tick(self, scene: Scene, elapsed_seconds: float) -> None:
        if elapsed_seconds >= 4 * self._deleted:
            self._deleted += 1
            if scene.plane.client.find("leases", LEASE, OPERATOR_NAMESPACE):
                scene.plane.client.delete("leases", LEASE, OPERATOR_NAMESPACE)


class Credentials(Fault):
    """The tokens are replaced, as a kubelet does it, and the old ones are revoked some seconds later."""

    name = "credentials"

    def start(self, scene: Scene) -> None:
        old = [(replica, replica.rotate()) for replica in scene.replicas.all]
        time.sleep(1)  # requests with the old token are in progress when it is revoked
        for replica, secret in old:
            replica.revoke(secret)


class Starved(Fault):
    """Flow control gives the operator a level without seats: its calls are rejected with 429."""

    name = "starved"

    def start(self, scene: Scene) -> None:
        limited = {
            "nominalConcurrencyShares": 0,
            "lendablePercent": 0,
            "borrowingLimitPercent": 0,
            "limitResponse": {"type": "Reject"},
        }
        level = {"metadata": {"name": STARVED}, "spec": {"type": "Limited", "limited": limited}}
        account = {"namespace": OPERATOR_NAMESPACE, "name": OPERATOR_SERVICE_ACCOUNT}
        subject = {"kind": "ServiceAccount", "serviceAccount": account}
        everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
        flow = {
            "priorityLevelConfiguration": {"name": STARVED},
            "matchingPrecedence": 2,
            "rules": [{"subjects": [subject], "resourceRules": [everything]}],
        }
        client = scene.plane.client
        client.create(f"{FLOW}/prioritylevelconfigurations", level)
        client.create(f"{FLOW}/flowschemas", {"metadata": {"name": STARVED}, "spec": flow})

    def end(self, scene: Scene) -> None:
        client = scene.plane.client
        client.delete(f"{FLOW}/flowschemas", STARVED)
        client.delete(f"{FLOW}/prioritylevelconfigurations", STARVED)


class DefinitionsReplaced(Fault):
    """The definitions are applied again, as an installation does it, every three seconds."""

    name = "crds-applied"

    def prepare(self, scene: Scene) -> None:
        self._applied = 0

    def tick(self, scene: Scene, elapsed_seconds: float) -> None:
        if elapsed_seconds >= 3 * self._applied:
            self._applied += 1
            for _, document in documents(ROOT / "crds"):
                scene.plane.client.apply(document)

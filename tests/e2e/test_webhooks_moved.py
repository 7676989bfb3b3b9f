"""The webhooks work wherever they are installed, and under any name: with what is rendered, on a real API server."""

import copy
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from admission.workloads import ANNOTATION, extended, gt
from controlplane import ApiError, ControlPlane, Json, Webhook
from controlplane.api_server import free_port
from controlplane.kubeconfig import write_kubeconfig
from controlplane.manifests import ACCESS_KINDS
from controlplane.operator_process import EXECUTABLE
from controlplane.waiting import wait_until
from deploy.rendering import BASE, chart
from deploy.test_moved import moved

SECONDS = 60
ELSEWHERE = "platform"
OVERLAY = {"namespace": ELSEWHERE, "namePrefix": "our-", "nameSuffix": "-two"}
MOVED: dict[str, Any] = {
    "base with all of it": lambda folder: moved(BASE, folder, OVERLAY, components=False),
    "chart in another namespace": lambda _: chart(namespace=ELSEWHERE),
}
CONFIGURATIONS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")


class Installed:
    """The webhook as a process, with names, account and rights as they were rendered."""

    def __init__(self, target: ControlPlane, folder: Path, documents: list[Json]) -> None:
        self.target, self._folder, self._documents, self._port = target, folder, documents, free_port()
        self.deployment, self.job = self._running("Deployment", "webhook"), self._running("Job", "webhook-trust")
        self.namespace: str = self.deployment["metadata"]["namespace"]
        if not target.client.find("namespaces", self.namespace):  # the chart leaves it to helm
            target.client.create_namespace(self.namespace)
        self.applied = [*self._applied()]
        for document in self.applied:
            target.client.apply(document)
        if not target.client.find("serviceaccounts", "default", self.namespace):
            target.client.create("serviceaccounts", {"metadata": {"name": "default"}}, self.namespace)
        flags = [f"--namespace={self.namespace}", f"--webhook-service={self._service(self.deployment)}"]
        self.process = Webhook(self._kubeconfig(self.deployment), folder, self._port, args=flags)

    def trust(self) -> str:
        """Run what the Job runs, with its account, arguments and environment."""
        [container] = self.job["spec"]["template"]["spec"]["containers"]
        environment = os.environ | {"POD_NAMESPACE": self.namespace}
        environment |= {one["name"]: one["value"] for one in container["env"] if "value" in one}
        command = [EXECUTABLE, *container["args"], f"--kubeconfig={self._kubeconfig(self.job)}"]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=SECONDS)
        return done.stdout

    def remove(self) -> None:
        """Whatever the API server would ask, and what gives rights."""
        kinds = {one: f"admissionregistration.k8s.io/v1/{one.lower()}s" for one in CONFIGURATIONS}
        kinds |= {one: f"{one.lower()}s" for one in ("ClusterRole", "ClusterRoleBinding")}
        for document in self.applied:
            if document["kind"] in kinds:
                self.target.client.delete(kinds[document["kind"]], document["metadata"]["name"])

    def is_refused(self, namespace: str) -> bool:
        """Whether a pod there may not have an annotation that cannot be read."""
        pod = {"metadata": {"name": "web", "annotations": {ANNOTATION: extended(gt("0950"))}}}
        restricted = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True}
        restricted |= {"seccompProfile": {"type": "RuntimeDefault"}}
        spec = {"containers": [{"name": "main", "image": "x", "securityContext": restricted}]}
        try:
            self.target.client.create("pods", pod | {"spec": spec}, namespace, dryRun="All")
        except ApiError as error:
            if "annotations.validate.taintwarden.io" not in str(error):
                raise
            return True
        return False

    def _running(self, kind: str, command: str) -> Json:
        ours = [one for one in self._documents if one["kind"] == kind]
        [found] = [one for one in ours if one["spec"]["template"]["spec"]["containers"][0]["args"][0] == command]
        return found

    def _service(self, document: Json) -> str:
        [container] = document["spec"]["template"]["spec"]["containers"]
        [name] = [one["value"] for one in container["env"] if one["name"] == "TAINTWARDEN_WEBHOOK_SERVICE"]
        return str(name)

    def _kubeconfig(self, document: Json) -> Path:
        """Of the account of its pods."""
        account = document["spec"]["template"]["spec"]["serviceAccountName"]
        path = {"name": account, "subresource": "token"}
        token = self.target.client.create("serviceaccounts", {"spec": {}}, self.namespace, **path)["status"]["token"]
        target = self.target
        return write_kubeconfig(self._folder / f"{account}.kubeconfig", target.server, target.ca, token=token)

    def _applied(self) -> Iterator[Json]:
        """What an installation has, except pods; the Service leads to this machine."""
        kinds = [*ACCESS_KINDS, "Secret", "Service", *CONFIGURATIONS]
        left = [one for one in self._documents if one["kind"] in kinds and one["kind"] != "PriorityClass"]
        for one in sorted(left, key=lambda one: kinds.index(one["kind"])):
            document = copy.deepcopy(one)
            if document["kind"] == "Service":
                document["spec"] = {"type": "ExternalName", "externalName": "localhost"}
            for webhook in document.get("webhooks", ()):
                webhook["clientConfig"]["service"]["port"] = self._port
            yield document


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with ControlPlane(tmp_path_factory.mktemp("moved")) as started:
        started.apply_crds()
        yield started


@pytest.fixture(params=MOVED.values(), ids=list(MOVED))
def installed(request: pytest.FixtureRequest, ground: ControlPlane, tmp_path: Path) -> Iterator[Installed]:
    made = Installed(ground, tmp_path, request.param(tmp_path))
    with made.process:
        yield made
    made.remove()


def test_they_are_trusted_asked_and_leave_their_own_namespace_alone(installed: Installed) -> None:
    assert installed.trust().count("has the certificate now") == len(CONFIGURATIONS)
    wait_until(lambda: installed.is_refused("default"), SECONDS, "an invalid annotation to be refused")
    assert not installed.is_refused(installed.namespace)

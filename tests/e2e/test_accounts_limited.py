"""What limits the operator's account holds wherever it is installed: tried with its token on a real API server."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane import ApiError, Cluster, ControlPlane, Json
from controlplane.manifests import ACCESS_KINDS
from controlplane.waiting import wait_until
from deploy.rendering import BASE, by_key, chart, kubectl, kustomize, run

NODE = "limiting"
SECONDS = 30
ELSEWHERE, PREFIX = "platform", "our-"
LIMITS = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")


def overlay(folder: Path, base: Path, **fields: str) -> list[Json]:
    """The base as a kustomization of a user changes it."""
    where = folder / "overlay"
    where.mkdir()
    relative = Path("../" * len(where.resolve().parts[1:])) / base.relative_to("/")
    (where / "kustomization.yaml").write_text(yaml.safe_dump({"resources": [str(relative)], **fields}))
    return kustomize(where)


INSTALLATIONS: Mapping[str, Any] = {
    "base with another namespace and a prefix": lambda folder: overlay(
        folder, BASE, namespace=ELSEWHERE, namePrefix=PREFIX
    ),
    "chart with another account in another namespace": lambda _: chart(
        {"serviceAccount": {"name": "mine"}}, namespace=ELSEWHERE
    ),
    "chart with a release of another name": lambda _: chart(release="other", namespace=ELSEWHERE),
}


class Installed:
    """What gives the operator its rights, and limits them; and a client with its token."""

    def __init__(self, target: ControlPlane, folder: Path, documents: list[Json]) -> None:
        objects = by_key(documents)
        [deployment] = [one for kind, name in objects for one in [objects[kind, name]] if is_operators(kind, name)]
        self.admin, self.namespace = target.client, deployment["metadata"]["namespace"]
        self.account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
        self._kubectl = (kubectl(), f"--kubeconfig={target.admin_kubeconfig}")
        self._limits, self._rights = folder / "limits.yaml", folder / "rights.yaml"
        access = [one for one in documents if one["kind"] in ACCESS_KINDS and one["kind"] != "PriorityClass"]
        self._limits.write_text(yaml.safe_dump_all([one for one in access if one["kind"] in LIMITS]))
        self._rights.write_text(yaml.safe_dump_all([one for one in access if one["kind"] not in LIMITS]))
        if not self.admin.find("namespaces", self.namespace):  # the chart leaves it to helm
            self.admin.create_namespace(self.namespace)
        run(*self._kubectl, "apply", "-f", self._rights, "-f", self._limits)
        self.operator = with_token(target, self.account, self.namespace)

    def close(self) -> None:
        """Remove it, and wait until it limits nobody any more: the next installation has policies of its own."""
        run(*self._kubectl, "delete", "-f", self._limits)
        wait_until(lambda: not is_refused(self.operator), SECONDS, "the policies to be forgotten")
        self.operator.close()
        left = [one for one in yaml.safe_load_all(self._rights.read_text()) if one["kind"] != "Namespace"]
        self._rights.write_text(yaml.safe_dump_all(left))
        run(*self._kubectl, "delete", "-f", self._rights)


def is_operators(kind: str, name: str) -> bool:
    return kind == "Deployment" and name.endswith("taintwarden")


def with_token(target: ControlPlane, account: str, namespace: str) -> Cluster:
    token = target.client.create("serviceaccounts", {"spec": {}}, namespace, name=account, subresource="token")
    return Cluster(target.server, target.ca, token=token["status"]["token"])


def is_refused(account: Cluster) -> bool:
    """Whether it may not cordon a node."""
    try:
        account.patch("nodes", NODE, {"spec": {"unschedulable": True}}, dryRun="All")
    except ApiError as error:
        if "the operator changes no spec" not in str(error):
            raise
        return True
    return False


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of its own: the one of the session has an installation, whose policies would do."""
    with ControlPlane(tmp_path_factory.mktemp("limits")) as started:
        started.apply_crds()
        started.client.create_node(NODE)
        yield started


@pytest.fixture(params=INSTALLATIONS.values(), ids=list(INSTALLATIONS))
def installed(request: pytest.FixtureRequest, ground: ControlPlane, tmp_path: Path) -> Iterator[Installed]:
    made = Installed(ground, tmp_path, request.param(tmp_path))
    yield made
    made.close()


def test_the_operator_cordons_no_node_and_writes_its_history(installed):
    wait_until(lambda: is_refused(installed.operator), SECONDS, "the policies to be heard of")
    history = {"metadata": {"annotations": {"taintwarden.io/taint-history": "{}"}}}
    installed.operator.patch("nodes", NODE, history, dryRun="All")


def test_nobody_else_is_limited(ground: ControlPlane, tmp_path: Path) -> None:
    """Not even a service account with every right, which has the right to be limited, too."""
    installed = Installed(ground, tmp_path, kustomize(BASE))
    ground.client.create("serviceaccounts", {"metadata": {"name": "mighty"}}, installed.namespace)
    subject = {"kind": "ServiceAccount", "name": "mighty", "namespace": installed.namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    ground.client.create(
        "clusterrolebindings", {"metadata": {"name": "mighty"}, "roleRef": role, "subjects": [subject]}
    )
    mighty = with_token(ground, "mighty", installed.namespace)
    wait_until(lambda: is_refused(installed.operator), SECONDS, "the policies to be heard of")
    assert not is_refused(mighty)
    assert not is_refused(ground.client)
    mighty.close()
    installed.close()

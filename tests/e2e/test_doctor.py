"""`taintwarden doctor` on a working cluster: a good one is left in peace, and faults are found in all that it reads.

A cluster of its own, since what is wrong anywhere in it counts. Faults come and go one after the other. Each check is
tried in `tests/cli`: here are those that need a server, an operator or controllers, and one for each kind of objects.
"""

import base64
import json
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from controlplane import Cluster, Json, Operator, WorkingCluster, wait_until
from controlplane.binaries import is_before
from controlplane.client import resource_path
from controlplane.kubeconfig import write_kubeconfig
from controlplane.operator_process import EXECUTABLE
from docs.pages import objects
from e2e.stories import annotation, taint, toleration
from e2e.test_explain import run
from e2e.test_placement_doctor import CHECKS as OF_PLACEMENT
from e2e.users import wait_granted
from taintwarden.cli import main
from taintwarden.cli.doctor.checks import CATALOGUE
from taintwarden.rehearsal.sources import Source

SYSTEM = "taintwarden-system"
FINE, REFUSED, PERSON = 0, 1, 10
SECONDS = 30
STRICT = toleration("Gt", "950")
NO_LIMITS = {"base": "None"}
HALF_AN_HOUR = {"violationGraceSeconds": 1800}
ROLE = next(one for where, one in objects() if where.startswith("docs/doctor.md") and one["kind"] == "ClusterRole")
TRIAL = {"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}
DEVICES_SINCE_MINOR = 34
OF_DEVICES = "claims"
"""The fault with objects that older API servers do not have."""

KINDS = {
    "taintevictionpolicies": "TaintEvictionPolicy",
    "taintpublishers": "TaintPublisher",
    "tolerationprofiles": "TolerationProfile",
}

Doctor = Callable[..., tuple[int, Json]]


@dataclass
class Ground:
    """A namespace with nodes of its own, for one fault."""

    working: WorkingCluster
    name: str
    doctor: Doctor

    @property
    def client(self) -> Cluster:
        return self.working.client

    def node(self, name: str, *taints: Json, **labels: str) -> str:
        self.client.create_node(f"{self.name}-{name}", {"ground": self.name, **labels}, taints)
        return f"{self.name}-{name}"

    def policy(self, name: str = "", **spec: Any) -> str:
        """One about this ground's nodes and taints with its key."""
        whole = {
            "taints": [{"key": "sla"}],
            "nodeSelector": {"matchLabels": {"ground": self.name}},
            "limits": NO_LIMITS,
            **spec,
        }
        return self.create("taintevictionpolicies", name or self.name, spec=whole)["metadata"]["name"]

    def create(self, resource: str, name: str, namespace: str = "", **fields: Any) -> Json:
        head = {"apiVersion": "taintwarden.io/v1alpha1", "kind": KINDS[resource]} if resource in KINDS else {}
        metadata = {"name": name, **fields.pop("metadata", {})}
        return self.client.create(resource, {**head, "metadata": metadata, **fields}, namespace)

    def publisher(self, name: str, key: str) -> str:
        """One of nodes that nobody has: no publisher runs here."""
        spec = {"key": key, "url": "http://prometheus.monitoring:9090", "query": "up", "round": 1}
        return self.create("taintpublishers", f"{self.name}-{name}", spec=spec)["metadata"]["name"]

    def profile(self, *tolerations: Json, **labels: str) -> None:
        selector = {"podSelector": {"matchLabels": labels}} if labels else {}
        self.create("tolerationprofiles", "p", self.name, spec={"tolerations": list(tolerations), **selector})

    def pod(self, node: str, *tolerations: Json, name: str = "web", **more: Any) -> None:
        self.client.create_pod(name, self.name, node, tolerations=tolerations, labels={"app": name}, **more)

    def deployment(self, *tolerations: Json, replicas: int = 2, **more: Any) -> str:
        given = {"node_selector": {"ground": self.name}, "tolerations": tolerations, **more}
        return self.working.create_deployment("web", self.name, replicas, **given)

    def find(self, check: str) -> list[Json]:
        """What a check says about what is here, or was made for it; its exit code goes by its severity."""
        code, found = self.doctor("--only", check)
        assert {one["check"] for one in found["findings"]} <= {check}
        assert code == (PERSON if found["findings"] else FINE)
        return [one for one in found["findings"] if self.name in (one["namespace"], one["name"]) or self._names(one)]

    def _names(self, finding: Json) -> bool:
        return bool(finding["name"].startswith(f"{self.name}-"))

    def expect(self, check: str) -> None:
        """It says something about what is here, at once or when controllers have done their part."""
        wait_until(lambda: self.find(check), SECONDS, f"{check} to be found")


@pytest.fixture(scope="module")
def clinic(own_working_cluster: WorkingCluster) -> WorkingCluster:
    return own_working_cluster


@pytest.fixture(scope="module")
def operator(clinic: WorkingCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with Operator(clinic.operator_kubeconfig(), tmp_path_factory.mktemp("operator")) as started:
        yield started


@pytest.fixture(scope="module")
def user(clinic: WorkingCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Whoever has the documented role, and may try a pod."""
    client = clinic.client
    client.create_namespace("duty")
    for name, rules in (("doctor", ROLE["rules"]), ("trial", [TRIAL])):
        client.create("clusterroles", {"metadata": {"name": name}, "rules": rules})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        account = {"kind": "ServiceAccount", "name": "default", "namespace": "duty"}
        client.create("clusterrolebindings", {"metadata": {"name": name}, "roleRef": role, "subjects": [account]})
    token = client.create("serviceaccounts", {"spec": {}}, "duty", name="default", subresource="token")
    for rule in (ROLE["rules"][-1], TRIAL):
        wait_granted(clinic, token["status"]["token"], rule)
    path = tmp_path_factory.mktemp("duty") / "kubeconfig"
    return write_kubeconfig(path, clinic.server, clinic.ca, token=token["status"]["token"])


def told(user: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return run([str(EXECUTABLE), "doctor", *args], user)


@pytest.fixture
def doctor(user: Path) -> Doctor:
    """The command in this process: a hundred starts of another would take minutes."""

    def ask(*args: str) -> tuple[int, Json]:
        done = CliRunner().invoke(main, ["doctor", "--kubeconfig", str(user), "-o", "json", *args])
        assert done.exit_code in (FINE, PERSON), done.output
        return done.exit_code, json.loads(done.stdout)

    return ask


@pytest.fixture
def ground(clinic: WorkingCluster, doctor: Doctor) -> Iterator[Ground]:
    name = f"g-{uuid.uuid4().hex[:6]}"
    client = clinic.client
    client.create_namespace(name)
    policies = {one["metadata"]["name"] for one in client.items("taintevictionpolicies")}
    yield Ground(clinic, name, doctor)
    for one in client.items("taintevictionpolicies"):
        if one["metadata"]["name"] not in policies:
            client.delete("taintevictionpolicies", one["metadata"]["name"])
    client.delete_all("taintpublishers")
    client.delete_all("tolerationprofiles", name)
    if not is_before(DEVICES_SINCE_MINOR):
        client.delete_all("resourceclaims", name)
        client.delete_all("resourceslices")
    client.remove_namespace(name)
    client.delete_all("nodes", labelSelector=f"ground={name}")


def test_good_cluster_is_left_in_peace(ground: Ground, operator: Operator, user: Path) -> None:
    for name in ("a", "b"):
        ground.node(name, taint("980"))
    ground.policy(timing=HALF_AN_HOUR)
    ground.profile(toleration("Gt", "900", key="other"), app="web")
    web = ground.deployment(STRICT, toleration("Exists", key="other"))
    budget = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    ground.create("poddisruptionbudgets", "web", ground.name, spec=budget)
    ground.working.wait_complete(web)
    wait_until(lambda: ground.find("policy-problem") == [], SECONDS, "the operator to look at the policy")

    done = told(user)
    assert (done.returncode, done.stderr) == (FINE, ""), done.stdout
    assert done.stdout.startswith("0 errors, 0 warnings; "), done.stdout


Fault = Callable[[Ground], None]
FAULTS: dict[str, tuple[str, Fault]] = {}
"""By a name, which check finds it, and what makes it."""


def fault(check: str, name: str = "") -> Callable[[Fault], Fault]:
    def note(make: Fault) -> Fault:
        FAULTS[name or check] = (check, make)
        return make

    return note


@fault("policy-problem")
def _(ground: Ground) -> None:
    node = ground.node("a", taint("900"))
    for name in ("first", "second"):
        spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}
        ground.create("poddisruptionbudgets", name, ground.name, spec=spec)
    ground.policy(timing={"violationGraceSeconds": 3})  # by then the budgets are known
    ground.pod(node, STRICT)


@fault("nowhere-to-go")
def _(ground: Ground) -> None:
    ground.node("a", taint("980"))
    ground.policy(timing=HALF_AN_HOUR)
    ground.working.wait_complete(ground.deployment(STRICT))
    ground.client.set_taints(f"{ground.name}-a", [taint("900")])


@fault("builtin-evicts")
def _(ground: Ground) -> None:
    ground.policy()
    ground.pod(ground.node("a", taint("980")), annotations=annotation(STRICT))


@fault("budget-never-allows")
def _(ground: Ground) -> None:
    ground.pod(ground.node("a"))
    ground.policy()
    spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}}
    ground.create("poddisruptionbudgets", "web", ground.name, spec=spec)


def of_device(ground: Ground, effect: str) -> Json:
    return {"key": f"{ground.name}.example.com/health", "value": "bad", "effect": effect}


def for_devices(ground: Ground, name: str = "") -> str:
    """A policy for the taints of this ground's devices alone."""
    effects = ["NoExecute", "NoSchedule", "None"]
    made = ground.policy(
        name, devices=[{"key": f"{ground.name}.example.com/health", "effects": effects}], mode="DryRun"
    )
    ground.client.patch("taintevictionpolicies", made, {"spec": {"taints": None}})
    return made


@fault("builtin-evicts", OF_DEVICES)
def _(ground: Ground) -> None:
    """As if a scheduler had allocated a device: no driver runs here."""
    for_devices(ground)
    driver, node = f"{ground.name}.example.com", ground.node("a")
    ground.pod(node)
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": "gpu-0", "taints": [of_device(ground, "NoExecute")]}]
    ground.create("resourceslices", node, spec={"driver": driver, "nodeName": node, "pool": pool, "devices": devices})
    requests = [{"name": "gpu", "exactly": {"deviceClassName": ground.name}}]
    ground.create("resourceclaims", "web", ground.name, spec={"devices": {"requests": requests}})
    uid = ground.client.get("pods", "web", ground.name)["metadata"]["uid"]
    allocated = {"request": "gpu", "driver": driver, "pool": node, "device": "gpu-0"}
    status = {
        "allocation": {"devices": {"results": [allocated]}},
        "reservedFor": [{"resource": "pods", "name": "web", "uid": uid}],
    }
    ground.client.patch("resourceclaims", "web", {"status": status}, ground.name, subresource="status")


@fault("profile-without-effect")
def _(ground: Ground) -> None:
    ground.profile(STRICT, app="nobody")


@fault("webhook-not-answering")
def _(ground: Ground) -> None:
    ground.client.patch("namespaces", ground.name, {"metadata": {"labels": {"taintwarden.io/inject": "true"}}})


@fault("publisher-stuck")
def _(ground: Ground) -> None:
    name = ground.publisher("one", ground.name)
    told = {"message": "the API server refuses to change nodes", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    conditions = [{"type": "Publishing", "status": "False", "reason": "WriteRefused", **told}]
    status = {"observedGeneration": 1, "conditions": conditions}
    ground.client.patch("taintpublishers", name, {"status": status}, subresource="status")


@fault("taint-left")
def _(ground: Ground) -> None:
    node = ground.node("a", {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"})
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
    ground.client.patch("nodes", node, {"status": {"conditions": [ready]}}, subresource="status")


@contextmanager
def manager_lease(client: Cluster) -> Iterator[None]:
    """As if a kube-controller-manager led: the one here runs without election and the controller for taints."""
    renewed = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": "manager", "leaseDurationSeconds": 15, "renewTime": renewed}
    client.create("leases", {"metadata": {"name": "kube-controller-manager"}, "spec": spec}, "kube-system")
    try:
        yield
    finally:
        client.delete("leases", "kube-controller-manager", "kube-system")


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_found(ground: Ground, operator: Operator, name: str) -> None:
    if name == OF_DEVICES and is_before(DEVICES_SINCE_MINOR):
        pytest.skip(f"Kubernetes before 1.{DEVICES_SINCE_MINOR} does not serve them in resource.k8s.io/v1")
    check, make = FAULTS[name]
    with manager_lease(ground.client):
        assert ground.find(check) == []
        make(ground)
        ground.expect(check)


def test_faults_while_nobody_leads(ground: Ground, operator: Operator) -> None:
    assert ground.doctor("--only", "operator-not-running")[1]["findings"] == []
    operator.stop()
    try:
        ground.policy(f"{ground.name}-new")
        ground.expect("policy-problem")
        code, found = ground.doctor("--only", "operator-not-running")
        assert (code, [one["message"] for one in found["findings"]]) == (
            PERSON,
            ["the operator is not running: nothing is evicted, and statuses are out of date"],
        )
    finally:
        operator.start()


def test_an_operator_that_is_scaled_to_no_replicas(ground: Ground, operator: Operator) -> None:
    only = ("--only", "operator-not-running")
    assert ground.doctor(*only)[1]["findings"] == []
    labels = {"app.kubernetes.io/name": "taintwarden"}
    container = {"name": "taintwarden", "image": "taintwarden", "args": ["run"]}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    ground.create("deployments", "taintwarden", SYSTEM, metadata={"labels": labels}, spec=spec)
    try:
        assert [one["kind"] for one in ground.doctor(*only)[1]["findings"]] == ["Deployment"]
    finally:
        ground.client.delete("deployments", "taintwarden", SYSTEM)


def test_rights_that_are_missing(ground: Ground, operator: Operator) -> None:
    """As shipped there are none missing; elsewhere nobody has any, or the cluster's role alone."""
    assert ground.doctor("--only", "rights-missing")[1]["findings"] == []
    [none] = ground.doctor("--only", "rights-missing", "--operator-namespace", ground.name)[1]["findings"]
    assert none["message"].startswith("has none of the ")
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "taintwarden"}
    account = {"kind": "ServiceAccount", "name": "taintwarden", "namespace": ground.name}
    ground.create("clusterrolebindings", ground.name, roleRef=role, subjects=[account])
    try:
        lease = f"may not get, update leases.coordination.k8s.io taintwarden in {ground.name}"
        some = wait_until(lambda: missing_beside(ground, lease), SECONDS, "the API server to hear of the binding")
        assert not [one for one in some if "pods" in one]
        of_devices = "may not list, watch resourceslices.resource.k8s.io"
        assert of_devices not in some
        for_devices(ground)
        assert missing_beside(ground, of_devices)
    finally:
        ground.client.delete("clusterrolebindings", ground.name)


def missing_beside(ground: Ground, right: str) -> list[str]:
    """What is said of the rights of an operator of this namespace; empty unless this one is missing."""
    found = ground.doctor("--only", "rights-missing", "--operator-namespace", ground.name)[1]["findings"]
    messages = [one["message"] for one in found]
    return messages if right in messages else []


MUTATING = "admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


@pytest.mark.parametrize(
    ("bundle", "policy", "check", "words"),
    [
        ("", "Ignore", "webhook-not-answering", "has no caBundle"),
        ("Q0E=", "Fail", "webhook-not-answering", "has failurePolicy Fail"),
        ("Q0E=", "Ignore", "companion-missing", "although their namespace asks for it"),
    ],
)
def test_webhooks(ground: Ground, operator: Operator, bundle: str, policy: str, check: str, words: str) -> None:
    ground.client.patch("namespaces", ground.name, {"metadata": {"labels": {"taintwarden.io/inject": "true"}}})
    ground.pod(ground.node("a"), annotations=annotation(STRICT))
    webhook = {
        "name": "pods.mutate.taintwarden.io",
        "clientConfig": {"url": "https://127.0.0.1:1/mutate", **({"caBundle": authority(ground)} if bundle else {})},
        "rules": [{"apiGroups": ["none"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["none"]}],
        "failurePolicy": policy,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    ground.create(MUTATING, "taintwarden", webhooks=[webhook])
    try:
        [found] = ground.doctor("--only", check)[1]["findings"]
        assert words in found["message"]
    finally:
        ground.client.delete(MUTATING, "taintwarden")


def authority(ground: Ground) -> str:
    assert ground.working.ca is not None
    return base64.b64encode(ground.working.ca.read_bytes()).decode()


def test_who_may_do_little_is_told_what_was_not_checked(ground: Ground, user: Path, operator: Operator) -> None:
    ground.client.delete("clusterrolebindings", "trial")
    try:
        [lost] = wait_until(lambda: ground.doctor()[1]["notChecked"], SECONDS, "the API server to hear of it")
        assert (lost["checks"], lost["partly"]) == (["webhook-not-answering"], True)
        assert lost["reason"].startswith("you may not try a pod in namespace default (a dry run): 403")
    finally:
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "trial"}
        account = {"kind": "ServiceAccount", "name": "default", "namespace": "duty"}
        ground.create("clusterrolebindings", "trial", roleRef=role, subjects=[account])


def test_definitions_that_are_missing(ground: Ground, clinic: WorkingCluster, operator: Operator) -> None:
    """Last: the policies of the cluster go with their definition."""
    names = {"taintevictionpolicies", "tolerationprofiles"}
    assert ground.doctor("--only", "operator-not-running")[1]["findings"] == []
    try:
        for name in names:
            ground.client.delete("customresourcedefinitions", f"{name}.taintwarden.io")
        wait_until(lambda: not any(clinic.answers(resource_path(name)) for name in names), SECONDS, "them to go")
        code, found = ground.doctor("--only", "operator-not-running")
        assert (code, {one["name"] for one in found["findings"]}) == (
            PERSON,
            {f"{name}.taintwarden.io" for name in names},
        )
    finally:
        clinic.apply_crds()


def test_every_source_of_a_check_is_read_from_a_real_server() -> None:
    """What checks make of it is tried in ``tests/cli``, each of them."""
    tried = {*(check for check, _ in FAULTS.values()), *OF_PLACEMENT, "operator-not-running", "rights-missing"}
    tried |= {"companion-missing", "grace-restarted"}
    sources = [source for check in CATALOGUE if check.id in tried for source in (*check.needs, *check.uses)]
    assert set(sources) == set(Source) - {Source.VOLUMES}

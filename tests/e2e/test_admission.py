"""Answers to `kubectl apply`, and changes of pods, by the real API server and the shipped webhooks."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from admission.workloads import ANNOTATION, PATHS, exists, extended, gt
from api.profile_cases import profile
from controlplane import ApiError, Cluster, ControlPlane, webhook_setup
from controlplane.waiting import wait_until
from controlplane.webhook_setup import Kubectl, reviews

pytestmark = pytest.mark.usefixtures("webhook")

Json = dict[str, Any]
GOOD, BAD, OTHER_BAD = extended(gt()), extended(gt("0950")), extended(gt("95.5"))
LABELS = {"app": "web"}
TOLD = 'Invalid value: "0950": leading zeros are not allowed: write 950, not 0950'
WORKLOADS = [kind for kind in PATHS if kind != ("", "Pod")]


@pytest.fixture
def kubectl(own_control_plane: ControlPlane) -> Kubectl:
    return Kubectl(own_control_plane.admin_kubeconfig)


@pytest.fixture
def injected(cluster: Cluster, namespace: str) -> str:
    """A namespace that asks for its pods to be completed, once the API server has observed that."""
    webhook_setup.inject(cluster, namespace)
    return namespace


@pytest.fixture
def gold(cluster: Cluster, namespace: str) -> Iterator[None]:
    """A profile that selects every pod of the namespace."""
    spec = {"podSelector": {}, "tolerations": [gt(effect="NoExecute")]}
    cluster.create("tolerationprofiles", profile(spec, "gold", namespace), namespace)
    yield
    cluster.delete("tolerationprofiles", "gold", namespace)


def template(annotation: str | None, *native: Json, labels: Json | None = None, **spec: Any) -> Json:
    meta: Json = {"labels": {**LABELS, **(labels or {})}}
    if annotation is not None:
        meta["annotations"] = {ANNOTATION: annotation}
    containers = [{"name": "main", "image": "registry.k8s.io/pause:3.10"}]
    return {"metadata": meta, "spec": {"containers": containers, "tolerations": list(native), **spec}}


def pod(namespace: str, *args: Any, name: str = "web", **more: Any) -> Json:
    body = template(*args, **more)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        **body,
        "metadata": {**body["metadata"], "name": name, "namespace": namespace},
    }


def workload(namespace: str, group: str, kind: str, pod_template: Json) -> Json:
    version = f"{group}/v1" if group else "v1"
    meta = {"name": "web", "namespace": namespace}
    selector: Json = {"selector": {"matchLabels": LABELS} if group == "apps" else LABELS}
    if group == "batch":
        pod_template = copy.deepcopy(pod_template)
        pod_template["spec"]["restartPolicy"] = "Never"
        selector = {}
    spec: Json = {"template": pod_template, **selector}
    if kind == "StatefulSet":
        spec["serviceName"] = "web"
    if kind == "CronJob":
        spec = {"schedule": "0 3 * * *", "jobTemplate": {"spec": spec}}
    return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec}


def deployment(namespace: str, *args: Any, **more: Any) -> Json:
    return workload(namespace, "apps", "Deployment", template(*args, **more))


# -- what is refused ----------------------------------------------------------------------------------------------


def test_an_invalid_annotation_is_refused_with_path_value_reason_and_remedy(kubectl, namespace):
    for group, kind in WORKLOADS:
        code, said = kubectl.apply(workload(namespace, group, kind, template(BAD, exists())))
        path = ".".join((*PATHS[group, kind], "metadata"))
        assert code == 1
        assert said.strip() == f'The {kind} "web" is invalid: {path}.annotations[{ANNOTATION}][0].value: {TOLD}'


def test_a_valid_annotation_is_accepted(kubectl, namespace):
    for group, kind in WORKLOADS:
        code, said = kubectl.apply(workload(namespace, group, kind, template(GOOD, exists())))
        assert code == 0, said
    assert kubectl.apply(pod(namespace, GOOD, exists()))[0] == 0


# -- warnings, and objects that are not sent to the webhook ---------------------------------------------------------


def test_a_missing_native_toleration_is_a_warning(kubectl, namespace):
    code, said = kubectl.apply(deployment(namespace, GOOD))
    assert code == 0
    assert "Warning: " in said
    assert "add to spec.tolerations: key: sla, operator: Exists" in said


def test_objects_without_a_taintwarden_annotation_are_not_sent(cluster, namespace, webhook):
    before = reviews(webhook)
    cluster.create("pods", pod(namespace, None), namespace)
    cluster.create("deployments", deployment(namespace, None), namespace)
    assert reviews(webhook) == before


def is_refused(cluster: Cluster, namespace: str) -> bool:
    """Return True if a bad Deployment is refused at this moment."""
    try:
        cluster.create("deployments", deployment(namespace, BAD, exists()), namespace, dryRun="All")
    except ApiError as error:
        return error.status == 422
    return False


@contextmanager
def not_asked(cluster: Cluster, namespace: str) -> Iterator[None]:
    """A while without webhook for Deployments, as before it was installed."""
    configuration = "admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    rule = {"op": "replace", "path": "/webhooks/0/rules/1/operations"}
    cluster.patch(configuration, "taintwarden", [{**rule, "value": ["DELETE"]}], kind="json")
    wait_until(lambda: not is_refused(cluster, namespace), 30, "the server to have heard that it need not ask")
    yield
    cluster.patch(configuration, "taintwarden", [{**rule, "value": ["CREATE", "UPDATE"]}], kind="json")
    wait_until(lambda: is_refused(cluster, namespace), 30, "the server to ask again")


def test_an_invalid_deployment_stored_before_can_be_scaled_and_corrected_but_not_made_worse(cluster, namespace):
    with not_asked(cluster, namespace):
        cluster.create("deployments", deployment(namespace, BAD, exists()), namespace)

    def change(spec: Json) -> None:
        cluster.patch("deployments", "web", {"spec": spec}, namespace)

    def annotate(text: str) -> None:
        change({"template": {"metadata": {"annotations": {ANNOTATION: text}}}})

    change({"replicas": 2})
    change({"template": {"metadata": {"labels": {"more": "labels"}}}})
    with pytest.raises(ApiError, match=r"95\.5"):
        annotate(OTHER_BAD)
    annotate(GOOD)
    with pytest.raises(ApiError, match="0950"):
        annotate(BAD)


def test_a_pod_of_a_replica_set_is_started_whatever_its_annotation_says(cluster, namespace, webhook):
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "web",
        "uid": "6c1f9a0e-0000-4000-8000-000000000000",
    }
    before = reviews(webhook, result="warned")
    assert cluster.create_pod("web-1", namespace, annotations={ANNOTATION: BAD}, owner=owner)
    assert reviews(webhook, result="warned") == before + 1
    with pytest.raises(ApiError, match="write 950, not 0950"):
        cluster.create_pod("web-2", namespace, annotations={ANNOTATION: BAD})


# -- what pods get ------------------------------------------------------------------------------------------------


def tolerations(cluster: Cluster, body: Json, namespace: str) -> list[Json]:
    """Tolerations of the stored pod, without those that the API server adds to every pod."""
    found = cluster.create("pods", body, namespace)["spec"].get("tolerations", [])
    return [one for one in found if not one.get("key", "").startswith("node.kubernetes.io/")]


@pytest.mark.usefixtures("gold")
def test_a_pod_gets_the_native_toleration_of_a_profile_that_selects_everything(cluster, injected, webhook):
    def is_known() -> bool:
        found = cluster.create("pods", pod(injected, None), injected, dryRun="All")["spec"]["tolerations"]
        return exists(effect="NoExecute") in found

    wait_until(is_known, 30, "the profile to be known to the operator")
    assert tolerations(cluster, pod(injected, None), injected) == [exists(effect="NoExecute")]


def test_a_pod_that_opts_out_stays_as_it_is(cluster, injected):
    assert tolerations(cluster, pod(injected, GOOD, labels={"taintwarden.io/inject": "false"}), injected) == []


def restricted(body: Json) -> Json:
    """Return the pod as the operator's own namespace requires it."""
    spec = copy.deepcopy(body["spec"])
    spec["securityContext"] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    spec["containers"][0]["securityContext"] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return {**body, "spec": spec}


@pytest.mark.parametrize("system", ["kube-system", "taintwarden-system"])
def test_pods_of_system_namespaces_are_not_sent_even_if_labelled(cluster, webhook, system):
    cluster.patch("namespaces", system, {"metadata": {"labels": {"taintwarden.io/inject": "true"}}})
    if not cluster.find("serviceaccounts", "default", system):
        cluster.create("serviceaccounts", {"metadata": {"name": "default"}}, system)
    before = reviews(webhook)
    try:
        stored = cluster.create("pods", restricted(pod(system, BAD)), system, dryRun="All")
    finally:
        cluster.patch("namespaces", system, {"metadata": {"labels": {"taintwarden.io/inject": None}}})
    assert "sla" not in {one.get("key") for one in stored["spec"]["tolerations"]}
    assert reviews(webhook) == before

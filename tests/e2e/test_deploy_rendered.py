"""A real API server takes all that deploy/ renders to: the chart in several sets of values, the base, the overlays."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from controlplane import OPERATOR_NAMESPACE, ApiError, Target
from controlplane.manifests import documents
from deploy.rendering import BASE, FOREIGN_DEFINITIONS, OVERLAYS, Json, by_key, chart, kustomize

VALUES: dict[str, Json] = {
    "defaults": {},
    "everything": {
        "dryRun": True,
        "settings": {"maxEvictionsPerSecond": 0.5, "numericOperators": False, "logLevel": "debug"},
        "metrics": {"protected": True, "certificateSecret": "metrics"},
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "prometheusRule": {"enabled": True, "alertLabels": {"team": "platform"}},
        "dashboard": {"enabled": True},
        "networkPolicy": {
            "enabled": True,
            "metricsFrom": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
        },
        "publisher": {"enabled": True},
        "commonLabels": {"team": "platform"},
        "commonAnnotations": {"note": "text"},
        "podLabels": {"cost": "shared"},
        "podAnnotations": {"sidecar.istio.io/inject": "false"},
        "imagePullSecrets": [{"name": "registry"}],
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "env": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
        "podDisruptionBudget": {"maxUnavailable": "50%"},
        "envFrom": [{"configMapRef": {"name": "proxy", "optional": True}}],
        "volumes": [{"name": "authorities", "configMap": {"name": "corporate"}}],
        "volumeMounts": [{"name": "authorities", "mountPath": "/authorities"}],
        "dnsConfig": {"options": [{"name": "ndots", "value": "2"}]},
        "startupProbe": {"httpGet": {"path": "/livez", "port": "http"}, "failureThreshold": 30},
        "strategy": {"type": "Recreate", "rollingUpdate": None},
        "httpPort": 8081,
        "deploymentLabels": {"team": "platform"},
        "deploymentAnnotations": {"note": "text"},
        "webhooks": {
            "timeoutSeconds": 5,
            "callers": {"configMap": "api-servers"},
            "namespaceSelector": {"matchLabels": {"env": "prod"}},
            "objectSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
            "tolerations": [],
            "port": 9444,
        },
    },
    "nothing": {
        "crds": {"install": False},
        "rbac": {"create": False, "aggregateToView": False},
        "serviceAccount": {"create": False, "name": "taintwarden"},
        "podDisruptionBudget": {"enabled": False},
        "resourceQuota": {"enabled": False},
        "webhooks": {"enabled": False},
        "priorityClassName": "",
        "tolerations": [],
        "topologySpreadConstraints": [],
    },
    "publisher": {"networkPolicy": {"enabled": True}, "publisher": {"enabled": True}},
    "cert-manager": {"webhooks": {"certificates": "cert-manager"}},
    "openshift": {"podSecurityContext": {"runAsUser": None, "runAsGroup": None}},
}
RENDERINGS: dict[str, Callable[[], list[Json]]] = {
    **{f"chart, {name}": lambda values=values: chart(values) for name, values in VALUES.items()},  # type: ignore[misc]
    "chart, with its test": lambda: chart(VALUES["everything"], more=[]),
    **{folder.name: lambda folder=folder: kustomize(folder) for folder in (BASE, *OVERLAYS)},  # type: ignore[misc]
}


@pytest.fixture(scope="module")
def target(control_plane: Target) -> Iterator[Target]:
    """A cluster with the foreign kinds, as cert-manager and the Prometheus operator define them."""
    foreign = [definition for _, definition in documents(FOREIGN_DEFINITIONS)]
    assert len(foreign) == 5
    installed = [one for one in foreign if control_plane.client.find("customresourcedefinitions", name(one)) is None]
    control_plane.wait_served([control_plane.client.apply(one) for one in installed])
    yield control_plane
    for one in installed:
        control_plane.client.delete("customresourcedefinitions", name(one))


def name(document: Json) -> str:
    found: str = document["metadata"]["name"]
    return found


def pod_of(documents: list[Json]) -> Json:
    """A pod as the Deployment's controllers would make it."""
    template = copy.deepcopy(by_key(documents)["Deployment", "taintwarden"]["spec"]["template"])
    return {"metadata": {"name": "taintwarden-0", **template["metadata"]}, "spec": template["spec"]}


@pytest.mark.parametrize("rendering", RENDERINGS)
def test_the_server_takes_every_object_and_a_pod_under_the_restricted_profile(target: Target, rendering: str) -> None:
    refusals, rendered = [], RENDERINGS[rendering]()
    for document in rendered:
        try:
            target.client.check_creation(document)
        except ApiError as error:
            refusals.append(f"{document['kind']} {name(document)}: {error}")
    assert refusals == []
    path = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/pods"
    assert target.client.refusal("POST", path, pod_of(rendered)) == ""


def test_a_pod_that_may_do_more_is_refused(target: Target) -> None:
    """The namespace is as shipped, so the test above says something."""
    pod: Any = pod_of(kustomize(BASE))
    pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    path = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/pods"
    assert "violates PodSecurity" in target.client.refusal("POST", path, pod)


def test_an_unknown_field_is_refused(target: Target) -> None:
    deployment = next(one for one in chart() if one["kind"] == "Deployment")
    deployment["spec"]["replica"] = 3
    with pytest.raises(ApiError, match="replica"):
        target.client.check_creation(deployment)

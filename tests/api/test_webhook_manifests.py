"""The shipped webhooks never block a cluster, and their manifests are consistent."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from taintwarden_placement.settings import WebhookSettings

BASE = Path(__file__).parents[2] / "deploy" / "base"
DOCUMENTS = {
    document["kind"]: document for document in yaml.safe_load_all((BASE / "webhooks.yaml").read_text()) if document
}
WEBHOOKS = {
    webhook["name"]: webhook
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
    for webhook in DOCUMENTS[kind]["webhooks"]
}
DEPLOYMENT, _ = yaml.safe_load_all((BASE / "webhook-deployment.yaml").read_text())
POD = DEPLOYMENT["spec"]["template"]
CONTAINER = POD["spec"]["containers"][0]
PODS, TEMPLATES = (WEBHOOKS[f"{name}.mutate.taintwarden.io"] for name in ("pods", "templates"))


@pytest.fixture(params=WEBHOOKS)
def webhook(request: pytest.FixtureRequest) -> dict[str, Any]:
    return WEBHOOKS[request.param]


def test_a_webhook_that_fails_is_ignored(webhook):
    assert webhook["failurePolicy"] == "Ignore"
    assert webhook["timeoutSeconds"] <= 2


def test_the_systems_namespaces_and_the_operators_are_excluded(webhook):
    """The operator's namespace has a label, which kustomize does not change, unlike the name."""
    system, own = webhook["namespaceSelector"]["matchExpressions"]
    assert (system["key"], system["operator"]) == ("kubernetes.io/metadata.name", "NotIn")
    assert set(system["values"]) == {"kube-system", "kube-public", "kube-node-lease"}
    namespace = yaml.safe_load((BASE / "namespace.yaml").read_text())
    assert own["operator"] == "NotIn"
    assert own["values"] == [namespace["metadata"]["labels"][own["key"]]]


def test_a_webhook_has_no_side_effects(webhook):
    assert webhook["sideEffects"] == "None"


def test_deletions_are_not_reviewed(webhook):
    assert {operation for rule in webhook["rules"] for operation in rule["operations"]} <= {"CREATE", "UPDATE"}


def test_bundles_are_written_by_the_job_and_not_shipped(webhook):
    assert "caBundle" not in webhook["clientConfig"]
    assert "data" not in DOCUMENTS["Secret"]


def test_the_service_leads_to_the_port_that_is_served():
    (port,) = (port for port in CONTAINER["ports"] if port["name"] == "webhook")
    assert DOCUMENTS["Service"]["spec"]["ports"][0]["targetPort"] == port["name"]
    assert port["containerPort"] == WebhookSettings().webhook_port
    assert DOCUMENTS["Service"]["spec"]["selector"].items() <= POD["metadata"]["labels"].items()


def test_the_service_puts_no_variables_into_the_environment():
    assert POD["spec"]["enableServiceLinks"] is False


@pytest.mark.parametrize(("webhook", "operations"), [(PODS, ["CREATE"]), (TEMPLATES, ["CREATE", "UPDATE"])])
def test_pods_and_templates_are_changed_only_in_labelled_namespaces(webhook, operations):
    assert webhook["namespaceSelector"]["matchLabels"] == {"taintwarden.io/inject": "true"}
    assert [rule["operations"] for rule in webhook["rules"]] == [operations]


def test_only_templates_of_daemon_sets_are_changed():
    assert [rule["resources"] for rule in TEMPLATES["rules"]] == [["daemonsets"]]


def test_a_pod_can_opt_out_of_injection():
    assert PODS["objectSelector"]["matchExpressions"] == [
        {"key": "taintwarden.io/inject", "operator": "NotIn", "values": ["false"]}
    ]

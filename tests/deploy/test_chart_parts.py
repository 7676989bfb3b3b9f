"""The parts of the chart that can be switched on and off: what belongs together comes and goes together."""

from typing import Any

import pytest

from deploy.rendering import Json, by_key, chart, key
from deploy.test_chart_values import container, pod
from taintwarden.settings import load_settings

SELECTOR = {"app.kubernetes.io/name": "taintwarden"}


def names(**values: Any) -> set[tuple[str, str]]:
    return set(by_key(chart(values)))


ALL = {"webhooks": {"enabled": True}, "serviceMonitor": {"enabled": True}, "networkPolicy": {"enabled": True}}


@pytest.mark.parametrize(
    ("values", "gone"),
    [
        ({"crds": {"install": False}}, {"CustomResourceDefinition"}),
        ({"serviceAccount": {"create": False}}, {"ServiceAccount"}),
        ({"rbac": {"create": False}}, {"ClusterRoleBinding", "Role", "RoleBinding"}),
        ({"podDisruptionBudget": {"enabled": False}}, {"PodDisruptionBudget"}),
        ({"resourceQuota": {"enabled": False}}, {"ResourceQuota"}),
        ({"priorityClassName": "high"}, {"ResourceQuota"}),
        (
            {"webhooks": {"enabled": False}},
            {"Service", "Secret", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"},
        ),
    ],
)
def test_what_is_switched_off_is_gone_and_nothing_else(values, gone):
    left = {kind for kind, _ in names(**values)}
    assert left == {kind for kind, _ in names()} - gone


def test_without_rights_people_may_still_look():
    assert [name for name in names(rbac={"create": False}) if name[0] == "ClusterRole"] == [
        ("ClusterRole", "taintwarden-view")
    ]


def test_the_rights_go_to_the_service_account_that_was_named():
    objects = by_key(chart({"serviceAccount": {"create": False, "name": "mine"}}))
    subjects = [one["subjects"] for (kind, _), one in objects.items() if kind.endswith("Binding")]
    assert {subject["name"] for [subject] in subjects} == {"mine"}
    assert objects["Deployment", "taintwarden"]["spec"]["template"]["spec"]["serviceAccountName"] == "mine"


def test_definitions_are_never_removed_by_helm():
    kept = [one["metadata"].get("annotations", {}).get("helm.sh/resource-policy") for one in chart()]
    assert kept.count("keep") == 2


# -- webhooks ---------------------------------------------------------------------------------------------------------


def rules(**values: Any) -> list[Json]:
    objects = by_key(chart(values))
    return [*objects["ClusterRole", "taintwarden"]["rules"], *objects["Role", "taintwarden"]["rules"]]


def test_without_webhooks_nothing_of_them_is_left():
    off: Json = {"webhooks": {"enabled": False}}
    only = container(**off)
    assert [port["name"] for port in only["ports"]] == ["http"]
    assert not [one for one in only["env"] if "WEBHOOK" in one["name"]]
    resources = {resource for rule in rules(**off) for resource in rule["resources"]}
    assert not {one for one in resources if "webhook" in one or one == "secrets"}
    assert len(rules()) == len(rules(**off)) + 2


def test_cert_manager_makes_the_secret_and_injects_the_authority():
    objects = by_key(chart({"webhooks": {"certificates": "cert-manager"}}, namespace="ops"))
    certificate = objects["Certificate", "taintwarden-webhook"]["spec"]
    assert certificate["secretName"] == "taintwarden-webhook"
    assert certificate["dnsNames"] == ["taintwarden-webhook.ops.svc"]
    assert certificate["issuerRef"]["name"] == objects["Issuer", "taintwarden-webhook"]["metadata"]["name"]
    assert ("Secret", "taintwarden-webhook") not in objects
    injected = [
        one["metadata"]["annotations"]["cert-manager.io/inject-ca-from"]
        for (kind, _), one in objects.items()
        if kind.endswith("WebhookConfiguration")
    ]
    assert injected == ["ops/taintwarden-webhook"] * 2


@pytest.mark.parametrize(("certificates", "read"), [("own", "own"), ("cert-manager", "external")])
def test_the_operator_makes_certificates_only_if_nobody_else_does(certificates, read):
    given = {one["name"]: one.get("value", "") for one in container(webhooks={"certificates": certificates})["env"]}
    settings = load_settings(given)
    assert settings.webhook_certificates == read
    assert settings.webhook_service == "taintwarden-webhook"


def test_an_issuer_of_the_users_is_used():
    issuer = {"name": "corporate", "kind": "ClusterIssuer"}
    objects = by_key(chart({"webhooks": {"certificates": "cert-manager", "issuerRef": issuer}}))
    assert objects["Certificate", "taintwarden-webhook"]["spec"]["issuerRef"] == issuer
    assert ("Issuer", "taintwarden-webhook") not in objects


def test_our_own_namespace_is_never_intercepted():
    hooks = [
        hook
        for one in chart(namespace="ops")
        if one["kind"].endswith("WebhookConfiguration")
        for hook in one["webhooks"]
    ]
    excluded = [hook["namespaceSelector"]["matchExpressions"][0]["values"] for hook in hooks]
    assert len(excluded) == 3
    assert all({"ops", "kube-system"} <= set(names) for names in excluded)


# -- monitoring and network -------------------------------------------------------------------------------------------


def test_the_service_monitor_selects_the_service_and_the_service_the_pods():
    objects = by_key(chart({"serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}}))
    service, monitor = objects["Service", "taintwarden-metrics"], objects["ServiceMonitor", "taintwarden-metrics"]
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"]
    assert service["spec"]["selector"] == SELECTOR
    assert service["spec"]["ports"][0]["targetPort"] in {port["name"] for port in container()["ports"]}


def test_the_service_of_the_webhooks_is_not_scraped():
    objects = by_key(chart({"serviceMonitor": {"enabled": True}}))
    wanted = objects["ServiceMonitor", "taintwarden-metrics"]["spec"]["selector"]["matchLabels"]
    assert not wanted.items() <= objects["Service", "taintwarden-webhook"]["metadata"]["labels"].items()


@pytest.mark.parametrize(("webhooks", "let_in"), [(True, ["http", "webhook"]), (False, ["http"])])
def test_the_network_policy_lets_in_what_the_container_serves(webhooks, let_in):
    values: Json = {"networkPolicy": {"enabled": True}, "webhooks": {"enabled": webhooks}}
    policy = by_key(chart(values))["NetworkPolicy", "taintwarden"]["spec"]
    assert [rule["ports"][0]["port"] for rule in policy["ingress"]] == let_in
    assert {port["name"] for port in container(**values)["ports"]} == set(let_in)
    assert [port["port"] for port in policy["egress"][0]["ports"]] == [443, 6443]
    assert policy["podSelector"]["matchLabels"] == SELECTOR


def test_who_may_scrape_can_be_narrowed_and_the_api_server_still_comes_in():
    prometheus = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
    policy = by_key(chart({"networkPolicy": {"enabled": True, "metricsFrom": prometheus}}))
    http, webhook = policy["NetworkPolicy", "taintwarden"]["spec"]["ingress"]
    assert http["from"] == prometheus
    assert "from" not in webhook


def test_everything_at_once_names_each_object_once():
    assert len(chart(ALL)) == len(names(**ALL)) > len(names())
    assert [key(one) for one in chart(ALL) if not SELECTOR.items() <= one["metadata"]["labels"].items()] == []
    assert pod(**ALL)

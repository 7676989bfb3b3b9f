"""The parts of the chart that can be switched on and off: what belongs together comes and goes together."""

from typing import Any

import pytest

from deploy.rendering import Json, RenderingError, by_key, chart, key
from deploy.test_chart_values import container, pod
from taintwarden.settings import load_webhook_settings

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
        (
            {"admissionPolicy": {"enabled": False}},
            {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"},
        ),
        ({"podDisruptionBudget": {"enabled": False}}, {"PodDisruptionBudget"}),
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
    named: Json = {"serviceAccount": {"create": False, "name": "mine"}, "webhooks": {"serviceAccountName": "other"}}
    objects = by_key(chart(named | {"rbac": {"allowDelete": True}}))
    bound = {
        name: subject["name"]
        for (kind, name), one in objects.items()
        if kind in ("RoleBinding", "ClusterRoleBinding")
        for subject in one["subjects"]
    }
    assert bound == {"taintwarden": "mine", "taintwarden-delete": "mine", "taintwarden-webhook": "other"}
    for name, account in (("taintwarden", "mine"), ("taintwarden-webhook", "other")):
        assert objects["Deployment", name]["spec"]["template"]["spec"]["serviceAccountName"] == account
    assert not [name for kind, name in objects if kind == "ServiceAccount"]


def test_the_admission_policies_are_about_the_service_account_that_was_named():
    found = [
        condition["expression"]
        for one in chart({"serviceAccount": {"name": "mine"}}, namespace="ops")
        if one["kind"] == "ValidatingAdmissionPolicy"
        for condition in one["spec"]["matchConditions"]
    ]
    assert set(found) == {"request.userInfo.username == 'system:serviceaccount:ops:mine'"}
    assert len(found) == 3


def test_pods_are_deleted_only_where_that_was_asked_for():
    binding = ("ClusterRoleBinding", "taintwarden-delete")
    assert binding not in names()
    assert names(rbac={"allowDelete": True}) == names() | {binding}


def test_critical_pods_get_a_quota_only_where_that_was_asked_for():
    quota = ("ResourceQuota", "critical-pods")
    assert quota not in names()
    assert names(resourceQuota={"enabled": True}) == names() | {quota}
    assert quota not in names(resourceQuota={"enabled": True}, priorityClassName="high")


def test_no_quota_counts_the_critical_pods_of_kube_system():
    with pytest.raises(RenderingError, match="would count every critical pod"):
        chart({"resourceQuota": {"enabled": True}}, namespace="kube-system")
    assert not [one for one in chart(namespace="kube-system") if one["kind"] == "ResourceQuota"]


def test_definitions_are_never_removed_by_helm():
    kept = [one["metadata"].get("annotations", {}).get("helm.sh/resource-policy") for one in chart()]
    assert kept.count("keep") == 2


# -- webhooks ---------------------------------------------------------------------------------------------------------


def rules(**values: Any) -> list[Json]:
    """Those of the webhook."""
    objects = by_key(chart(values))
    return [
        *objects["ClusterRole", "taintwarden-webhook"]["rules"],
        *objects["Role", "taintwarden-webhook"]["rules"],
    ]


def test_without_webhooks_nothing_of_them_is_left():
    assert not [name for name in names(webhooks={"enabled": False}) if "webhook" in str(name).lower()]
    assert [port["name"] for port in container()["ports"]] == ["http"]


def test_with_cert_manager_no_certificate_can_be_written():
    left = rules(webhooks={"certificates": "cert-manager"})
    assert not [rule for rule in left if "admissionregistration.k8s.io" in rule["apiGroups"]]
    assert [rule["verbs"] for rule in left if "secrets" in rule["resources"]] == [["get"]]
    assert [rule["verbs"] for rule in rules() if "secrets" in rule["resources"]] == [["get", "patch"]]


def webhook_container(**values: Any) -> Json:
    [only] = by_key(chart(values))["Deployment", "taintwarden-webhook"]["spec"]["template"]["spec"]["containers"]
    return only


def test_callers_are_checked_with_the_certificates_that_were_named():
    callers = {"configMap": "api-servers", "names": ["kube-apiserver", "other"]}
    made = webhook_container(webhooks={"callers": callers})
    given = {one["name"]: one.get("value", "") for one in made["env"]}
    settings = load_webhook_settings(given)
    assert settings.webhook_client_ca == f"{made['volumeMounts'][0]['mountPath']}/ca.crt"
    assert settings.webhook_client_names == "kube-apiserver,other"
    assert load_webhook_settings({one["name"]: one.get("value", "") for one in webhook_container()["env"]}) == (
        load_webhook_settings({"POD_NAMESPACE": ""})
    )


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
def test_the_webhook_makes_certificates_only_if_nobody_else_does(certificates, read):
    given = {
        one["name"]: one.get("value", "") for one in webhook_container(webhooks={"certificates": certificates})["env"]
    }
    settings = load_webhook_settings(given)
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


def webhooks(**values: Any) -> dict[str, Json]:
    """What the API server is told of each."""
    documents = chart({f"webhooks.{name}": value for name, value in values.items()})
    return {hook["name"]: hook for one in documents for hook in one.get("webhooks", ())}


def test_a_time_out_is_that_of_every_webhook():
    assert {hook["timeoutSeconds"] for hook in webhooks(timeoutSeconds=5).values()} == {5}
    assert {hook["timeoutSeconds"] for hook in webhooks(timeoutSeconds=None).values()} == {2}


MORE = {
    "matchLabels": {"env": "prod"},
    "matchExpressions": [{"key": "env", "operator": "Exists"}],
}


def narrowed(ours: Json) -> Json:
    labels, expressions = ours.get("matchLabels", {}), ours.get("matchExpressions", [])
    return {
        "matchLabels": {**labels, **MORE["matchLabels"]},
        "matchExpressions": [*expressions, *MORE["matchExpressions"]],
    }


def test_conditions_on_namespaces_come_beside_ours_in_every_webhook():
    before = webhooks()
    for name, hook in webhooks(namespaceSelector=MORE).items():
        assert hook == before[name] | {"namespaceSelector": narrowed(before[name]["namespaceSelector"])}


def test_conditions_on_objects_are_not_for_our_own_kinds():
    before = webhooks()
    for name, hook in webhooks(objectSelector=MORE).items():
        if name == "objects.validate.taintwarden.io":
            assert hook == before[name]
        else:
            assert hook == before[name] | {"objectSelector": narrowed(before[name].get("objectSelector", {}))}


def test_no_condition_of_a_user_replaces_one_of_ours():
    hook = webhooks(namespaceSelector={"matchLabels": {"taintwarden.io/inject": "maybe"}})["pods.mutate.taintwarden.io"]
    assert hook["namespaceSelector"]["matchLabels"] == {"taintwarden.io/inject": "true"}


# -- monitoring and network -------------------------------------------------------------------------------------------


PROCESSES = ["taintwarden", "taintwarden-webhook"]


def test_the_service_monitor_selects_the_services_and_each_its_pods():
    objects = by_key(chart({"serviceMonitor": {"enabled": True}}))
    monitor = objects["ServiceMonitor", "taintwarden-metrics"]["spec"]
    for process in PROCESSES:
        service = objects["Service", f"{process}-metrics"]
        assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
        assert monitor["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"]
        template = objects["Deployment", process]["spec"]["template"]
        assert service["spec"]["selector"] == template["metadata"]["labels"]
        [container] = template["spec"]["containers"]
        assert service["spec"]["ports"][0]["targetPort"] in {port["name"] for port in container["ports"]}


def test_the_service_of_the_webhooks_is_not_scraped():
    objects = by_key(chart({"serviceMonitor": {"enabled": True}}))
    wanted = objects["ServiceMonitor", "taintwarden-metrics"]["spec"]["selector"]["matchLabels"]
    assert not wanted.items() <= objects["Service", "taintwarden-webhook"]["metadata"]["labels"].items()


def test_the_pod_monitor_selects_the_pods_and_needs_no_service():
    objects = by_key(chart({"podMonitor": {"enabled": True}}))
    assert objects.keys() - by_key(chart()).keys() == {("PodMonitor", "taintwarden-metrics")}
    [wanted] = objects["PodMonitor", "taintwarden-metrics"]["spec"]["selector"]["matchExpressions"]
    labels = [objects["Deployment", name]["spec"]["template"]["metadata"]["labels"] for name in PROCESSES]
    assert wanted["operator"] == "In"
    assert wanted["values"] == [one[wanted["key"]] for one in labels]


def test_without_the_webhook_the_operator_is_scraped_alone():
    for values in ({"serviceMonitor.enabled": True}, {"podMonitor.enabled": True}):
        assert not [name for name in by_key(chart({**values, "webhooks.enabled": False})) if "webhook" in str(name)]


MONITORS = {"serviceMonitor": ("ServiceMonitor", "endpoints"), "podMonitor": ("PodMonitor", "podMetricsEndpoints")}


@pytest.mark.parametrize(("value", "kind", "endpoints"), [(name, *facts) for name, facts in MONITORS.items()])
def test_a_monitor_has_what_was_said_of_it(value, kind, endpoints):
    said = {
        "enabled": True,
        "interval": "1m",
        "scrapeTimeout": None,
        "labels": {"release": "prometheus"},
        "annotations": {"note": "a"},
        "endpoint": {"honorLabels": True, "port": "other"},
        "spec": {"sampleLimit": 10_000},
    }
    monitor = by_key(chart({value: said}))[kind, "taintwarden-metrics"]
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["metadata"]["annotations"] == {"note": "a"}
    assert monitor["spec"][endpoints] == [{"port": "http", "interval": "1m", "honorLabels": True}]
    assert monitor["spec"]["sampleLimit"] == 10_000


def test_nothing_is_scraped_twice():
    with pytest.raises(RenderingError, match="scraped twice"):
        chart({"serviceMonitor.enabled": True, "podMonitor.enabled": True})


@pytest.mark.parametrize(("name", "let_in"), [("taintwarden", ["http"]), ("taintwarden-webhook", ["http", "webhook"])])
def test_a_network_policy_lets_in_what_the_container_serves(name, let_in):
    objects = by_key(chart({"networkPolicy": {"enabled": True}}))
    policy, template = objects["NetworkPolicy", name]["spec"], objects["Deployment", name]["spec"]["template"]
    assert [rule["ports"][0]["port"] for rule in policy["ingress"]] == let_in
    assert {port["name"] for port in template["spec"]["containers"][0]["ports"]} == set(let_in)
    assert [port["port"] for port in policy["egress"][0]["ports"]] == [443, 6443]
    assert policy["podSelector"]["matchLabels"] == template["metadata"]["labels"]


def test_who_may_scrape_and_who_may_ask_can_be_narrowed():
    prometheus = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
    servers = [{"ipBlock": {"cidr": "192.0.2.0/28"}}]
    given = {"enabled": True, "metricsFrom": prometheus, "webhookFrom": servers}
    objects = by_key(chart({"networkPolicy": given}))
    http, webhook = objects["NetworkPolicy", "taintwarden-webhook"]["spec"]["ingress"]
    assert (http["from"], webhook["from"]) == (prometheus, servers)
    [only] = objects["NetworkPolicy", "taintwarden"]["spec"]["ingress"]
    assert only["from"] == prometheus


def test_everything_at_once_names_each_object_once():
    assert len(chart(ALL)) == len(names(**ALL)) > len(names())
    assert [key(one) for one in chart(ALL) if not SELECTOR.items() <= one["metadata"]["labels"].items()] == []
    assert pod(**ALL)

"""The parts of the chart that can be switched on and off: what belongs together comes and goes together."""

from typing import Any

import pytest

from deploy.rendering import BASE, OVERLAYS, Json, RenderingError, by_key, chart, key, kustomize, load
from deploy.test_chart_values import container, pod
from taintwarden.settings import load as settings_of
from taintwarden_placement.settings import WebhookSettings

SELECTOR = {"app.kubernetes.io/name": "taintwarden"}


def names(**values: Any) -> set[tuple[str, str]]:
    return set(by_key(chart(values)))


ALL = {
    "webhooks": {"enabled": True},
    "metrics": {"protected": True, "certificateSecret": "metrics"},
    "serviceMonitor": {"enabled": True},
    "prometheusRule": {"enabled": True},
    "dashboard": {"enabled": True},
    "networkPolicy": {"enabled": True},
}


@pytest.mark.parametrize(
    ("values", "gone"),
    [
        ({"crds": {"install": False}}, {"CustomResourceDefinition"}),
        ({"serviceAccount": {"create": False}}, {"ServiceAccount", "Job"}),
        ({"rbac": {"create": False}}, {"Role", "RoleBinding", "Job"}),
        (
            {"admissionPolicy": {"enabled": False}},
            {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"},
        ),
        ({"podDisruptionBudget": {"enabled": False}}, {"PodDisruptionBudget"}),
        (
            {"webhooks": {"enabled": False}},
            {"Service", "Secret", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "Job"},
        ),
    ],
)
def test_a_disabled_part_removes_its_objects_and_no_others(values, gone):
    left = {kind for kind, _ in names(**values)}
    assert left == {kind for kind, _ in names()} - gone


def test_without_rights_for_the_operator_the_roles_of_people_remain():
    assert {name for kind, name in names(rbac={"create": False}) if kind.startswith("ClusterRole")} == {
        "taintwarden-limited",  # gives nothing: the admission policies find the account by it
        "taintwarden-view",
    }


def test_the_rights_go_to_the_service_account_that_was_named():
    named: Json = {"serviceAccount": {"create": False, "name": "mine"}, "webhooks": {"serviceAccountName": "other"}}
    objects = by_key(chart(named | {"rbac": {"allowDelete": True, "devices": True}, "drainedCondition": True}))
    bound = {
        name: subject["name"]
        for (kind, name), one in objects.items()
        if kind in ("RoleBinding", "ClusterRoleBinding")
        for subject in one["subjects"]
    }
    parts = ("", "-delete", "-devices", "-drained-condition", "-limited")
    mine = [f"taintwarden{part}" for part in parts]
    assert bound == dict.fromkeys(mine, "mine") | {"taintwarden-webhook": "other"}
    for name, account in (("taintwarden", "mine"), ("taintwarden-webhook", "other")):
        assert objects["Deployment", name]["spec"]["template"]["spec"]["serviceAccountName"] == account
    assert not [name for kind, name in objects if kind == "ServiceAccount"]


def test_the_admission_policies_are_about_the_service_account_that_was_named():
    objects = by_key(chart({"serviceAccount": {"name": "mine"}, "rbac": {"create": False}}, namespace="ops"))
    limited = {"kind": "ServiceAccount", "name": "mine", "namespace": "ops"}
    assert objects["ClusterRoleBinding", "taintwarden-limited"]["subjects"] == [limited]


@pytest.mark.parametrize(
    ("values", "added"),
    [
        ({"rbac": {"allowDelete": True}}, ("ClusterRoleBinding", "taintwarden-delete")),
        ({"rbac": {"devices": True}}, ("ClusterRoleBinding", "taintwarden-devices")),
        ({"drainedCondition": True}, ("ClusterRoleBinding", "taintwarden-drained-condition")),
        ({"resourceQuota": {"enabled": True}}, ("ResourceQuota", "critical-pods")),
        ({"podMonitor": {"enabled": True}}, ("PodMonitor", "taintwarden-metrics")),
    ],
)
def test_an_enabled_part_adds_its_objects_and_no_others(values, added):
    assert added not in names()
    assert names(**values) == names() | {added}


def test_other_pods_than_critical_ones_need_no_quota():
    assert ("ResourceQuota", "critical-pods") not in names(resourceQuota={"enabled": True}, priorityClassName="high")


def test_no_quota_counts_the_critical_pods_of_kube_system():
    with pytest.raises(RenderingError, match="would count every critical pod"):
        chart({"resourceQuota": {"enabled": True}}, namespace="kube-system")
    assert not [one for one in chart(namespace="kube-system") if one["kind"] == "ResourceQuota"]


def test_definitions_are_never_removed_by_helm():
    kept = [one["kind"] for one in chart() if "helm.sh/resource-policy" in one["metadata"].get("annotations", {})]
    assert kept == ["CustomResourceDefinition"] * 3


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
    assert [rule["verbs"] for rule in left if "admissionregistration.k8s.io" in rule["apiGroups"]] == [["list"]]
    assert [rule["verbs"] for rule in left if "secrets" in rule["resources"]] == [["get"]]
    assert [rule["verbs"] for rule in rules() if "secrets" in rule["resources"]] == [["get", "patch"]]


TRUST = {"taintwarden-webhook-trust"}


@pytest.mark.parametrize(
    "values",
    [
        {"webhooks": {"trustJob": False}},
        {"webhooks": {"certificates": "cert-manager"}},
        {"serviceAccount": {"create": False}},
        {"rbac": {"create": False}},
        {"webhooks": {"enabled": False}},
    ],
)
def test_without_the_job_no_account_may_change_webhook_configurations(values):
    assert {name for _, name in names()} >= TRUST
    assert not TRUST & {name for _, name in names(**values)}
    given = [rule for one in chart(values) for rule in one.get("rules", ())]
    rights = [rule for rule in given if "admissionregistration.k8s.io" in rule["apiGroups"]]
    assert {verb for rule in rights for verb in rule["verbs"]} <= {"list"}


def test_the_account_of_the_job_goes_with_it():
    """Hooks are removed when they have succeeded, and the account's rights with them."""
    found = [one for one in chart() if one["metadata"]["name"] in TRUST]
    assert {one["kind"] for one in found} >= {"Job", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role"}
    for one in found:
        annotations = one["metadata"]["annotations"]
        assert annotations["helm.sh/hook"] == "post-install,post-upgrade,post-rollback"
        assert "hook-succeeded" in annotations["helm.sh/hook-delete-policy"]


def trust_pod(**values: Any) -> Json:
    found: Json = by_key(chart(values))["Job", "taintwarden-webhook-trust"]["spec"]["template"]
    return found


def test_the_job_has_the_image_of_the_operator():
    values = {"image": {"repository": "r.example.com/t", "tag": "7", "pullPolicy": "Always"}}
    pod = trust_pod(**values, imagePullSecrets=[{"name": "s"}])["spec"]
    [container] = pod["containers"]
    assert (container["image"], container["imagePullPolicy"]) == ("r.example.com/t:7", "Always")
    assert pod["imagePullSecrets"] == [{"name": "s"}]


OF_PODS: Json = {
    "nodeSelector": {"pool": "infra"},
    "tolerations": [{"key": "dedicated", "value": "infra", "effect": "NoSchedule"}],
    "dnsConfig": {"options": [{"name": "ndots", "value": "1"}]},
}
OF_CONTAINERS: Json = {
    "env": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
    "envFrom": [{"configMapRef": {"name": "proxy"}}],
}
MARKS: Json = {"podLabels": {"team": "ops"}, "podAnnotations": {"sidecar.istio.io/inject": "false"}}


@pytest.mark.parametrize("values", [OF_PODS | OF_CONTAINERS | MARKS, {"webhooks": OF_PODS | OF_CONTAINERS | MARKS}])
def test_the_job_runs_where_and_as_the_webhook_runs(values):
    """The installation waits for it, so what lets the webhook's pods run has to let it run."""
    template = trust_pod(**values)
    pod = template["spec"]
    [container] = pod["containers"]
    assert {name: pod.get(name) for name in OF_PODS} == OF_PODS
    [variable], sources = OF_CONTAINERS["env"], OF_CONTAINERS["envFrom"]
    assert variable in container["env"]
    assert {"name": "TAINTWARDEN_WEBHOOK_SERVICE", "value": "taintwarden-webhook"} in container["env"]
    assert container["envFrom"] == sources
    metadata = template["metadata"]
    assert metadata["labels"] == MARKS["podLabels"] | {"app.kubernetes.io/name": "taintwarden-webhook-trust"}
    assert metadata["annotations"].items() >= MARKS["podAnnotations"].items()


def test_the_job_runs_on_the_nodes_that_the_webhook_has_to_be_on():
    """By node affinity alone: it need not keep away from the webhook's pods."""
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}}
    assert trust_pod(webhooks={"affinity": affinity})["spec"]["affinity"] == affinity


def test_the_job_has_each_limit_that_the_webhook_has():
    """A ResourceQuota for `limits.cpu` admits no pod without one."""
    limits = {"cpu": "1", "ephemeral-storage": "1Gi", "memory": "2Gi"}
    [container] = trust_pod(webhooks={"resources": {"limits": limits}})["spec"]["containers"]
    assert container["resources"]["limits"] == limits | {"memory": "128Mi"}


def test_the_job_tolerates_what_the_webhook_tolerates():
    webhook = by_key(chart())["Deployment", "taintwarden-webhook"]["spec"]["template"]["spec"]
    assert trust_pod()["spec"]["tolerations"] == webhook["tolerations"]
    assert "tolerations" not in trust_pod(tolerations=[])["spec"]


def webhook_container(**values: Any) -> Json:
    [only] = by_key(chart(values))["Deployment", "taintwarden-webhook"]["spec"]["template"]["spec"]["containers"]
    return only


def test_callers_are_checked_with_the_certificates_that_were_named():
    callers = {"configMap": "api-servers", "names": ["kube-apiserver", "other"]}
    made = webhook_container(webhooks={"callers": callers})
    given = {one["name"]: one.get("value", "") for one in made["env"]}
    settings = settings_of(WebhookSettings, given)
    assert settings.webhook_client_ca == f"{made['volumeMounts'][0]['mountPath']}/ca.crt"
    assert settings.webhook_client_names == "kube-apiserver,other"
    assert settings_of(WebhookSettings, {one["name"]: one.get("value", "") for one in webhook_container()["env"]}) == (
        settings_of(WebhookSettings, {"POD_NAMESPACE": ""})
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
def test_the_webhook_makes_certificates_only_without_another_issuer(certificates, read):
    given = {
        one["name"]: one.get("value", "") for one in webhook_container(webhooks={"certificates": certificates})["env"]
    }
    settings = settings_of(WebhookSettings, given)
    assert settings.webhook_certificates == read
    assert settings.webhook_service == "taintwarden-webhook"


def test_an_issuer_of_the_users_is_used():
    issuer = {"name": "corporate", "kind": "ClusterIssuer"}
    objects = by_key(chart({"webhooks": {"certificates": "cert-manager", "issuerRef": issuer}}))
    assert objects["Certificate", "taintwarden-webhook"]["spec"]["issuerRef"] == issuer
    assert ("Issuer", "taintwarden-webhook") not in objects


def webhooks(**values: Any) -> dict[str, Json]:
    """The configuration of each webhook by its name."""
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


def test_a_namespace_selector_is_added_to_that_of_every_webhook():
    before = webhooks()
    for name, hook in webhooks(namespaceSelector=MORE).items():
        assert hook == before[name] | {"namespaceSelector": narrowed(before[name]["namespaceSelector"])}


def test_an_object_selector_is_for_pods_only():
    before = webhooks()
    for name, hook in webhooks(objectSelector=MORE).items():
        if name == "objects.validate.taintwarden.io":
            assert hook == before[name]
        else:
            assert hook == before[name] | {"objectSelector": narrowed(before[name].get("objectSelector", {}))}


def test_a_selector_of_a_user_does_not_replace_the_shipped_one():
    hook = webhooks(namespaceSelector={"matchLabels": {"taintwarden.io/inject": "maybe"}})["pods.mutate.taintwarden.io"]
    assert hook["namespaceSelector"]["matchLabels"] == {"taintwarden.io/inject": "true"}


@pytest.mark.parametrize("placement", ["labels", "extender"])
def test_what_keeps_pods_off_nodes_may_be_chosen(placement):
    [only] = by_key(chart({"webhooks.placement": placement}))["Deployment", "taintwarden-webhook"]["spec"]["template"][
        "spec"
    ]["containers"]
    given = {one["name"]: one["value"] for one in only["env"] if "value" in one}
    assert settings_of(WebhookSettings, given).placement == placement


# -- monitoring and network -------------------------------------------------------------------------------------------


PROCESSES = ["taintwarden", "taintwarden-webhook"]


def served(objects: dict[tuple[str, str], Json], name: str) -> dict[str, int]:
    [only] = objects["Deployment", name]["spec"]["template"]["spec"]["containers"]
    return {port["name"]: port["containerPort"] for port in only["ports"]}


@pytest.mark.parametrize("protected", [False, True])
@pytest.mark.parametrize("name", PROCESSES)
def test_both_processes_are_scraped_where_they_serve_metrics(name, protected):
    objects = by_key(chart({"serviceMonitor": {"enabled": True}, "metrics": {"protected": protected}}))
    service = objects["Service", f"{name}-metrics"]
    monitor = objects["ServiceMonitor", "taintwarden-metrics"]["spec"]
    [endpoint], [port] = monitor["endpoints"], service["spec"]["ports"]
    template = objects["Deployment", name]["spec"]["template"]
    [only] = template["spec"]["containers"]
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    assert endpoint["port"] == port["name"]
    assert served(objects, name)[port["targetPort"]] == port["port"]
    settings = settings_of(WebhookSettings, {one["name"]: one.get("value", "") for one in only["env"]})
    assert port["port"] == (settings.metrics_port if protected else settings.http_port)
    assert endpoint.get("scheme", "http") == ("https" if protected else "http")
    assert ("bearerTokenFile" in endpoint) is protected


@pytest.mark.parametrize("name", PROCESSES)
def test_a_certificate_of_the_users_is_served_and_checked(name):
    given = {"protected": True, "certificateSecret": "mine"}
    objects = by_key(chart({"serviceMonitor": {"enabled": True}, "metrics": given}, namespace="ops"))
    spec = objects["Deployment", name]["spec"]["template"]["spec"]
    [only], [volume] = spec["containers"], spec["volumes"]
    settings = settings_of(WebhookSettings, {one["name"]: one.get("value", "") for one in only["env"]})
    assert volume["secret"] == {"secretName": "mine"}
    assert [(one["name"], one["mountPath"]) for one in only["volumeMounts"]] == [
        (volume["name"], settings.metrics_certificate)
    ]
    [endpoint] = objects["ServiceMonitor", "taintwarden-metrics"]["spec"]["endpoints"]
    assert endpoint["tlsConfig"] == {
        "ca": {"secret": {"name": "mine", "key": "ca.crt"}},
        "serverName": "taintwarden-metrics.ops.svc",
    }


def test_tokens_are_reviewed_only_where_metrics_are_protected():
    role, binding = ("ClusterRole", "taintwarden-metrics-access"), ("ClusterRoleBinding", "taintwarden-metrics-access")
    reader = ("ClusterRole", "taintwarden-metrics-reader")
    assert names(metrics={"protected": True}) == names() | {role, binding, reader}
    given = {"metrics": {"protected": True}, "serviceAccount": {"name": "mine"}}
    bound = [one["name"] for one in by_key(chart(given))[binding]["subjects"]]
    assert bound == ["mine", "taintwarden-webhook"]
    assert len(by_key(chart(given | {"webhooks": {"enabled": False}}))[binding]["subjects"]) == 1


EXTENDERS = "taintwarden-scheduler-extender-metrics-access"


def test_protected_metrics_have_the_rights_of_the_component():
    shipped = by_key(load((OVERLAYS[0].parents[1] / "components/protected-metrics/metrics-access.yaml").read_text()))
    of_extender = by_key(
        load((OVERLAYS[0].parents[1] / "components/scheduler-extender/metrics-access.yaml").read_text())
    )
    rendered = by_key(chart({"metrics": {"protected": True}, "schedulerExtender": {"enabled": True}}))
    for name in ("taintwarden-metrics-access", "taintwarden-metrics-reader"):
        assert rendered["ClusterRole", name]["rules"] == shipped["ClusterRole", name]["rules"]
    binding = ("ClusterRoleBinding", "taintwarden-metrics-access")
    assert (rendered[binding]["roleRef"], rendered[binding]["subjects"]) == (
        shipped[binding]["roleRef"],
        [*shipped[binding]["subjects"], *of_extender["ClusterRoleBinding", EXTENDERS]["subjects"]],
    )


def test_the_service_of_the_webhooks_is_not_scraped():
    objects = by_key(chart({"serviceMonitor": {"enabled": True}}))
    wanted = objects["ServiceMonitor", "taintwarden-metrics"]["spec"]["selector"]["matchLabels"]
    assert not wanted.items() <= objects["Service", "taintwarden-webhook"]["metadata"]["labels"].items()


def test_the_pod_monitor_selects_the_pods():
    objects = by_key(chart({"podMonitor": {"enabled": True}}))
    [wanted] = objects["PodMonitor", "taintwarden-metrics"]["spec"]["selector"]["matchExpressions"]
    labels = [objects["Deployment", name]["spec"]["template"]["metadata"]["labels"] for name in PROCESSES]
    assert wanted["operator"] == "In"
    assert wanted["values"] == [one[wanted["key"]] for one in labels]


def test_without_the_webhook_the_operator_is_scraped_alone():
    for values in ({"serviceMonitor.enabled": True}, {"podMonitor.enabled": True}):
        assert not [name for name in by_key(chart({**values, "webhooks.enabled": False})) if "webhook" in str(name)]


MONITORS = {"serviceMonitor": ("ServiceMonitor", "endpoints"), "podMonitor": ("PodMonitor", "podMetricsEndpoints")}


@pytest.mark.parametrize(("value", "kind", "endpoints"), [(name, *facts) for name, facts in MONITORS.items()])
def test_a_monitor_has_the_fields_of_its_values(value, kind, endpoints):
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


PROTECTED = {"metrics.protected": True}
AUTHORIZATION = {"credentials": {"name": "token", "key": "token"}}


def test_the_pod_monitor_scrapes_the_port_of_protected_metrics():
    said = {"enabled": True, "endpoint": {"authorization": AUTHORIZATION}}
    objects = by_key(chart({**PROTECTED, "metrics.certificateSecret": "mine", "podMonitor": said}, namespace="ops"))
    [endpoint] = objects["PodMonitor", "taintwarden-metrics"]["spec"]["podMetricsEndpoints"]
    assert all(endpoint["port"] in served(objects, name) for name in PROCESSES)
    assert (endpoint["port"], endpoint["scheme"]) == ("metrics", "https")
    assert endpoint["tlsConfig"]["serverName"] == "taintwarden-metrics.ops.svc"
    assert endpoint["authorization"] == AUTHORIZATION
    assert "bearerTokenFile" not in endpoint  # a field of ServiceMonitors alone


def test_a_pod_monitor_of_protected_metrics_needs_a_token():
    with pytest.raises(RenderingError, match=r"podMonitor\.endpoint\.authorization is needed"):
        chart({**PROTECTED, "podMonitor": {"enabled": True}})


@pytest.mark.parametrize(
    "said",
    [
        {"tlsConfig": {"caFile": "/etc/ca.crt"}},
        {"bearerTokenFile": "/token"},
        {"authorization": AUTHORIZATION},
        {"oauth2": {"tokenUrl": "https://issuer"}},
    ],
    ids=lambda said: next(iter(said)),
)
def test_values_of_the_endpoint_replace_those_for_protected_metrics(said):
    objects = by_key(chart({**PROTECTED, "serviceMonitor": {"enabled": True, "endpoint": said}}))
    [endpoint] = objects["ServiceMonitor", "taintwarden-metrics"]["spec"]["endpoints"]
    [(field, value)] = said.items()
    assert endpoint[field] == value
    assert ("bearerTokenFile" in endpoint) is (field in {"tlsConfig", "bearerTokenFile"})


def test_no_certificate_is_mounted_where_metrics_are_not_protected():
    assert by_key(chart({"metrics.certificateSecret": "mine"})) == by_key(chart())


def test_nothing_is_scraped_twice():
    with pytest.raises(RenderingError, match="scraped twice"):
        chart({"serviceMonitor.enabled": True, "podMonitor.enabled": True})


@pytest.mark.parametrize(("protected", "metrics"), [(False, "http"), (True, "metrics")])
@pytest.mark.parametrize(
    ("name", "more"), [("taintwarden", []), ("taintwarden-webhook", ["webhook"]), ("taintwarden-publisher", [])]
)
def test_a_network_policy_lets_in_what_the_container_serves(name, more, protected, metrics):
    let_in = [metrics, *more]
    given = {"networkPolicy.enabled": True, "publisher.enabled": True, "metrics.protected": protected}
    objects = by_key(chart(given))
    policy, template = objects["NetworkPolicy", name]["spec"], objects["Deployment", name]["spec"]["template"]
    assert [rule["ports"][0]["port"] for rule in policy["ingress"]] == let_in
    assert served(objects, name).keys() == {"http", *let_in}  # probes come from the pod's own node
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


def test_where_the_api_server_is_can_be_narrowed_for_all_processes():
    """Else the author of a TaintPublisher can have credentials sent to port 443 of any address."""
    servers = [{"ipBlock": {"cidr": "192.0.2.0/28"}}]
    processes = {"publisher.enabled": True, "schedulerExtender.enabled": True}
    objects = chart(ALL | processes | {"networkPolicy.apiServerAt": servers})
    policies = [one for one in objects if one["kind"] == "NetworkPolicy"]
    assert len(policies) == 5
    for policy in policies:
        to_api_servers = policy["spec"]["egress"][0]
        assert ([one["port"] for one in to_api_servers["ports"]], to_api_servers["to"]) == ([443, 6443], servers)


def test_what_the_publisher_may_ask_is_that_of_the_overlay_and_can_be_narrowed():
    monitoring = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
    given = {"networkPolicy.enabled": True, "publisher.enabled": True, "networkPolicy.metricsFrom": monitoring}
    name, overlay = ("NetworkPolicy", "taintwarden-publisher"), BASE.parent / "overlays" / "production"
    assert by_key(chart(given))[name]["spec"] == by_key(kustomize(overlay))[name]["spec"]
    peers = [{"podSelector": {"matchLabels": {"app": "prometheus"}}}]
    narrow = {"networkPolicy.prometheusAt": peers, "networkPolicy.prometheusPorts": [8443]}
    last = by_key(chart(given | narrow))["NetworkPolicy", "taintwarden-publisher"]["spec"]["egress"][-1]
    assert (last["to"], [one["port"] for one in last["ports"]]) == (peers, [8443])


def test_without_the_publisher_there_is_no_policy_for_it():
    assert ("NetworkPolicy", "taintwarden-publisher") not in by_key(chart({"networkPolicy.enabled": True}))


def test_everything_at_once_names_each_object_once():
    assert len(chart(ALL)) == len(names(**ALL)) > len(names())
    assert [key(one) for one in chart(ALL) if not SELECTOR.items() <= one["metadata"]["labels"].items()] == []
    assert pod(**ALL)

"""Values that a user may set: each is in the schema and does what its name says, and no other is accepted."""

from typing import Any

import pytest

from deploy.chart_values import SCHEMA, VALUES, paths, schema
from deploy.rendering import CHART, Json, RenderingError, by_key, chart, load, run, tool
from taintwarden.settings import Settings, load_settings
from taintwarden.settings import load as settings_of
from taintwarden_placement.settings import WebhookSettings

OF_THE_PROCESS = {"kubeconfig", "context", "namespace", "identity", "http_host", "http_port"}
OF_VALUES = {"drained_condition", "dry_run", "metrics_port", "metrics_certificate"}
"""Said by values of their own."""


def deployment(**values: Any) -> Json:
    return by_key(chart(values))["Deployment", "taintwarden"]


def pod(**values: Any) -> Json:
    spec: Json = deployment(**values)["spec"]["template"]["spec"]
    return spec


def container(**values: Any) -> Json:
    [only] = pod(**values)["containers"]
    return only


def plain(container: Json) -> dict[str, str]:
    """Its variables but for those that Kubernetes fills in."""
    return {one["name"]: one["value"] for one in container["env"] if "value" in one}


def environment(**values: Any) -> dict[str, str]:
    return plain(container(**values))


def refused(**values: Any) -> str:
    with pytest.raises(RenderingError) as caught:
        chart(values)
    return str(caught.value)


def snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


# -- the schema -------------------------------------------------------------------------------------------------------


def test_every_value_is_in_the_schema_and_has_a_default():
    assert SCHEMA["properties"].keys() - {"global"} == VALUES.keys()  # helm passes `global` to every chart


def test_every_inner_value_is_in_the_schema_and_has_a_default():
    groups = [(value, inner) for _, value, inner in paths() if "properties" in inner and value]
    assert len(groups) > 10
    assert [value for value, inner in groups if value.keys() != inner["properties"].keys()] == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("replicaCount", 3),
        ("image", {"registry": "example.com"}),
        ("rbac", {"creat": False}),
        ("settings", {"maxEvictionPerSecond": 5}),
        ("settings", {"httpPort": 9090}),
        ("webhooks", {"enable": False}),
        ("serviceMonitor", {"enabled": True, "port": "http"}),
        ("crds", {"keep": False}),
    ],
)
def test_an_unknown_value_is_refused(name, value):
    unknown = name if name not in VALUES else list(value)[-1]
    assert f"'{unknown}' not allowed" in refused(**{name: value})


@pytest.mark.parametrize(
    ("values", "ports"),
    [
        ({"httpPort": 8443, "metrics": {"protected": True}}, "taintwarden: http 8443, metrics 8443"),
        ({"webhooks": {"httpPort": 9443}}, "taintwarden-webhook: http 9443, webhook 9443"),
        (
            {"schedulerExtender": {"enabled": True, "port": 8080}},
            "taintwarden-scheduler-extender: http 8080, webhook 8080",
        ),
    ],
)
def test_a_process_with_two_ports_that_are_one_is_refused(values, ports):
    """The process would exit at its start."""
    assert f"{ports}: the ports of a process have to differ" in refused(**values)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("replicas", "two"),
        ("replicas", -1),
        ("dryRun", "yes"),
        ("image", {"digest": "sha256:1"}),
        ("image", {"repository": ""}),
        ("settings", {"maxEvictionsPerSecond": -1}),
        ("settings", {"logLevel": "loud"}),
        ("webhooks", {"certificates": "theirs"}),
        ("podDisruptionBudget", {"maxUnavailable": "120%"}),
        ("networkPolicy", {"apiServerPorts": [0]}),
        ("serviceMonitor", {"interval": "often"}),
    ],
)
def test_a_wrong_value_is_refused(name, value):
    assert f"/{name}" in refused(**{name: value}).replace(".", "/")


@pytest.mark.parametrize(
    ("alone", "needs"),
    [
        ({"webhooks.callers.names": ["kube-apiserver"]}, {"webhooks.callers.configMap": "api-servers"}),
        ({"webhooks.issuerRef": {"name": "corporate"}}, {"webhooks.certificates": "cert-manager"}),
    ],
)
def test_a_protection_without_the_value_it_needs_is_refused(alone, needs):
    """The value would be ignored: every client would be answered, or the webhook would make the certificate."""
    [name], [(other, _)] = alone, needs.items()
    error = refused(**alone)
    assert name in error
    assert other in error
    assert chart(alone | needs)


# -- settings ---------------------------------------------------------------------------------------------------------


def test_the_settings_are_the_operators():
    offered = {snake(name) for name in schema(SCHEMA["properties"]["settings"])["properties"]}
    assert offered == set(Settings.__struct_fields__) - OF_THE_PROCESS - OF_VALUES


SET = {
    "maxEvictionsPerSecond": 12.5,
    "eventsPerSecond": 5,
    "numericOperators": False,
    "semverOperators": False,
    "logFormat": "json",
    "logLevel": "debug",
}


def test_the_operator_reads_what_was_set():
    read = load_settings(environment(settings=SET))
    assert {name: getattr(read, snake(name)) for name in SET} == SET


@pytest.mark.parametrize(("asked", "read"), [(True, True), (False, False)])
def test_a_dry_run_is_one_of_the_operator(asked, read):
    assert load_settings(environment(dryRun=asked)).dry_run is read


@pytest.mark.parametrize("asked", [True, False])
def test_the_condition_of_drained_nodes_is_one_of_the_operator(asked):
    assert load_settings(environment(drainedCondition=asked)).drained_condition is asked


@pytest.mark.parametrize("rate", [0, 0.5, 50, 100_000])
def test_a_rate_is_read_as_it_was_written(rate):
    assert load_settings(environment(settings={"maxEvictionsPerSecond": rate})).max_evictions_per_second == rate


# -- the pod ----------------------------------------------------------------------------------------------------------

DIGEST = f"sha256:{'0' * 64}"


@pytest.mark.parametrize(
    ("image", "named"),
    [
        ({"repository": "example.com/taintwarden"}, "example.com/taintwarden:0.1.0"),
        ({"repository": "example.com/taintwarden", "tag": "main"}, "example.com/taintwarden:main"),
        ({"tag": "main", "digest": DIGEST}, f"taintwarden@{DIGEST}"),
    ],
)
def test_the_image_is_the_one_that_was_named(image, named):
    assert container(image=image)["image"] == named


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("nodeSelector", {"pool": "system"}),
        ("tolerations", [{"operator": "Exists"}]),
        ("topologySpreadConstraints", []),
        ("priorityClassName", "high"),
        ("imagePullSecrets", [{"name": "registry"}]),
    ],
)
def test_a_value_of_the_pod_is_used_unchanged(name, value):
    assert pod(**{name: value}).get(name, []) == value


# -- values of both processes -----------------------------------------------------------------------------------------

OF_THE_POD = {
    "priorityClassName": "high",
    "nodeSelector": {"pool": "system"},
    "tolerations": [{"operator": "Exists"}],
    "dnsConfig": {"options": [{"name": "ndots", "value": "2"}]},
    "initContainers": [{"name": "wait", "image": "mine"}],
    "terminationGracePeriodSeconds": 0,
}
OF_THE_CONTAINER = {
    "envFrom": [{"configMapRef": {"name": "proxy"}}],
    "livenessProbe": {"tcpSocket": {"port": "http"}},
    "readinessProbe": {"tcpSocket": {"port": "http"}},
    "startupProbe": {"httpGet": {"path": "/livez", "port": "http"}},
    "lifecycle": {"preStop": {"sleep": {"seconds": 5}}},
}
OF_ONE_PROCESS = {
    "affinity": {"nodeAffinity": {}},
    "topologySpreadConstraints": [{"topologyKey": "rack", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}],
}
PROCESSES = {"taintwarden": "", "taintwarden-webhook": "webhooks."}
"""The Deployment, and the prefix of its values."""


def replaced(values: Json, prefix: str = "") -> Json:
    """Values of a user who replaces the defaults: `null` for every other key of a map."""
    defaults = VALUES[prefix.rstrip(".")] if prefix else VALUES
    return {
        prefix + name: {**dict.fromkeys(defaults[name] or {}), **value} if isinstance(value, dict) else value
        for name, value in values.items()
    }


def specs(values: Json) -> dict[str, Json]:
    """Specs of the Deployments by name."""
    return {name: one["spec"] for (kind, name), one in by_key(chart(values)).items() if kind == "Deployment"}


def test_values_of_the_pods_apply_to_both_processes():
    for spec in specs(replaced(OF_THE_POD | OF_THE_CONTAINER)).values():
        pod = spec["template"]["spec"]
        assert {name: pod[name] for name in OF_THE_POD} == OF_THE_POD
        assert {name: pod["containers"][0][name] for name in OF_THE_CONTAINER} == OF_THE_CONTAINER


@pytest.mark.parametrize(("deployment", "prefix"), PROCESSES.items())
def test_values_of_one_process_do_not_change_the_other(deployment, prefix):
    said = OF_ONE_PROCESS if not prefix else OF_ONE_PROCESS | OF_THE_POD | OF_THE_CONTAINER
    found, before = specs(replaced(said, prefix)), specs({})
    [other] = before.keys() - {deployment}
    assert found[other] == before[other]
    pod = found[deployment]["template"]["spec"]
    assert {name: (pod | pod["containers"][0])[name] for name in said} == said


@pytest.mark.parametrize("name", [name for name, value in VALUES["webhooks"].items() if value is None])
def test_a_null_value_of_the_webhook_is_that_of_the_operator_until_it_is_set(name):
    examples = {"array": [{"name": "mine"}], "object": {"mine": "1"}, "integer": 7, "string": "mine"}
    kind = schema(SCHEMA["properties"]["webhooks"]["properties"][name])["type"][0]
    default, both, one = (
        by_key(chart(values)) for values in ({}, {name: examples[kind]}, {f"webhooks.{name}": examples[kind]})
    )
    operator, webhook = (("Deployment", process) for process in PROCESSES)
    assert both[webhook] != default[webhook]
    assert one[webhook] != default[webhook]
    assert one[operator] == default[operator]


def test_more_flags_are_those_of_one_process():
    said = {
        "extraArgs": ["--dry-run"],
        "webhooks.extraArgs": ["--log-level", "debug"],
        "schedulerExtender.enabled": True,
    }
    found = {name: spec["template"]["spec"]["containers"][0]["args"] for name, spec in specs(said).items()}
    assert found == {
        "taintwarden": ["run", "--dry-run"],
        "taintwarden-webhook": ["webhook", "--log-level", "debug"],
        "taintwarden-scheduler-extender": ["scheduler-extender"],
    }


NAMED = {"schedulerExtender.enabled": True, "networkPolicy.enabled": True, "networkPolicy.apiServerPorts": [6443]}


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ({"fullnameOverride": "mine"}, "mine"),
        ({"nameOverride": "warden"}, "taintwarden-warden"),
        ({"nameOverride": "warden", "fullnameOverride": "mine"}, "mine"),
        ({"nameOverride": None, "fullnameOverride": ""}, "taintwarden"),
    ],
)
def test_names_of_what_runs_may_be_others_and_nothing_else_changes(said, name):
    before, after = by_key(chart(NAMED)), by_key(chart(NAMED | said))
    kinds = ("Deployment", "PodDisruptionBudget", "NetworkPolicy")
    called = {
        (kind, old): (kind, old.replace("taintwarden", name, 1) if kind in kinds else old) for kind, old in before
    }
    assert set(called.values()) == after.keys()
    for old, new in called.items():
        expected = {**before[old], "metadata": {**before[old]["metadata"], "name": new[1]}}
        assert after[new] == expected


def test_a_webhook_without_what_the_operator_has():
    """An empty value is one, and null is none."""
    found = specs({"webhooks.tolerations": [], "webhooks.affinity": None, "webhooks.resources": None})
    assert not found["taintwarden-webhook"]["template"]["spec"].keys() & {"tolerations", "affinity"}
    assert "resources" not in found["taintwarden-webhook"]["template"]["spec"]["containers"][0]
    assert found["taintwarden"] == specs({})["taintwarden"]


def test_volumes_are_added_to_the_shipped_ones():
    volume, mount = {"name": "ca", "configMap": {"name": "corporate"}}, {"name": "ca", "mountPath": "/ca"}
    found = specs({"volumes": [volume], "volumeMounts": [mount], "webhooks.callers.configMap": "api-servers"})
    for name, first in (("taintwarden", []), ("taintwarden-webhook", ["callers"])):
        pod = found[name]["template"]["spec"]
        assert [one["name"] for one in pod["volumes"]] == [*first, "ca"]
        assert pod["containers"][0]["volumeMounts"][-1] == mount


def test_labels_and_annotations_of_the_deployments():
    said = {"deploymentLabels": {"team": "a"}, "deploymentAnnotations": {"reloader": "true"}}
    for (kind, name), one in by_key(chart(said)).items():
        metadata = one["metadata"]
        assert ("team" in metadata["labels"], "reloader" in metadata.get("annotations", {})) == (
            (True, True) if kind == "Deployment" else (False, False)
        ), name
    assert "team" not in deployment(**said)["spec"]["template"]["metadata"]["labels"]


def test_no_label_of_a_user_replaces_the_one_that_selects():
    name = {"app.kubernetes.io/name": "other"}
    found = deployment(podLabels=name, deploymentLabels=name, commonLabels=name)
    assert found["metadata"]["labels"].items() >= found["spec"]["selector"]["matchLabels"].items()
    assert found["spec"]["template"]["metadata"]["labels"] == found["spec"]["selector"]["matchLabels"]


@pytest.mark.parametrize(("deployment", "prefix"), PROCESSES.items())
def test_on_the_network_of_the_host_names_of_services_are_still_found(deployment, prefix):
    def policy(**values: Any) -> Json:
        pod = specs({prefix + name: value for name, value in values.items()})[deployment]["template"]["spec"]
        return {name: pod.get(name) for name in ("hostNetwork", "dnsPolicy")}

    assert policy() == {"hostNetwork": None, "dnsPolicy": None}
    assert policy(hostNetwork=True) == {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    assert policy(hostNetwork=True, dnsPolicy="Default") == {"hostNetwork": True, "dnsPolicy": "Default"}


@pytest.mark.parametrize("prefix", PROCESSES.values())
def test_a_strategy_is_taken_as_it_is(prefix):
    recreate = {"type": "Recreate", "rollingUpdate": None}
    found = specs({f"{prefix}strategy": recreate})
    strategies = {name: spec["strategy"] for name, spec in found.items() if PROCESSES[name] == prefix}
    assert list(strategies.values()) == [{"type": "Recreate"}]


def test_ports_are_those_that_the_processes_listen_on():
    found = specs({"httpPort": 8081, "webhooks.httpPort": 8082, "webhooks.port": 9444})
    [operator], [webhook] = (found[name]["template"]["spec"]["containers"] for name in PROCESSES)
    assert load_settings(plain(operator)).http_port == operator["ports"][0]["containerPort"] == 8081
    read = settings_of(WebhookSettings, plain(webhook))
    assert [one["containerPort"] for one in webhook["ports"]] == [read.http_port, read.webhook_port] == [8082, 9444]


def test_resources_are_merged():
    assert container(resources={"requests": {"cpu": "1"}})["resources"] == {
        "requests": {"cpu": "1", "memory": "128Mi"},
        "limits": {"memory": "1Gi"},
    }


def test_labels_and_annotations_reach_every_object_and_never_the_selector():
    objects = chart({"commonLabels": {"team": "a"}, "commonAnnotations": {"note": "b"}})
    assert [one["kind"] for one in objects if one["metadata"]["labels"].get("team") != "a"] == []
    assert [one["kind"] for one in objects if one["metadata"].get("annotations", {}).get("note") != "b"] == []
    assert deployment(commonLabels={"team": "a"})["spec"]["selector"] == deployment()["spec"]["selector"]


def test_labels_and_annotations_of_the_pods_are_added_to_the_shipped_ones():
    metadata = deployment(podLabels={"team": "a"}, podAnnotations={"note": "b"})["spec"]["template"]["metadata"]
    assert metadata["labels"] == {"app.kubernetes.io/name": "taintwarden", "team": "a"}
    assert metadata["annotations"] == {"taintwarden.io/do-not-evict": "true", "note": "b"}


def test_without_the_built_in_controller_replicas_may_be_evicted_from_dead_nodes():
    template = deployment(podAnnotations={"taintwarden.io/do-not-evict": None})["spec"]["template"]
    assert "annotations" not in template["metadata"]


def test_openshift_may_choose_the_user():
    nobody = {"runAsUser": None, "runAsGroup": None}
    assert pod(podSecurityContext=nobody)["securityContext"].keys() == {"runAsNonRoot", "seccompProfile"}


# -- the tools' own opinion -------------------------------------------------------------------------------------------


def test_the_notes_show_a_policy_that_is_valid():
    said = run(tool("helm"), "install", "taintwarden", CHART, "--dry-run=client", "--namespace=ops")
    policy = said.partition("<<'POLICY'\n")[2].partition("  POLICY\n")[0]
    [document] = load(policy)
    assert document["spec"]["mode"] == "DryRun"
    assert "No image is published" in said

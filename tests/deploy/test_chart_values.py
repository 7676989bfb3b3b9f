"""What a user may set: each value is in the schema and does what its name says, and nothing else is taken."""

import json
from typing import Any

import pytest
import yaml

from deploy.rendering import CHART, Json, RenderingError, by_key, chart, load, run, tool
from taintwarden.settings import Settings, load_settings

VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
OF_THE_PROCESS = {"kubeconfig", "context", "namespace", "identity", "http_host", "http_port"}
OF_VALUES = {"dry_run", "metrics_port", "metrics_certificate"}
"""Said by values of their own."""


def deployment(**values: Any) -> Json:
    return by_key(chart(values))["Deployment", "taintwarden"]


def pod(**values: Any) -> Json:
    spec: Json = deployment(**values)["spec"]["template"]["spec"]
    return spec


def container(**values: Any) -> Json:
    [only] = pod(**values)["containers"]
    return only


def environment(**values: Any) -> dict[str, str]:
    return {one["name"]: one["value"] for one in container(**values)["env"] if "value" in one}


def refused(**values: Any) -> str:
    with pytest.raises(RenderingError) as caught:
        chart(values)
    return str(caught.value)


def snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


# -- the schema -------------------------------------------------------------------------------------------------------


def test_every_value_is_in_the_schema_and_has_a_default():
    assert SCHEMA["properties"].keys() - {"global"} == VALUES.keys()  # helm hands `global` down to every chart


@pytest.mark.parametrize("name", [name for name, value in VALUES.items() if isinstance(value, dict)])
def test_every_inner_value_is_in_the_schema(name):
    properties = SCHEMA["properties"][name].get("properties")
    if properties is not None:
        assert VALUES[name].keys() <= properties.keys()


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


# -- settings ---------------------------------------------------------------------------------------------------------


def test_the_settings_are_the_operators():
    offered = {snake(name) for name in SCHEMA["properties"]["settings"]["properties"]}
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


def test_nothing_is_set_that_was_not_asked_for():
    assert set(environment()) == set()


@pytest.mark.parametrize(("asked", "read"), [(True, True), (False, False)])
def test_a_dry_run_is_one_of_the_operator(asked, read):
    assert load_settings(environment(dryRun=asked)).dry_run is read


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
def test_what_is_said_of_the_pod_is_taken_as_it_is(name, value):
    assert pod(**{name: value}).get(name, []) == value


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


def test_labels_and_annotations_of_the_pods_come_beside_ours():
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


def test_helm_finds_nothing_to_complain_about():
    run(tool("helm"), "lint", "--strict", CHART)


def test_the_notes_show_a_policy_that_is_valid():
    said = run(tool("helm"), "install", "taintwarden", CHART, "--dry-run=client", "--namespace=ops")
    policy = said.partition("<<'POLICY'\n")[2].partition("  POLICY\n")[0]
    [document] = load(policy)
    assert document["spec"]["mode"] == "DryRun"
    assert "No image is published" in said

"""Each overlay is the base, but for what its comment says."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from deploy.rendering import BASE, OVERLAYS, Json, by_key, kustomize, load
from taintwarden.settings import load_settings

FOLDER = BASE.parent / "overlays"
EXTENDER = BASE.parent / "components" / "scheduler-extender"
PUBLISHER = BASE.parent / "components" / "publisher"
DEPLOYMENT = ("Deployment", "taintwarden")
WEBHOOK = ("Deployment", "taintwarden-webhook")


def rendered(name: str) -> dict[tuple[str, str], Json]:
    return by_key(kustomize(FOLDER / name))


def template(name: str) -> Json:
    found: Json = rendered(name)[DEPLOYMENT]["spec"]["template"]
    return found


def environment(name: str) -> dict[str, Any]:
    [only] = template(name)["spec"]["containers"]
    return {one["name"]: one.get("value") for one in only["env"]}


def test_these_are_shipped():
    assert [path.name for path in OVERLAYS] == ["dry-run", "production", "replacing-built-in"]


@pytest.mark.parametrize("folder", OVERLAYS, ids=lambda path: path.name)
def test_an_overlay_says_what_it_is_for(folder: Path):
    assert (folder / "kustomization.yaml").read_text().startswith("# For ")


@pytest.mark.parametrize("folder", OVERLAYS, ids=lambda path: path.name)
def test_an_overlay_changes_nothing_but_the_deployments(folder: Path):
    base, found = by_key(kustomize(BASE)), by_key(kustomize(folder))
    changed = {name for name in base if found.get(name) != base[name]}
    assert changed == {DEPLOYMENT} | ({WEBHOOK} if folder.name != "dry-run" else set())
    assert found.keys() - base.keys() <= {
        ("NetworkPolicy", "taintwarden"),
        ("NetworkPolicy", "taintwarden-webhook"),
        ("NetworkPolicy", "taintwarden-webhook-trust"),
        ("NetworkPolicy", "taintwarden-scheduler-extender"),
        ("NetworkPolicy", "taintwarden-publisher"),
        ("ClusterRole", "taintwarden-metrics-access"),
        ("ClusterRole", "taintwarden-metrics-reader"),
        ("ClusterRoleBinding", "taintwarden-metrics-access"),
        ("ClusterRoleBinding", "taintwarden-delete"),
    }


def test_a_dry_run_is_one_of_the_operator():
    read = load_settings({name: value for name, value in environment("dry-run").items() if value is not None})
    assert read.dry_run


def test_the_component_for_drained_nodes_has_flag_and_right(tmp_path: Path):
    component = BASE.parent / "components" / "drained-condition"
    mine = {"resources": [BASE], "components": [component]}
    relative = {name: [os.path.relpath(one, tmp_path) for one in paths] for name, paths in mine.items()}
    (tmp_path / "kustomization.yaml").write_text(json.dumps(relative))
    base, found = by_key(kustomize(BASE)), by_key(kustomize(tmp_path))
    assert found.keys() - base.keys() == {("ClusterRoleBinding", "taintwarden-drained-condition")}
    [only] = found[DEPLOYMENT]["spec"]["template"]["spec"]["containers"]
    assert {"name": "TAINTWARDEN_DRAINED_CONDITION", "value": "true"} in only["env"]


@pytest.mark.parametrize("name", ["production", "replacing-built-in"])
def test_nothing_of_the_environment_is_lost(name):
    added = {"TAINTWARDEN_LOG_FORMAT", "TAINTWARDEN_METRICS_PORT"}
    assert environment(name).keys() == {*environment("../base"), *added}


def test_in_production_no_two_replicas_share_a_node():
    rules = template("production")["spec"]["affinity"]["podAntiAffinity"]
    assert rules["requiredDuringSchedulingIgnoredDuringExecution"][0]["topologyKey"] == "kubernetes.io/hostname"
    assert not rules["preferredDuringSchedulingIgnoredDuringExecution"]
    strategy = rendered("production")[DEPLOYMENT]["spec"]["strategy"]["rollingUpdate"]
    assert strategy == {"maxUnavailable": 1, "maxSurge": 0}


def test_in_production_a_node_may_die_while_another_is_drained():
    assert rendered("production")[DEPLOYMENT]["spec"]["replicas"] == 3


def test_in_production_memory_is_set_aside():
    [only] = template("production")["spec"]["containers"]
    assert only["resources"]["requests"]["memory"] == only["resources"]["limits"]["memory"]


def pods(path: Path) -> list[Json]:
    """The templates of Deployments."""
    return [one["spec"]["template"] for one in load(path.read_text()) if one["kind"] == "Deployment"]


def test_every_port_that_a_network_policy_names_is_one_of_its_pods():
    objects = rendered("production")
    templates = [one["spec"]["template"] for (kind, _), one in objects.items() if kind == "Deployment"]
    templates += [*pods(EXTENDER / "deployment.yaml"), *pods(PUBLISHER / "deployment.yaml")]
    for policy in (one["spec"] for (kind, _), one in objects.items() if kind == "NetworkPolicy"):
        named = {port["port"] for rule in policy.get("ingress", ()) for port in rule["ports"]}
        wanted = policy["podSelector"]["matchLabels"].items()
        selected = [one["spec"]["containers"] for one in templates if wanted <= one["metadata"]["labels"].items()]
        assert len(selected) == bool(named)
        for containers in selected:
            assert named <= {port["name"] for one in containers for port in one["ports"]}


def test_in_production_only_schedulers_connect_to_the_extender():
    """Metrics are on the plain port there, which the policy leaves to the kubelet."""
    policy = rendered("production")["NetworkPolicy", "taintwarden-scheduler-extender"]["spec"]
    [template] = pods(EXTENDER / "deployment.yaml")
    assert {port["name"] for port in template["spec"]["containers"][0]["ports"]} == {"http", "webhook"}
    assert [one["port"] for rule in policy["ingress"] for one in rule["ports"]] == ["webhook"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]


def test_in_production_the_publisher_asks_outside_the_cluster_at_the_ports_of_names_and_the_api_server():
    """Which are no pods: docs/publisher.md says what that means for credentials."""
    policy = rendered("production")["NetworkPolicy", "taintwarden-publisher"]["spec"]
    anywhere = {one["port"] for rule in policy["egress"] if "to" not in rule for one in rule["ports"]}
    assert (anywhere, policy["policyTypes"]) == ({443, 6443, 53}, ["Ingress", "Egress"])
    assert [rule["to"] for rule in policy["egress"] if "to" in rule] == [[{"namespaceSelector": {}}]]
    [scrapes] = policy["ingress"]
    assert ([one["port"] for one in scrapes["ports"]], len(scrapes["from"])) == (["http"], 1)  # not protected there


@pytest.mark.parametrize("name", [DEPLOYMENT, WEBHOOK])
def test_in_production_metrics_are_for_those_who_may_get_them(name):
    [only] = rendered("production")[name]["spec"]["template"]["spec"]["containers"]
    given = {one["name"]: one["value"] for one in only["env"] if "value" in one}
    assert {"name": "metrics", "containerPort": load_settings(given).metrics_port} in only["ports"]


def test_instead_of_the_built_in_controller_replicas_on_dead_nodes_are_removed_too():
    assert not template("replacing-built-in")["metadata"].get("annotations")
    assert template("production")["metadata"]["annotations"]

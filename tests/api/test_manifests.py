"""The manifests in deploy/ are consistent. tests/e2e applies them to a server."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from taintwarden.api.policies import parse_policy
from taintwarden.api.profiles import parse_profile
from taintwarden.api.tolerations import parse_tolerations
from taintwarden.engine.model import Effect, Taint
from taintwarden.engine.policy import Exclude, Method, Reclaim
from taintwarden_placement.node_labels.names import Domain

ROOT = Path(__file__).parents[2]
BASE = ROOT / "deploy" / "base"
SAMPLES = {path.stem: path for path in sorted((ROOT / "deploy" / "samples").glob("*.yaml"))}
PROFILE = SAMPLES.pop("toleration-profile")
PUBLISHER = SAMPLES.pop("publisher")
"""Samples that tests/publisher reads."""
KUSTOMIZATION = yaml.safe_load((BASE / "kustomization.yaml").read_text())
FILES = [
    path for path in BASE.glob("*.yaml") if path.name not in ("kustomization.yaml", *KUSTOMIZATION["configurations"])
]
SHIPPED = [document for path in FILES for document in yaml.safe_load_all(path.read_text())]


def shipped(kind: str, name: str = "taintwarden") -> dict[str, Any]:
    (found,) = (one for one in SHIPPED if one["kind"] == kind and one["metadata"]["name"] == name)
    return found


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_is_a_valid_policy(name):
    policy = parse_policy(yaml.safe_load(SAMPLES[name].read_text()))
    assert policy.taints or policy.devices


def test_sample_of_a_profile_is_valid():
    profile = parse_profile(yaml.safe_load(PROFILE.read_text()))
    assert profile.selector.requirements
    assert {toleration.key for toleration in profile.tolerations} == {"sla"}


def test_samples_are_in_dry_run():
    assert {yaml.safe_load(path.read_text())["spec"].get("mode") for path in SAMPLES.values()} == {"DryRun"}


def test_shadow_mode_acts_on_no_schedule_only():
    policy = parse_policy(yaml.safe_load(SAMPLES["shadow-mode"].read_text()))
    assert [taint.effects for taint in policy.taints] == [(Effect.NO_SCHEDULE,)]


def test_the_sample_instead_of_the_built_in_controller_acts_on_every_taint():
    policy = parse_policy(yaml.safe_load(SAMPLES["replacing-built-in"].read_text()))
    assert [(taint.key, taint.effects) for taint in policy.taints] == [("*", (Effect.NO_EXECUTE,))]


def test_the_sample_for_dead_nodes_acts_on_the_taints_that_mark_them():
    policy = parse_policy(yaml.safe_load(SAMPLES["dead-nodes"].read_text()))
    names = {f"node.kubernetes.io/{name}" for name in ("not-ready", "unreachable", "out-of-service")}
    assert {taint.key for taint in policy.taints} == names
    assert {taint.effects for taint in policy.taints} == {(Effect.NO_EXECUTE,)}


@pytest.mark.parametrize("name", ["replacing-built-in", "dead-nodes"])
def test_samples_that_replace_the_built_in_controller_exclude_no_pod_and_delete(name):
    policy = parse_policy(yaml.safe_load(SAMPLES[name].read_text()))
    none_excluded = Exclude(namespaces=(), priority_at_least=2**31 - 1, daemon_sets=False, respect_do_not_disrupt=False)
    assert policy.exclude == none_excluded
    assert policy.eviction.method is Method.DELETE


@pytest.mark.parametrize(
    ("name", "key", "chosen"),
    [
        ("node-readiness", "readiness.k8s.io/network-not-ready", True),
        ("node-readiness", "node.kubernetes.io/not-ready", False),
        ("nvsentinel", "nvidia.com/gpu-error", True),
        ("nvsentinel", "nvidia.com/gpu", False),
    ],
)
def test_samples_for_other_projects_act_on_their_taints(name, key, chosen):
    policy = parse_policy(yaml.safe_load(SAMPLES[name].read_text()))
    assert bool(policy.selector_for(Taint(key, "x", Effect.NO_SCHEDULE))) == chosen
    assert not policy.selector_for(Taint(key, "x", Effect.NO_EXECUTE))  # on which the built-in controller acts


def test_the_sample_for_node_problems_reads_conditions():
    policy = parse_policy(yaml.safe_load(SAMPLES["node-problems"].read_text()))
    assert [str(one.source) for one in policy.taints] == ["condition KernelDeadlock", "condition ReadonlyFilesystem"]


@pytest.mark.parametrize(("name", "seconds"), [("spot-aws", 120), ("spot-gke", 30), ("spot-aks", 30)])
def test_spot_samples_have_the_deadline_of_their_notice(name, seconds):
    policy = parse_policy(yaml.safe_load(SAMPLES[name].read_text()))
    assert policy.reclaim == Reclaim(seconds)


@pytest.mark.parametrize("name", [name for name in SAMPLES if name.startswith("spot")])
def test_spot_samples_act_on_the_notice_and_not_on_taints_of_every_spot_node(name):
    policy = parse_policy(yaml.safe_load(SAMPLES[name].read_text()))
    assert all(Effect.NO_SCHEDULE in taint.effects for taint in policy.taints)
    assert not {taint.key for taint in policy.taints} & {
        "cloud.google.com/gke-spot",
        "kubernetes.azure.com/scalesetpriority",
    }


def test_annotation_shown_in_the_sla_sample_is_valid():
    comment = next(line for line in SAMPLES["sla"].read_text().splitlines() if line.startswith("#     ["))
    tolerations, errors = parse_tolerations(comment.removeprefix("#"))
    assert (len(tolerations), errors) == (1, ())


def test_every_file_of_the_base_is_installed():
    listed = {name for name in KUSTOMIZATION["resources"] if name.endswith(".yaml")}
    assert listed == {path.name for path in FILES}


def test_every_definition_is_installed_with_the_base():
    listed = yaml.safe_load((ROOT / "crds" / "Kustomization").read_text())["resources"]
    assert listed == sorted(path.name for path in (ROOT / "crds").glob("*.yaml"))
    assert "../../crds" in KUSTOMIZATION["resources"]


def test_the_role_to_delete_pods_is_not_bound():
    bound = [one["roleRef"]["name"] for one in SHIPPED if one["kind"].endswith("RoleBinding")]
    assert sorted(bound) == [
        *["taintwarden"] * 2,
        "taintwarden-limited",
        *["taintwarden-webhook"] * 2,
        *["taintwarden-webhook-trust"] * 2,
    ]


def test_rights_on_leases_and_secrets_name_the_own_ones():
    roles = ("taintwarden", "taintwarden-webhook", "taintwarden-webhook-trust")
    rules = [rule for name in roles for rule in shipped("Role", name)["rules"]]
    names = {(*rule["resources"], *rule["verbs"]): rule.get("resourceNames") for rule in rules}
    assert names == {
        ("leases", "get", "update"): ["taintwarden"],
        ("leases", "create"): None,
        ("secrets", "get", "patch"): ["taintwarden-webhook"],
        ("secrets", "get"): ["taintwarden-webhook"],
    }


def test_the_account_that_may_change_webhooks_is_that_of_a_job_without_ports():
    account = "taintwarden-webhook-trust"
    pods = [one for one in SHIPPED if "template" in one.get("spec", {})]
    (job,) = (one for one in pods if one["spec"]["template"]["spec"]["serviceAccountName"] == account)
    assert job["kind"] == "Job"
    assert job["spec"]["ttlSecondsAfterFinished"] <= 60
    assert not any("ports" in container for container in job["spec"]["template"]["spec"]["containers"])


def test_no_right_is_a_wildcard():
    rules = [rule for one in SHIPPED for rule in one.get("rules", ())]
    assert not [rule for rule in rules if "*" in (*rule["apiGroups"], *rule["resources"], *rule["verbs"])]


def test_default_policy_never_evicts_the_operator():
    template = shipped("Deployment")["spec"]["template"]
    assert template["metadata"]["annotations"]["taintwarden.io/do-not-evict"] == "true"
    assert template["spec"]["priorityClassName"] == "system-cluster-critical"


def test_version_of_the_image_is_that_of_the_package():
    pyproject = (ROOT / "pyproject.toml").read_text()
    (image,) = KUSTOMIZATION["images"]
    assert f'\nversion = "{image["newTag"]}"\n' in pyproject


def test_the_operator_may_write_every_label_of_placement_and_no_other():
    nodes = shipped("ValidatingAdmissionPolicy", "taintwarden-nodes")
    [ours] = [one["expression"].strip("'") for one in nodes["spec"]["variables"] if one["name"] == "ours"]
    for domain in Domain:
        assert re.match(ours, f"{domain}/sla"), domain
        assert re.match(ours, f"example.com.{domain}/sla"), domain
        assert not re.match(ours, f"x{domain}/sla"), domain

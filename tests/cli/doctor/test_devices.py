"""Devices: what is not known of them, and whom Kubernetes evicts because of them itself."""

from typing import Any

import pytest

from cli.devices import GPU_0, GPU_1, KEY, claim, for_devices, rule, sick, slice_of
from cli.doctor.scene import asking, named, replicas
from cli.world import Json, policy
from taintwarden_cli.doctor.doctor_snapshot import BuiltIn, MissingRights, Right

acts = asking("builtin-evicts")
SICK = slice_of(gpu_0=[sick(effect="NoExecute")], gpu_1=[])


def tolerated(**more: Any) -> Json:
    return {"key": KEY, "operator": "Exists", **more}


# -- who else acts ----------------------------------------------------------------------------------------------------


def test_a_claim_that_does_not_tolerate_loses_its_pods():
    (found,) = acts(for_devices(), SICK, claim(uids=("a", "b")), built_in_for_devices=BuiltIn.RUNS)
    assert (str(found.subject), found.severity, found.pods) == ("ResourceClaim shop/web", "warning", 2)
    assert found.message == (
        f"has {KEY}=79:NoExecute of device {GPU_0}, on which policy gpu acts, and does not tolerate it indefinitely: "
        "the built-in device taint eviction deletes its pods without a budget"
    )


def test_unknown_presence_of_the_controller_is_stated():
    (found,) = acts(for_devices(), SICK, claim())
    assert "deletes, if it is on, its pods" in found.message


def test_absent_controller_evicts_no_pods():
    assert acts(for_devices(), SICK, claim(), built_in_for_devices=BuiltIn.ABSENT) == []


def test_claim_that_tolerates_is_no_finding():
    assert acts(for_devices(), SICK, claim(tolerated(effect="NoExecute"))) == []


@pytest.mark.parametrize("effect", ["", "NoSchedule"])
def test_claim_that_tolerates_without_an_effect_is_found(effect):
    """Kubernetes 1.37 does so, although its API documents tolerations without an effect otherwise."""
    assert len(acts(for_devices(), SICK, claim(tolerated(effect=effect)))) == 1


def test_claim_that_tolerates_for_a_time_is_found():
    assert len(acts(for_devices(), SICK, claim(tolerated(effect="NoExecute", tolerationSeconds=60)))) == 1


@pytest.mark.parametrize("effect", ["NoSchedule", "None"])
def test_other_effects_delete_no_pod(effect):
    made = for_devices("NoExecute", "NoSchedule", "None")
    assert acts(made, slice_of(gpu_0=[sick(effect=effect)]), claim()) == []


def test_taints_that_no_policy_selects_are_left_to_kubernetes():
    assert acts(for_devices("NoSchedule"), SICK, claim()) == []


def test_devices_without_taints_and_claims_without_pods_are_no_finding():
    assert acts(for_devices(), SICK, claim(device=GPU_1), claim(uids=(), name="free")) == []


def test_taints_of_rules_count():
    (found,) = acts(for_devices(), slice_of(gpu_0=[]), rule(device="gpu-0"), claim())
    assert f"has {KEY}=1:NoExecute of device {GPU_0}" in found.message


# -- rights -----------------------------------------------------------------------------------------------------------

LACKING = MissingRights("tw/taintwarden", (Right("resource.k8s.io", "resourceslices", "list"),))


def test_missing_right_to_read_devices_is_found_if_a_policy_selects_them():
    assert asking("rights-missing")(policy(), rights=LACKING) == []
    (found,) = asking("rights-missing")(for_devices(), rights=LACKING)
    assert found.message == "may not list resourceslices.resource.k8s.io"
    assert "deploy/components/devices" in found.remedy
    assert "rbac.devices=true" in found.remedy


# -- checks of nodes ---------------------------------------------------------------------------------------------------


def test_comparison_for_devices_needs_no_native_toleration_in_the_pod():
    extended = [{"key": KEY, "operator": "In", "values": ["31"]}]
    pods = replicas(1, extended=extended)
    missing = asking("native-missing")
    assert missing(named("n1"), pods, for_devices()) == []
    assert len(missing(named("n1"), pods, policy(key=KEY))) == 1

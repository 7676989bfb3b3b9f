"""Profiles that do nothing, or more than was meant."""

import pytest

from cli.doctor.scene import asking, workload
from cli.world import pod, policy, profile, toleration

STRICT = toleration("Gt", "950")
idle = asking("profile-without-effect")
everything = asking("profile-tolerates-everything")


def test_profile_that_selects_no_pod_is_found():
    assert len(idle(profile("p", STRICT, app="db"), pod())) == 1
    (found,) = idle(profile("p", STRICT, space="other", app="web"), pod())
    assert found.remedy == "compare it with: kubectl -n other get pods --show-labels"


def test_profile_that_selects_pods_or_a_template_is_no_finding():
    assert idle(profile("p", STRICT, app="web"), pod()) == []
    assert idle(profile("p", STRICT, app="web"), workload()) == []


def test_invalid_profile_is_found():
    (found,) = idle(profile("p", toleration("Gt", "0950"), app="web"), pod())
    assert (found.severity, found.remedy) == ("error", "correct it: kubectl edit tolerationprofile p -n shop")


@pytest.mark.parametrize(
    ("labels", "words"), [({"app": "web"}, "selects"), ({}, "selects, which are all of its namespace")]
)
def test_profile_that_tolerates_every_taint_is_found(labels, words):
    (found,) = everything(profile("p", {"operator": "Exists"}, **labels), pod())
    assert (found.pods, found.severity) == (1, "warning")
    assert found.message == f"tolerates every taint, so no policy evicts the pods that it {words}"


def test_a_quarantine_evicts_pods_that_tolerate_every_taint():
    (found,) = everything(profile("p", {"operator": "Exists"}, app="web"), pod(), policy(quarantine=True))
    assert "no policy but a quarantine evicts" in found.message


@pytest.mark.parametrize(
    "one",
    [
        toleration("Exists"),
        {"operator": "Exists", "effect": "NoSchedule"},
        {"operator": "Exists", "tolerationSeconds": 9},
    ],
)
def test_profile_that_tolerates_not_every_taint_without_end_is_no_finding(one):
    assert everything(profile("p", one, app="web"), pod()) == []

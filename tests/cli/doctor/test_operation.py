"""The operator itself: whether it acts, and with which rights."""

from typing import Any

import pytest

from cli.doctor.scene import asking
from cli.world import NOON, policy
from taintwarden.engine import rfc3339
from taintwarden.kube.calls.lease import LeaseObject, LeaseSpec
from taintwarden_cli.doctor.doctor_snapshot import MissingRights, OperatorSettings, Right
from taintwarden_cli.rehearsal.sources import Source

idle = asking("operator-not-running")
rights = asking("rights-missing")


def lease(age: float, holder: str = "taintwarden-0") -> LeaseObject:
    return LeaseObject({}, LeaseSpec(holder, 15, renew_time=rfc3339.exactly(NOON - age)))


def reported(age: float) -> dict[str, Any]:
    """A policy whose status was written `age` seconds ago."""
    return policy() | {"status": {"observedAt": rfc3339.at(NOON - age)}}


@pytest.mark.parametrize(
    ("held", "words"),
    [
        (None, "does not exist"),
        (LeaseObject({}), "is not running"),
        (lease(5, holder=""), "is not running"),
        (lease(3600), "the operator has not reported for 1h"),
        (LeaseObject({}, LeaseSpec("a", 15, renew_time="soon")), "is not running"),
    ],
)
def test_policies_without_a_running_operator_are_found(held, words):
    (found,) = idle(policy(), lease=held)
    assert (str(found.subject), found.severity) == ("Lease taintwarden-system/taintwarden", "error")
    assert words in found.message


def test_leader_that_does_not_report_is_found():
    (found,) = idle(reported(90), lease=lease(1))
    assert found.message.startswith(
        "the operator has not reported for 1m30s, though taintwarden-0 renews its Lease: nothing is"
    )


def test_a_lease_that_is_not_renewed_is_found_before_it_has_ended():
    (found,) = idle(reported(1), lease=lease(9), lease_is_late=True)
    assert found.message.startswith("the operator has not renewed its Lease for 9s: nothing is evicted until it does")


@pytest.mark.parametrize(("age", "problems"), [(50, 0), (78, 1)])
def test_silent_operator_without_a_lease_is_found_by_the_statuses(age, problems):
    assert len(idle(reported(age), lease=None)) == problems


@pytest.mark.parametrize("age", [-30, 0, 5, 40])
def test_leader_is_no_finding_even_if_clocks_differ(age):
    assert idle(policy(), lease=lease(age)) == []


def test_absent_operator_without_policies_is_no_finding():
    assert idle() == []


def test_deployment_without_replicas_is_found():
    (found,) = idle(policy(), operator=OperatorSettings("tw", replicas=0))
    assert str(found.subject) == "Deployment taintwarden-system/tw"
    assert found.remedy == "kubectl -n taintwarden-system scale deployment tw --replicas=2"
    assert idle(operator=OperatorSettings("tw")) == []


def test_a_lease_that_may_not_be_read_is_not_called_absent():
    assert idle(policy(), problems={Source.LEASE: "403"}) == []


EVICT, DELETE = Right("", "pods/eviction", "create"), Right("", "pods", "delete")
CONDITION = Right("", "nodes/status", "patch")


def test_missing_rights_are_found():
    told = rights(rights=MissingRights("tw/taintwarden", (EVICT,)))
    assert [(str(one.subject), one.message) for one in told] == [
        ("ServiceAccount tw/taintwarden", "may not create pods/eviction")
    ]


def test_missing_right_to_delete_is_found_if_a_policy_deletes():
    lacking = MissingRights("tw/taintwarden", (DELETE,))
    assert rights(policy(), rights=lacking) == []
    (found,) = rights(policy(eviction={"method": "Delete"}), rights=lacking)
    assert "deploy/components/allow-delete" in found.remedy


def test_missing_right_to_write_a_condition_is_found_if_the_operator_writes_it():
    lacking = MissingRights("tw/taintwarden", (CONDITION,))
    assert rights(policy(), rights=lacking, operator=OperatorSettings("tw")) == []
    (found,) = rights(policy(), rights=lacking, operator=OperatorSettings("tw", drained_condition=True))
    assert "deploy/components/drained-condition" in found.remedy

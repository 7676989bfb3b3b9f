"""Faults of users' objects: told by the leader, kept by the others until they lead."""

import pytest

from taintwarden.controller.decoding.decoding import PodIssue
from taintwarden.controller.words.issues import Issues
from taintwarden.controller.words.policy_changes import ChangeKind, PolicyChange


class Told:
    """Stands in for the record."""

    def __init__(self) -> None:
        self.pods: list[str] = []
        self.policies: list[str] = []
        self.changes: list[PolicyChange] = []

    def pod_issue(self, issue: PodIssue) -> None:
        self.pods.append(issue.name)

    def policy_issue(self, name: str, uid: str, reason: str) -> None:
        assert uid
        self.policies.append(f"{name}: {reason}")

    def policy_change(self, change: PolicyChange) -> None:
        self.changes.append(change)

    def profile_issue(self, key: str, uid: str, reason: str) -> None:
        assert uid
        self.policies.append(f"{key}: {reason}")

    def guard_reset_outdated(self, name: str, uid: str, asked: str, generation: int) -> None:
        assert uid
        self.policies.append(f"{name}: reset {asked} of {generation}")


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def kept(told: Told) -> Issues:
    return Issues(told)  # type: ignore[arg-type]


def fault(name: str, uid: str = "") -> PodIssue:
    return PodIssue(name, "shop", uid or name, ())


def test_a_leader_tells_at_once(told, kept):
    kept.lead(True)
    kept.pod(fault("a"))
    kept.policy("p", "u", "wrong")
    assert (told.pods, told.policies) == (["a"], ["p: wrong"])


def test_others_keep_still(told, kept):
    kept.pod(fault("a"))
    kept.policy("p", "u", "wrong")
    assert (told.pods, told.policies) == ([], [])


def test_whoever_gains_the_lead_tells_what_it_kept_in_order(told, kept):
    for name in "abc":
        kept.pod(fault(name))
    kept.lead(True)
    assert told.pods == ["a", "b", "c"]


def test_what_was_kept_is_told_once(told, kept):
    kept.pod(fault("a"))
    for leading in (True, False, True):
        kept.lead(leading)
    assert told.pods == ["a"]


def test_of_one_object_the_last_fault_is_kept(told, kept):
    kept.policy("p", "u", "first")
    kept.policy("p", "u", "second")
    kept.lead(True)
    assert told.policies == ["p: second"]


def test_a_reset_is_another_fault_than_those_of_the_policy(told, kept):
    kept.policy("p", "u", "wrong")
    kept.guard_reset("p", "u", "2", 3)
    kept.lead(True)
    assert told.policies == ["p: wrong", "p: reset 2 of 3"]


def test_the_faults_of_each_object_are_kept(told, kept):
    for name in ("p", "q"):
        kept.policy(name, "u", "wrong")
        kept.profile(f"shop/{name}", "u", "wrong")
        kept.guard_reset(name, "u", "2", 3)
    kept.lead(True)
    assert len(told.policies) == 6


def test_a_change_of_a_policy_is_told_by_who_leads_then(told, kept):
    change = PolicyChange("p", "u", ChangeKind.PAUSED, "by ann")
    kept.policy_change(change)
    kept.lead(True)
    assert told.changes == []
    kept.policy_change(change)
    assert told.changes == [change]


def test_a_profile_is_another_object_than_a_policy_of_its_name(told, kept):
    kept.policy("shop/p", "u", "wrong")
    kept.profile("shop/p", "u", "wrong too")
    kept.lead(True)
    assert told.policies == ["shop/p: wrong", "shop/p: wrong too"]


def test_whoever_lost_the_lead_keeps_again(told, kept):
    kept.lead(True)
    kept.lead(False)
    kept.pod(fault("a"))
    assert told.pods == []


def test_what_is_kept_is_bounded(told):
    kept = Issues(told, max_waiting=3)
    for number in range(10):
        kept.pod(fault(str(number)))
    kept.lead(True)
    assert told.pods == ["7", "8", "9"]

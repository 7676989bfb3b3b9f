"""Faults of users' objects are reported by the leader, and kept by other replicas until they lead."""

from types import SimpleNamespace

import pytest

from taintwarden.controller.decoding.decoding import PodIssue
from taintwarden.controller.words.issues import Issues
from taintwarden.controller.words.notifier import Notifier
from taintwarden.controller.words.policy_changes import ChangeKind
from taintwarden.engine.model import Gates
from taintwarden.fields.field_errors import FieldError
from taintwarden.kube.calls.recorder import Message
from taintwarden.telemetry.metrics import Metrics


class RecordedEvents:
    """The Events that were recorded."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    @property
    def names(self) -> list[str]:
        return [one.subject.name for one in self.messages]

    @property
    def said(self) -> list[str]:
        return [f"{one.subject.name}: {one.text()}" for one in self.messages]


def issues(recorded: RecordedEvents, **more: int) -> Issues:
    recorder = SimpleNamespace(record=recorded.messages.append)
    return Issues(Notifier(recorder, Metrics(), Gates()), **more)  # type: ignore[arg-type]


@pytest.fixture
def recorded() -> RecordedEvents:
    return RecordedEvents()


@pytest.fixture
def kept(recorded: RecordedEvents) -> Issues:
    return issues(recorded)


def fault(name: str, uid: str = "") -> PodIssue:
    return PodIssue(name, "shop", uid or name, (FieldError("f", 1, "wrong"),))


def test_a_leader_reports_faults_at_once(recorded, kept):
    kept.set_leading(True)
    kept.report_pod(fault("a"))
    kept.report_policy("p", "u", "wrong")
    assert recorded.names == ["a", "p"]


def test_a_replica_that_begins_to_lead_reports_kept_faults_in_order(recorded, kept):
    for name in "abc":
        kept.report_pod(fault(name))
    kept.set_leading(True)
    assert recorded.names == ["a", "b", "c"]


def test_a_kept_fault_is_reported_once(recorded, kept):
    kept.report_pod(fault("a"))
    for leading in (True, False, True):
        kept.set_leading(leading)
    assert recorded.names == ["a"]


def test_only_the_last_fault_of_an_object_is_kept(recorded, kept):
    kept.report_policy("p", "u", "first")
    kept.report_policy("p", "u", "second")
    kept.set_leading(True)
    assert recorded.said == ["p: second"]


def test_a_fault_that_ended_is_not_reported_later(recorded, kept):
    kept.report_policy("p", "u", "wrong")
    kept.report_policy("p", "u", "")
    kept.report_profile("shop/p", "u", "wrong")
    kept.report_profile("shop/p", "u", "")
    kept.report_pod(fault("a"))
    kept.report_pod(PodIssue("a", "shop", "a", ()))
    kept.set_leading(True)
    assert recorded.said == []


def test_the_faults_of_each_object_are_kept(recorded, kept):
    for name in ("p", "q"):
        kept.report_policy(name, "u", "wrong")
        kept.report_profile(f"shop/{name}", "u", "wrong")
        kept.report_profile(f"bank/{name}", "u", "wrong")
    kept.set_leading(True)
    assert len(recorded.messages) == 6


def test_a_change_of_a_policy_is_reported_by_the_leader_of_that_time_only(recorded, kept):
    change = ("p", "u", ChangeKind.PAUSED, "by ann")
    kept.report_policy_change(*change)
    kept.set_leading(True)
    assert recorded.messages == []
    kept.report_policy_change(*change)
    assert recorded.said == ["p: by ann"]


def test_a_replica_that_lost_the_lead_reports_no_fault(recorded, kept):
    kept.set_leading(True)
    kept.set_leading(False)
    kept.report_pod(fault("a"))
    assert recorded.names == []


def test_the_number_of_kept_faults_is_bounded(recorded):
    kept = issues(recorded, max_waiting=3)
    for number in range(10):
        kept.report_pod(fault(str(number)))
    kept.set_leading(True)
    assert recorded.names == ["7", "8", "9"]

"""Faults of users' objects: told by the leader, kept by the others until they lead."""

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


class Told:
    """The Events that were recorded."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    @property
    def names(self) -> list[str]:
        return [one.subject.name for one in self.messages]

    @property
    def said(self) -> list[str]:
        return [f"{one.subject.name}: {one.text()}" for one in self.messages]


def issues(told: Told, **more: int) -> Issues:
    recorder = SimpleNamespace(record=told.messages.append)
    return Issues(Notifier(recorder, Metrics(), Gates()), **more)  # type: ignore[arg-type]


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def kept(told: Told) -> Issues:
    return issues(told)


def fault(name: str, uid: str = "") -> PodIssue:
    return PodIssue(name, "shop", uid or name, (FieldError("f", 1, "wrong"),))


def test_a_leader_tells_at_once(told, kept):
    kept.set_leading(True)
    kept.report_pod(fault("a"))
    kept.report_policy("p", "u", "wrong")
    assert told.names == ["a", "p"]


def test_whoever_gains_the_lead_tells_what_it_kept_in_order(told, kept):
    for name in "abc":
        kept.report_pod(fault(name))
    kept.set_leading(True)
    assert told.names == ["a", "b", "c"]


def test_what_was_kept_is_told_once(told, kept):
    kept.report_pod(fault("a"))
    for leading in (True, False, True):
        kept.set_leading(leading)
    assert told.names == ["a"]


def test_of_one_object_the_last_fault_is_kept(told, kept):
    kept.report_policy("p", "u", "first")
    kept.report_policy("p", "u", "second")
    kept.set_leading(True)
    assert told.said == ["p: second"]


def test_the_faults_of_each_object_are_kept(told, kept):
    for name in ("p", "q"):
        kept.report_policy(name, "u", "wrong")
        kept.report_profile(f"shop/{name}", "u", "wrong")
        kept.report_profile(f"bank/{name}", "u", "wrong")
    kept.set_leading(True)
    assert len(told.messages) == 6


def test_a_change_of_a_policy_is_told_by_who_leads_then(told, kept):
    change = ("p", "u", ChangeKind.PAUSED, "by ann")
    kept.report_policy_change(*change)
    kept.set_leading(True)
    assert told.messages == []
    kept.report_policy_change(*change)
    assert told.said == ["p: by ann"]


def test_whoever_lost_the_lead_keeps_again(told, kept):
    kept.set_leading(True)
    kept.set_leading(False)
    kept.report_pod(fault("a"))
    assert told.names == []


def test_what_is_kept_is_bounded(told):
    kept = issues(told, max_waiting=3)
    for number in range(10):
        kept.report_pod(fault(str(number)))
    kept.set_leading(True)
    assert told.names == ["7", "8", "9"]

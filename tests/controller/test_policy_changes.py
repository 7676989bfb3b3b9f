"""Edits, pauses and resumptions of policies are reported once each."""

from typing import Any

import pytest

from taintwarden.controller.words.policy_changes import MAX_FIELDS, PAUSED_BY_ANNOTATION, PolicyChanges

Reported = list[tuple[str, str]]


class Rig:
    """A policy that changes version by version, and the changes that are reported."""

    def __init__(self) -> None:
        self.reported: Reported = []
        self.changes = PolicyChanges(lambda _name, _uid, kind, note: self.reported.append((kind, note)))

    def see(self, by: str = "", **spec: Any) -> Reported:
        """The reported changes between the version before and the next."""
        return self.stored(spec, by)

    def stored(self, spec: object, by: str = "") -> Reported:
        annotations = {PAUSED_BY_ANNOTATION: by} if by else {}
        self.reported.clear()
        self.changes.seen({"metadata": {"name": "sla", "uid": "u", "annotations": annotations}, "spec": spec})
        return list(self.reported)


@pytest.fixture
def rig() -> Rig:
    rig = Rig()
    assert rig.see(mode="DryRun", limits={"guard": {"minPods": 5}}) == []
    return rig


def test_an_edit_names_each_field_with_both_values(rig):
    [(kind, reported)] = rig.see(mode="Enforce", limits={"guard": {"minPods": 50, "maxPods": 60}})
    assert kind == "edited"
    assert reported == (
        "spec.limits.guard.maxPods is 60, it was not set; spec.limits.guard.minPods is 50, it was 5; "
        "spec.mode is Enforce, it was DryRun"
    )


def test_each_item_of_a_list_that_differs_is_named(rig):
    typed = {"effects": ["NoExecute"], "placement": False, "valueType": "Integer"}
    rig.see(taints=[{"key": "cni", **typed}, {"key": "sla", **typed}])
    [(_, reported)] = rig.see(taints=[{"key": "cni", **typed}, {"key": "slo", **typed}, {"key": "x"}])
    assert reported == 'spec.taints[1].key is slo, it was sla; spec.taints[2] is {"key": "x"}, it was not set'


def test_a_pause_names_the_person_and_a_resumption_the_mode(rig):
    reported = rig.see(by="ann at noon: values are wrong", mode="DryRun", limits={"guard": {"minPods": 5}}, paused=True)
    assert reported == [("paused", "Paused by ann at noon: values are wrong")]
    reported = rig.see(mode="DryRun", limits={"guard": {"minPods": 5}})
    assert reported == [("resumed", "spec.paused is not set any more: the mode is DryRun")]


def test_a_pause_does_not_name_who_paused_it_before(rig):
    rig.see(by="ann at noon", paused=True)
    rig.see(by="ann at noon")  # another client removed spec.paused only
    assert ("paused", "spec.paused is set") in rig.see(by="ann at noon", paused=True)


def test_a_policy_without_a_mode_enforces_when_it_is_resumed(rig):
    rig.see(paused=True)
    assert rig.see() == [("resumed", "spec.paused is not set any more: the mode is Enforce")]


def test_a_pause_without_the_annotation_names_no_person(rig):
    reported = rig.see(mode="Enforce", limits={"guard": {"minPods": 5}}, paused=True)
    assert reported == [("paused", "spec.paused is set"), ("edited", "spec.mode is Enforce, it was DryRun")]


def test_long_values_and_many_fields_are_cut(rig):
    [(_, reported)] = rig.see(**{f"f{number}": "x" * 200 for number in range(20)})
    assert f"and {22 - MAX_FIELDS} more fields" in reported
    assert "x" * 78 not in reported


def test_a_spec_of_the_wrong_type_has_no_fields(rig):
    assert [kind for kind, _ in rig.stored("nonsense")] == ["edited"]
    assert rig.see(mode="Enforce") == [("edited", "spec.mode is Enforce, it was not set")]

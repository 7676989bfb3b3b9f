"""Edits, pauses and resumptions of policies are told, once each."""

from typing import Any

import pytest

from taintwarden.controller.words.policy_changes import MAX_FIELDS, PAUSED_BY_ANNOTATION, PolicyChanges

Told = list[tuple[str, str]]


class Rig:
    """One policy, version by version."""

    def __init__(self) -> None:
        self.told: Told = []
        self.changes = PolicyChanges(lambda _name, _uid, kind, note: self.told.append((kind, note)))

    def see(self, by: str = "", **spec: Any) -> Told:
        """What the next version tells."""
        return self.stored(spec, by)

    def stored(self, spec: object, by: str = "") -> Told:
        annotations = {PAUSED_BY_ANNOTATION: by} if by else {}
        self.told.clear()
        self.changes.seen({"metadata": {"name": "sla", "uid": "u", "annotations": annotations}, "spec": spec})
        return list(self.told)


@pytest.fixture
def rig() -> Rig:
    rig = Rig()
    assert rig.see(mode="DryRun", limits={"guard": {"minPods": 5}}) == []
    return rig


def test_an_edit_names_each_field_with_both_values(rig):
    [(kind, told)] = rig.see(mode="Enforce", limits={"guard": {"minPods": 50, "maxPods": 60}})
    assert kind == "edited"
    assert told == (
        "spec.limits.guard.maxPods is 60, it was not set; spec.limits.guard.minPods is 50, it was 5; "
        "spec.mode is Enforce, it was DryRun"
    )


def test_of_a_list_each_item_that_differs_is_named(rig):
    typed = {"effects": ["NoExecute"], "placement": False, "valueType": "Integer"}
    rig.see(taints=[{"key": "cni", **typed}, {"key": "sla", **typed}])
    [(_, told)] = rig.see(taints=[{"key": "cni", **typed}, {"key": "slo", **typed}, {"key": "x"}])
    assert told == 'spec.taints[1].key is slo, it was sla; spec.taints[2] is {"key": "x"}, it was not set'


def test_who_paused_it(rig):
    told = rig.see(by="ann at noon: values are wrong", mode="DryRun", limits={"guard": {"minPods": 5}}, paused=True)
    assert told == [("paused", "Paused by ann at noon: values are wrong")]
    told = rig.see(mode="DryRun", limits={"guard": {"minPods": 5}})
    assert told == [("resumed", "spec.paused is not set any more: the mode is DryRun")]


def test_a_policy_without_a_mode_enforces_when_it_is_resumed(rig):
    rig.see(paused=True)
    assert rig.see() == [("resumed", "spec.paused is not set any more: the mode is Enforce")]


def test_a_pause_by_a_file_names_nobody(rig):
    told = rig.see(mode="Enforce", limits={"guard": {"minPods": 5}}, paused=True)
    assert told == [("paused", "spec.paused is set"), ("edited", "spec.mode is Enforce, it was DryRun")]


def test_long_values_and_many_fields_are_cut(rig):
    [(_, told)] = rig.see(**{f"f{number}": "x" * 200 for number in range(20)})
    assert f"and {22 - MAX_FIELDS} more fields" in told
    assert "x" * 78 not in told


def test_a_spec_of_the_wrong_type_has_no_fields(rig):
    assert [kind for kind, _ in rig.stored("nonsense")] == ["edited"]
    assert rig.see(mode="Enforce") == [("edited", "spec.mode is Enforce, it was not set")]

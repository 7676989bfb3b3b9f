"""Objects of our own kinds from a stream: what is listed, changed, and gone."""

from typing import Any

import msgspec
import pytest

from controller import deletion, deliver
from taintwarden.controller.profiles import ProfileStore
from taintwarden.controller.store_handler import StoreHandler
from taintwarden.engine.machine import events
from taintwarden.kube.custom import PROFILES
from taintwarden.kube.objects import CustomObject, Identity
from taintwarden.telemetry.metrics import Metrics


def profile(name: str, version: int, key: str = "sla", uid: str = "") -> CustomObject:
    stored: dict[str, Any] = {
        "apiVersion": "taintwarden.io/v1alpha1",
        "kind": "TolerationProfile",
        "metadata": {"name": name, "namespace": "shop", "uid": uid or name, "resourceVersion": str(version)},
        "spec": {"tolerations": [{"key": key, "operator": "Exists"}]},
        "status": {"conditions": []},
    }
    return msgspec.convert(stored, CustomObject)


class Stage:
    """A handler, and what its store tells."""

    def __init__(self) -> None:
        self.told: list[events.Event] = []
        self.faults: list[str] = []
        store = ProfileStore(self.told.append, lambda key, uid, reason: self.faults.append(f"{key} {uid}: {reason}"))
        self.handler = StoreHandler(PROFILES.name, store, Metrics())

    def list(self, *objects: CustomObject, version: int = 10) -> None:
        self.handler.list_began()
        self.handler.listed(objects)
        self.handler.list_ended(str(version))

    @property
    def known(self) -> dict[str, str]:
        """What is in force now: name -> key."""
        found: dict[str, str] = {}
        for event in self.told:
            if isinstance(event, events.ProfileSeen):
                found[event.profile.name] = event.profile.tolerations[0].key
            elif isinstance(event, events.ProfileGone):
                found.pop(event.name, None)
        return found


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_a_list_is_told(stage):
    stage.list(profile("a", 1), profile("b", 2))
    assert stage.known == {"a": "sla", "b": "sla"}
    assert stage.handler.listed_once.is_set()


def test_what_another_list_does_not_name_is_gone(stage):
    stage.list(profile("a", 1), profile("b", 2))
    stage.list(profile("b", 2), version=20)
    assert stage.known == {"b": "sla"}


def test_changes_are_told(stage):
    stage.list(profile("a", 1))
    deliver(stage.handler, profile("a", 11, "version"), profile("b", 12))
    assert stage.known == {"a": "version", "b": "sla"}
    deliver(stage.handler, deletion(profile("a", 13)))
    assert stage.known == {"b": "sla"}


def test_a_list_from_before_a_deletion_restores_nothing(stage):
    stage.list(profile("a", 1), version=10)
    deliver(stage.handler, deletion(profile("a", 13)))
    stage.list(profile("a", 1), version=12)
    assert stage.known == {}


def test_a_deletion_that_does_not_decode_is_one_if_it_can_be_told_whose(stage):
    stage.list(profile("a", 1), profile("b", 2))
    assert stage.handler.lost(Identity("a", "shop", "a"))
    assert not stage.handler.lost(Identity("b", "shop"))
    assert stage.known == {"b": "sla"}


def test_an_object_that_is_not_accepted_keeps_its_last_version_in_force(stage):
    stage.list(profile("a", 1))
    deliver(stage.handler, profile("a", 11, "not a key"))
    assert stage.known == {"a": "sla"}
    assert "spec.tolerations[0].key" in stage.faults[0]

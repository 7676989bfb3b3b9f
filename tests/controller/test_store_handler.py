"""Objects of Taintwarden's own kinds from a stream: lists, changes and deletions."""

from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from controller import deletion, deliver
from taintwarden.controller.handlers.store_handler import StoreHandler, _stored
from taintwarden.controller.stores.policy_store import PolicyStore
from taintwarden.controller.stores.profile_store import ProfileStore
from taintwarden.engine import events
from taintwarden.kube.calls.own_kinds import POLICIES, PROFILES
from taintwarden.kube.wire.kinds import CustomObject, CustomStatus, Identity
from taintwarden.telemetry.metrics import Metrics


def stored(kind: str, meta: dict[str, Any], spec: Any) -> CustomObject:
    """An object as the API server sends it."""
    obj = {"apiVersion": "taintwarden.io/v1alpha1", "kind": kind, "metadata": meta, "spec": spec}
    return msgspec.json.decode(msgspec.json.encode(obj), type=CustomObject)


def profile(name: str, version: int, key: str = "sla", uid: str = "", generation: int = 0) -> CustomObject:
    """A profile whose spec changes with each version, unless `generation` is given."""
    meta = {"name": name, "namespace": "shop", "uid": uid or name, "resourceVersion": str(version)}
    generation = generation or version
    return stored(
        "TolerationProfile", meta | {"generation": generation}, {"tolerations": [{"key": key, "operator": "Exists"}]}
    )


def policy(name: str, version: int, mode: str) -> CustomObject:
    meta = {"name": name, "uid": name, "resourceVersion": str(version), "generation": version}
    return stored(
        "TaintEvictionPolicy",
        meta,
        {"taints": [{"key": "sla"}], **({"paused": True} if mode == "Paused" else {"mode": mode})},
    )


class Stage:
    """A handler, and the events and faults that its store reports."""

    def __init__(self) -> None:
        self.fed: list[events.Event] = []
        self.faults: list[str] = []
        store = ProfileStore(self.fed.append, lambda key, uid, reason: self.faults.append(f"{key} {uid}: {reason}"))
        self.handler = StoreHandler(PROFILES.name, self.fed.append, Metrics(), store)

    def list(self, *objects: CustomObject, version: int = 10) -> None:
        self.handler.list_began()
        self.handler.listed(objects)
        self.handler.list_ended(str(version))

    @property
    def known(self) -> dict[str, str]:
        """The profiles in force: name -> key of the first toleration."""
        found: dict[str, str] = {}
        for event in self.fed:
            if isinstance(event, events.ProfileSeen):
                found[event.profile.name] = event.profile.tolerations[0].key
            elif isinstance(event, events.ProfileGone):
                found.pop(event.name, None)
        return found


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_an_incomplete_list_keeps_no_object(stage):
    stage.list(profile("a", 1), profile("b", 2))
    stage.handler.list_began()
    stage.handler.listed([profile("a", 1)])
    stage.list(profile("b", 2), version=20)
    assert stage.known == {"b": "sla"}


async def test_a_deletion_removes_the_profile(stage):
    stage.list(profile("a", 1), profile("b", 2))
    deliver(stage.handler, deletion(profile("a", 13)))
    assert stage.known == {"b": "sla"}


async def test_changes_that_follow_soon_wait(stage):
    stage.list(profile("a", 1))
    deliver(stage.handler, profile("b", 11), profile("a", 12, "version"), profile("c", 13), deletion(profile("c", 14)))
    assert stage.known == {"a": "sla", "b": "sla"}
    stage.handler.list_began()
    assert stage.known == {"a": "version", "b": "sla"}


async def test_a_change_of_metadata_neither_waits_nor_delays_others(stage):
    stage.list(profile("a", 1), profile("b", 2))
    for version in range(11, 20):
        deliver(stage.handler, profile("a", version, generation=1))
    deliver(stage.handler, profile("b", 20, "version"))
    assert stage.known == {"a": "sla", "b": "version"}


async def test_policies_do_not_wait():
    fed: list[str] = []
    store = PolicyStore(lambda valid: fed.append(valid[0].mode), lambda *_: None)
    handler = StoreHandler(POLICIES.name, lambda _: None, Metrics(), store)
    for version, mode in enumerate(("DryRun", "Paused", "Enforce"), start=11):
        deliver(handler, policy("sla", version, mode))
    assert fed == ["DryRun", "Paused", "Enforce"]


async def test_an_undecodable_deletion_counts_if_it_has_name_and_uid(stage):
    stage.list(profile("a", 1), profile("b", 2))
    assert stage.handler.lost(Identity("a", "shop", "a"))
    assert not stage.handler.lost(Identity("b", "shop"))
    assert stage.known == {"b": "sla"}


async def test_a_stored_spec_does_not_keep_its_page_in_memory(stage):
    """The bytes that an object came in are those of a whole page of a list."""
    page = b"[" + b",".join([msgspec.json.encode(profile("a", 1))] * 3) + b"]"
    found = msgspec.json.decode(page, type=list[CustomObject])
    kept = _stored(found[1])["spec"]
    assert len(memoryview(kept).obj) < 100


def test_an_undecodable_object_in_a_list_keeps_its_last_version():
    stage = Stage()
    stage.list(profile("a", 1), profile("b", 1))
    stage.handler.list_began()
    stage.handler.listed([profile("b", 2)])
    with capture_logs():
        stage.handler.undecodable(Identity("a", "shop", "a", "2"), "made to fail")
    stage.handler.list_ended("11")
    assert set(stage.known) == {"a", "b"}


def test_an_object_without_a_name_counts_as_absent():
    """A server that only resembles an API server may send one."""
    stage, nameless = Stage(), stored("TolerationProfile", {"namespace": "shop"}, {"tolerations": []})
    with capture_logs() as logs:
        stage.list(nameless, profile("a", 1))
        stage.handler.seen(nameless)
    assert set(stage.known) == {"a"}
    assert [entry["event"] for entry in logs] == ["object-undecodable"]


def test_the_annotation_paused_by_is_decoded():
    meta = {"name": "sla", "annotations": {"taintwarden.io/paused-by": "kim at 10:00", "other": "x"}}
    seen = stored("TaintEvictionPolicy", meta, {})
    assert seen.metadata.annotations.paused_by == "kim at 10:00"


def test_a_status_is_passed_to_the_store():
    obj = policy("sla", 1, "DryRun")
    assert _stored(obj)["status"] is None
    condition = {"type": "Accepted", "status": "True"}
    status = msgspec.convert({"conditions": [condition]}, CustomStatus)
    found = _stored(msgspec.structs.replace(obj, status=status))
    assert found["status"]["conditions"][0]["type"] == "Accepted"


async def test_the_status_of_a_known_spec_is_passed_on_too():
    store = PolicyStore(lambda _: None, lambda *_: None)
    handler, obj = StoreHandler(POLICIES.name, lambda _: None, Metrics(), store), policy("sla", 1, "DryRun")
    condition = {"type": "Accepted", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    status = msgspec.convert({"conditions": [condition]}, CustomStatus)
    for one in (obj, msgspec.structs.replace(obj, status=status)):
        deliver(handler, one)
    assert store.observed["sla"].conditions == {"Accepted": ("True", "2020-01-01T00:00:00Z")}

"""The guard store passes on stored records when they change, and each requested reset once."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from controller import NOW
from taintwarden.controller.stores.guard_record import encode_guard
from taintwarden.controller.stores.guard_store import GuardStore
from taintwarden.engine import events
from taintwarden.engine.records import GuardRecord

Json = dict[str, Any]

OPEN = GuardRecord(NOW, "taint sla on 9 nodes", (("shop", 120),), ((NOW + 30, (("shop", 12),)),))
CLOSED = GuardRecord(evicted=((NOW + 30.5, (("shop", 7),)),))
NOTHING = GuardRecord()
RESET = events.GuardReset("p")


def stored(record: GuardRecord | None = None, *, reset: str = "", generation: int = 3, uid: str = "uid-p") -> Json:
    """A policy as the API server stores it, without nulls."""
    guard = {name: value for name, value in encode_guard(record).items() if value is not None} if record else None
    return {
        "metadata": {"name": "p", "uid": uid, "generation": generation}
        | ({"annotations": {"taintwarden.io/guard-reset": reset}} if reset else {}),
        "status": {"guard": guard} if guard else {},
    }


class Store(GuardStore):
    """A store that keeps the events that it fed."""

    def __init__(self) -> None:
        self.fed: list[Any] = []
        super().__init__(self.fed.append)

    def events_of(self, *objects: Json) -> list[Any]:
        """The events that the store feeds for these objects."""
        self.fed.clear()
        for obj in objects:
            self.seen(obj)
            self.apply_resets()
        return self.fed


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def leader(store: Store) -> Store:
    store.set_leading(True)
    return store


def restored(record: GuardRecord) -> events.GuardRestored:
    return events.GuardRestored("p", record)


# -- records ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("record", [OPEN, CLOSED])
def test_the_first_record_of_a_policy_is_passed_on(store, record):
    assert store.events_of(stored(record)) == [restored(record)]


@pytest.mark.parametrize("status", [None, {}, {"guard": None}])
def test_a_status_without_a_guard_is_an_empty_record(store, status):
    assert store.events_of(stored() | {"status": status}) == [restored(NOTHING)]


def test_the_same_record_is_passed_on_once(store):
    assert store.events_of(*[stored(OPEN)] * 3) == [restored(OPEN)]


def test_a_record_that_another_replica_writes_is_passed_on(store):
    assert store.events_of(stored(OPEN), stored(CLOSED)) == [restored(OPEN), restored(CLOSED)]


def test_the_removal_of_a_record_is_passed_on(store):
    assert store.events_of(stored(OPEN), stored()) == [restored(OPEN), restored(NOTHING)]


def test_another_policy_of_the_same_name_inherits_nothing(store):
    assert store.events_of(stored(OPEN), stored(uid="another")) == [restored(OPEN), restored(NOTHING)]


def test_the_record_of_a_policy_that_comes_back_is_passed_on_again(store):
    store.events_of(stored(OPEN))
    store.gone("p")
    assert store.events_of(stored(OPEN)) == [restored(OPEN)]


def test_a_replica_that_is_about_to_lead_gets_every_record_again(store):
    """Records that it received while it led before had no effect."""
    store.events_of(stored(OPEN))
    store.fed.clear()
    store.restore_records()
    assert store.fed == [restored(OPEN)]


def test_a_record_that_cannot_be_read_is_absent_and_logged_once(store):
    broken = stored() | {"status": {"guard": {"trippedAt": "yes"}}}
    with capture_logs() as logs:
        assert store.events_of(broken, broken) == [restored(NOTHING)]
    assert [(entry["event"], entry["policy"]) for entry in logs] == [("guard-record-unreadable", "p")]


# -- places -----------------------------------------------------------------------------------------------------------


def placed(*nodes: str) -> dict[str, Any]:
    rows = [{"node": node, "since": "2026-01-01T00:00:00.5Z"} for node in nodes]
    return stored() | {"status": {"places": {"nodes": rows, "term": 3}}}


def test_places_are_passed_on_when_they_change_and_when_they_end(store):
    fed = store.events_of(placed("a1"), placed("a1"), placed("a1", "a2"), stored())
    places = [[one.node for one in event.places] for event in fed if isinstance(event, events.PlacesRestored)]
    assert places == [["a1"], ["a1", "a2"], []]


def test_places_that_cannot_be_read_are_absent(store):
    broken = stored() | {"status": {"places": {"nodes": [{"node": 1}]}}}
    with capture_logs() as logs:
        assert events.PlacesRestored("p", ()) in store.events_of(broken)
    assert [entry["event"] for entry in logs] == ["places-record-unreadable"]


# -- resets -----------------------------------------------------------------------------------------------------------


def resets(fed: list[Any]) -> list[Any]:
    return [event for event in fed if isinstance(event, events.GuardReset)]


@pytest.mark.parametrize("value", ["3", "of ann, at noon"])
def test_a_reset_with_any_value_is_passed_on(leader, value):
    assert resets(leader.events_of(stored(OPEN, reset=value))) == [RESET]


def test_a_reset_counts_once_however_often_it_is_seen(leader):
    """The guard may have tripped again for another wave before the annotation is removed."""
    assert resets(leader.events_of(*[stored(reset="3")] * 5)) == [RESET]


def test_a_reset_is_passed_on_again_after_an_edit(leader):
    """The first may not have been in force, and the next leader would grant a request that stays for another wave."""
    assert resets(leader.events_of(stored(reset="3"), stored(reset="3", generation=4))) == [RESET, RESET]


def test_a_reset_that_was_removed_can_be_requested_again(leader):
    assert resets(leader.events_of(stored(reset="3"), stored(), stored(reset="3"))) == [RESET, RESET]


def test_replicas_that_do_not_lead_pass_on_no_reset(store):
    assert resets(store.events_of(stored(reset="3"))) == []


def test_a_replica_that_begins_to_lead_passes_on_the_requested_reset(store):
    store.events_of(stored(reset="3"))
    store.fed.clear()
    store.set_leading(True)
    assert store.fed == [RESET]


def test_a_replica_that_leads_again_passes_on_the_reset_again(leader):
    """Only the removal of the annotation shows that the reset was granted."""
    leader.events_of(stored(reset="3"))
    leader.fed.clear()
    leader.set_leading(False)
    leader.set_leading(True)
    assert leader.fed == [RESET]


def test_a_reset_is_passed_on_after_the_policies_only(leader):
    leader.seen(stored(reset="3"))
    assert resets(leader.fed) == []
    leader.apply_resets()
    assert resets(leader.fed) == [RESET]


def test_another_value_is_another_reset(leader):
    assert resets(leader.events_of(stored(reset="2"), stored(reset="3"))) == [RESET, RESET]


def test_a_reset_of_a_namesake_is_its_own(leader):
    fed = leader.events_of(stored(reset="3"), stored(reset="3", uid="another"))
    assert resets(fed) == [RESET, RESET]

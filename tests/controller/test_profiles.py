"""The profiles in force: what the machine hears of stored ones. The rules of a store are tested with policies."""

from typing import Any

import pytest

from taintwarden.controller.profiles import ProfileStore
from taintwarden.engine.machine import events

Json = dict[str, Any]


def stored(
    name: str = "fast", value: str = "950", *, namespace: str = "shop", uid: str = "", generation: int = 1
) -> Json:
    """As the API server has it. The value ``wrong`` is one that nobody accepts."""
    return {
        "apiVersion": "taintwarden.io/v1alpha1",
        "kind": "TolerationProfile",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid or f"uid-{name}",
            "generation": generation,
            "creationTimestamp": "2026-02-01T00:00:00Z",
        },
        "spec": {"tolerations": [{"key": "sla", "operator": "Gt", "value": value}]},
    }


def large(name: str, size: int = 50, *, created: str = "2026-01-01T00:00:00Z", **more: Any) -> Json:
    """One with so many entries, at most 64."""
    obj = stored(name, **more)
    obj["metadata"]["creationTimestamp"] = created
    entry = {"key": "sla", "operator": "Gt"}
    obj["spec"] = {"tolerations": [entry | {"value": str(900 + number)} for number in range(size)]}
    return obj


class Store(ProfileStore):
    """A store that keeps what it told."""

    def __init__(self) -> None:
        self.fed: list[Any] = []
        self.issues: list[tuple[str, str, str]] = []
        super().__init__(self.fed.append, lambda *issue: self.issues.append(issue))

    def told(self) -> list[str]:
        """What the machine heard since the last time."""
        told = [
            f"{one.profile} {one.profile.tolerations[0].value}"
            if isinstance(one, events.ProfileSeen)
            else f"{one.namespace}/{one.name} gone"
            for one in self.fed
        ]
        self.fed.clear()
        return told


@pytest.fixture
def store() -> Store:
    return Store()


def test_every_profile_of_a_list_is_told(store):
    store.load([stored("a"), stored("b", namespace="bank")])
    assert store.told() == ["shop/a 950", "bank/b 950"]


def test_an_empty_list_tells_nothing(store):
    store.load([])
    assert store.told() == []


def test_profiles_of_one_name_in_two_namespaces_are_two(store):
    store.load([stored("a"), stored("a", namespace="bank")])
    store.gone(stored("a"))
    assert store.told() == ["shop/a 950", "bank/a 950", "shop/a gone"]
    assert set(store.observed) == {"bank/a"}


def test_only_what_changed_is_told(store):
    store.load([stored("a"), stored("b")])
    store.told()
    store.load([stored("a", "900", generation=2), stored("b")])
    assert store.told() == ["shop/a 900"]


def test_what_a_list_does_not_name_is_gone(store):
    store.load([stored("a"), stored("b")])
    store.told()
    store.load([stored("b")])
    assert store.told() == ["shop/a gone"]


def test_a_status_that_changes_is_no_change(store):
    store.seen(stored("a"))
    store.told()
    store.seen(stored("a") | {"status": {"matchedPods": 7}})
    assert store.told() == []


def test_an_invalid_profile_keeps_its_last_valid_version_in_force(store):
    store.seen(stored("a"))
    store.told()
    store.seen(stored("a", "wrong", generation=2))
    assert store.told() == []
    assert "spec.tolerations[0].value" in store.observed["shop/a"].problem
    assert [(key, uid) for key, uid, _ in store.issues] == [("shop/a", "uid-a")]


def test_a_profile_deleted_while_invalid_is_gone(store):
    store.seen(stored("a"))
    store.seen(stored("a", "wrong", generation=2))
    store.told()
    store.gone(stored("a", "wrong", generation=2))
    assert store.told() == ["shop/a gone"]


def test_another_profile_of_the_same_name_inherits_nothing(store):
    store.seen(stored("a"))
    store.told()
    store.seen(stored("a", "wrong", uid="another"))
    assert store.told() == ["shop/a gone"]


def test_what_was_never_valid_is_not_told(store):
    store.seen(stored("a", "wrong"))
    store.gone(stored("a", "wrong"))
    assert store.told() == []


# -- how many count ---------------------------------------------------------------------------------------------------


def filled(store: Store) -> Store:
    """There is room for nothing more in the namespace shop."""
    store.load([large(f"p{number:02}") for number in range(20)])
    store.told()
    return store


def test_of_too_many_profiles_the_oldest_count(store):
    listed = [large(f"p{number:02}", created=f"2026-01-{31 - number}T00:00:00Z") for number in range(21)]
    store.load(listed)
    assert "shop/p00" not in store.valid
    assert len(store.valid) == 20


def test_the_fault_names_object_field_and_remedy(store):
    filled(store).seen(stored("more"))
    assert store.observed["shop/more"].problem == (
        'TolerationProfile "more" is invalid: spec: Invalid value: 1: the profiles of namespace shop would have 1001 '
        "entries with it, and at most 1000 count (tolerations, labels and values of podSelector and nodeAffinity); "
        "delete profiles that are not needed, or write one for several workloads"
    )
    assert [(key, uid) for key, uid, _ in store.issues] == [("shop/more", "uid-more")]


def test_it_is_told_once(store):
    filled(store).seen(stored("more"))
    store.seen(stored("more") | {"status": {"matchedPods": 7}})
    store.seen(large("p00", 49, generation=2))
    store.seen(large("p00", 50, generation=3))
    assert len(store.issues) == 2  # there was room meanwhile


def test_values_of_a_selector_are_counted(store):
    obj = large("q", 50)
    obj["spec"]["podSelector"] = {
        "matchExpressions": [
            {"key": "app", "operator": "In", "values": ["a", "b", "c"]},
            {"key": "tier", "operator": "Exists"},
        ]
    }
    store.load([large(f"p{number:02}") for number in range(19)])
    store.seen(obj)
    assert "54: the profiles of namespace shop would have 1004 entries" in store.observed["shop/q"].problem


def test_another_namespace_has_room(store):
    filled(store).seen(stored("more", namespace="bank"))
    assert store.told() == ["bank/more 950"]


def test_one_that_there_is_room_for_at_last_counts(store):
    filled(store).seen(stored("more"))
    assert store.told() == []
    store.gone(large("p00"))
    assert store.told() == ["shop/p00 gone", "shop/more 950"]
    assert store.observed["shop/more"].problem == ""


def test_one_without_room_that_is_faulty_tells_its_faults(store):
    filled(store).seen(stored("more"))
    store.seen(stored("more", "wrong", generation=2))
    store.gone(large("p00"))
    assert "spec.tolerations[0].value" in store.observed["shop/more"].problem
    assert store.told() == ["shop/p00 gone", "shop/more 950"]


def test_one_without_room_that_goes_is_not_told(store):
    filled(store).seen(stored("more"))
    store.gone(stored("more"))
    assert store.told() == []
    assert "shop/more" not in store.observed

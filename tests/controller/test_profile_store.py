"""Events that stored profiles feed the machine. The rules that hold for all stores are tested with policies."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kept import kept
from taintwarden.api.profiles import parse_profile
from taintwarden.controller.stores import profile_store
from taintwarden.controller.stores.profile_store import ProfileStore
from taintwarden.engine import events
from taintwarden.engine.model import Profile

Json = dict[str, Any]
DAY = "2026-01-0{}T00:00:00Z"


def stored(
    name: str = "fast", value: str = "950", *, namespace: str = "shop", uid: str = "", generation: int = 1
) -> Json:
    """A profile as the API server stores it. The value ``wrong`` is invalid."""
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
    """A profile with `size` entries, at most 64."""
    obj = stored(name, **more)
    obj["metadata"]["creationTimestamp"] = created
    entry = {"key": "sla", "operator": "Gt"}
    obj["spec"] = {"tolerations": [entry | {"value": str(900 + number)} for number in range(size)]}
    return obj


class Store(ProfileStore):
    """A store that keeps the events that it fed, and the issues."""

    def __init__(self, **more: Any) -> None:
        self.fed: list[Any] = []
        self.issues: list[tuple[str, str, str]] = []
        super().__init__(self.fed.append, lambda *issue: self.issues.append(issue), **more)

    def take_lines(self) -> list[str]:
        """The events that were fed since the last call, as text."""
        lines = [
            f"{one.profile} {one.profile.tolerations[0].value}"
            if isinstance(one, events.ProfileSeen)
            else f"{one.namespace}/{one.name} gone"
            for one in self.fed
        ]
        self.fed.clear()
        return lines


@pytest.fixture
def store() -> Store:
    return Store()


def test_profiles_of_one_name_in_two_namespaces_are_distinct(store):
    store.load([stored("a"), stored("a", namespace="bank")])
    store.gone("shop/a", "uid-a")
    assert store.take_lines() == ["shop/a 950", "bank/a 950", "shop/a gone"]
    assert set(store.observed) == {"bank/a"}


def test_a_deletion_with_a_namespace_removes_no_profile_of_another(store):
    """A tenant may delete profiles before they count, while other namespaces have thousands."""
    store.load([stored("a", namespace="bank")])
    store.take_lines()
    store.gone("shop/b", "uid-a")
    assert store.take_lines() == []
    store.gone("a", "uid-a")  # its namespace could not be read
    assert store.take_lines() == ["bank/a gone"]


def test_nothing_is_kept_of_a_namespace_whose_profiles_are_gone(store):
    store.load([stored("a", namespace="bank")])
    store.gone("bank/a", "uid-a")
    assert kept(store, "bank", without=store.fed) == []
    store.seen(stored("b"))
    assert store.take_lines() == ["bank/a 950", "bank/a gone", "shop/b 950"]


def test_a_list_feeds_only_the_profiles_that_changed(store):
    store.load([stored("a"), stored("b")])
    store.take_lines()
    store.load([stored("a", "900", generation=2), stored("b")])
    assert store.take_lines() == ["shop/a 900"]


def test_an_invalid_profile_keeps_its_last_valid_version_in_force(store):
    store.seen(stored("a"))
    store.take_lines()
    store.seen(stored("a", "wrong", generation=2))
    assert store.take_lines() == []
    assert "spec.tolerations[0].value" in store.observed["shop/a"].problem
    assert [(key, uid) for key, uid, _ in store.issues] == [("shop/a", "uid-a")]


# -- how many count ---------------------------------------------------------------------------------------------------


def filled(store: Store) -> Store:
    """Fill the namespace shop up to its limit of entries."""
    store.load([large(f"p{number:02}") for number in range(20)])
    store.take_lines()
    return store


def test_of_too_many_profiles_the_oldest_count(store):
    listed = [large(f"p{number:02}", created=f"2026-01-{31 - number}T00:00:00Z") for number in range(21)]
    store.load(listed)
    assert "shop/p00" not in store.valid
    assert len(store.valid) == 20


@given(
    st.lists(
        st.tuples(st.integers(0, 29), st.sampled_from([None, 1, 40, 64]), st.integers(1, 3)), min_size=1, max_size=40
    )
)
def test_changes_and_a_new_list_count_the_same_profiles(changes):
    store, now = Store(), {f"p{number:02}": large(f"p{number:02}", created=DAY.format(1)) for number in range(20)}
    store.load(now.values())
    for generation, (number, size, day) in enumerate(changes, start=2):
        name = f"p{number:02}"
        if size is None:
            now.pop(name, None)
            store.gone(f"shop/{name}", f"uid-{name}")
        else:
            created = now[name]["metadata"]["creationTimestamp"] if name in now else DAY.format(day)
            now[name] = large(name, size, created=created, generation=generation)
            store.seen(now[name])
        left, counting = 1000, set()
        for obj in sorted(
            now.values(), key=lambda one: (one["metadata"]["creationTimestamp"], one["metadata"]["name"])
        ):
            left -= len(obj["spec"]["tolerations"])
            if left < 0:
                break
            counting.add(f"shop/{obj['metadata']['name']}")
        assert store.valid.keys() == counting
        assert {key for key, one in store.observed.items() if not one.problem} == counting


TOO_MANY = (
    "the profiles of namespace shop may have 1000 entries together, and the oldest count (tolerations, labels and "
    "values of podSelector and nodeAffinity): delete profiles that are not needed, or write one for several workloads"
)


def test_the_fault_names_limit_and_remedy(store):
    filled(store).seen(stored("more"))
    assert store.observed["shop/more"].problem == TOO_MANY
    assert store.issues == [("shop/more", "uid-more", TOO_MANY)]


def test_a_profile_beyond_the_limit_is_reported_once(store):
    filled(store).seen(stored("more"))
    store.seen(stored("more") | {"status": {"matchedPods": 7}})
    store.seen(large("p00", 49, generation=2))
    assert store.observed["shop/more"].problem == ""
    store.seen(large("p00", 50, generation=3))
    assert store.observed["shop/more"].problem == TOO_MANY
    assert len(store.issues) == 1


def test_of_hundreds_of_profiles_beyond_the_limit_one_is_reported(store):
    filled(store).load([*(large(f"p{number:02}") for number in range(20)), *(stored(f"q{n:04}") for n in range(300))])
    assert [key for key, _, _ in store.issues] == ["shop/q0000"]
    assert {store.observed[f"shop/q{number:04}"].problem for number in range(300)} == {TOO_MANY}


def test_values_of_a_selector_are_counted(store):
    obj = large("q", 50)
    obj["spec"]["podSelector"] = {
        "matchExpressions": [
            {"key": "app", "operator": "In", "values": ["a", "b", "c"]},
            {"key": "tier", "operator": "Exists"},
        ]
    }
    store.load([large(f"p{number:02}") for number in range(18)])
    store.seen(obj)
    store.seen(large("r", 47))
    assert store.observed["shop/r"].problem == TOO_MANY
    store.seen(large("r", 46, generation=2))
    assert store.observed["shop/r"].problem == ""


def test_a_profile_larger_than_the_limit_does_not_exclude_others(store):
    values = [f"v{number}" for number in range(64)]
    obj = stored("huge")
    obj["spec"]["podSelector"] = {
        "matchExpressions": [{"key": f"k{n}", "operator": "In", "values": values} for n in range(32)]
    }
    obj["metadata"]["creationTimestamp"] = "2025-01-01T00:00:00Z"
    store.load([obj, stored("a")])
    assert store.take_lines() == ["shop/a 950"]
    assert "would have 2049 entries with it, and at most 1000 count" in store.observed["shop/huge"].problem


# -- what a change costs ----------------------------------------------------------------------------------------------


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the profiles that were read, in order."""
    names: list[str] = []

    def parse(obj: Json) -> Profile:
        names.append(obj["metadata"]["name"])
        return parse_profile(obj)

    monkeypatch.setattr(profile_store, "parse_profile", parse)
    return names


def one_line(number: int, generation: int = 1) -> Json:
    return stored(f"p{number:05}", str(number), generation=generation)


def test_of_many_profiles_only_those_that_count_are_parsed(parsed):
    store = Store()
    store.load(one_line(number) for number in range(2_000))
    assert len(parsed) == 1_001  # and the first that does not
    assert len(store.valid) == 1_000


def test_profiles_with_the_same_generation_are_not_parsed_again(parsed):
    store = Store()
    store.load(one_line(number) for number in range(1_200))
    parsed.clear()
    for number in range(1_200):
        store.seen(one_line(number))
    assert parsed == []


@pytest.mark.parametrize(("number", "read"), [(5, 1), (999, 1), (1_000, 1), (1_100, 0)])
def test_a_change_of_one_profile_parses_only_that_one(parsed, number, read):
    store = Store()
    store.load(one_line(number) for number in range(1_200))
    parsed.clear()
    store.seen(one_line(number, generation=2))
    assert parsed == [f"p{number:05}"] * read


def test_waiting_profiles_are_kept_up_to_a_size():
    """The oldest waiting profiles are kept, so that they count without a change once others are deleted."""
    store = Store(max_waiting_bytes=600_000)
    store.load(one_line(number) for number in range(1_200))
    for number in range(100):
        store.gone(f"shop/p{number:05}", f"uid-p{number:05}")
    assert len(store.valid) < 1_000
    kept_out = next(key for key in store.observed if key not in store.valid)
    assert "change its labels to have it read" in store.observed[kept_out].problem
    assert max(store.valid) < kept_out
    store.seen(one_line(int(kept_out[-5:])))
    assert store.observed[kept_out].problem == ""
    assert kept_out in store.valid


def test_the_size_of_waiting_profiles_is_that_of_their_specs():
    store = Store(max_waiting_bytes=10_000)
    filled(store)
    for number in range(10):
        store.seen(large(f"z{number}"))
    dropped = [one for one in store.observed.values() if "change its labels to have it read" in one.problem]
    assert len(dropped) > 5


def test_a_waiting_profile_that_changes_is_kept_once():
    store = Store(max_waiting_bytes=100_000)
    filled(store).seen(large("y"))
    for generation in range(1, 60):
        store.seen(large("z", generation=generation))
    for name in ("p00", "p01"):
        store.gone(f"shop/{name}", f"uid-{name}")
    assert "shop/z" in store.valid


def test_a_waiting_profile_that_is_deleted_does_not_affect_those_in_force():
    store = Store(max_waiting_bytes=100_000)
    filled(store).seen(large("y"), large("z"))
    store.gone("shop/z", "uid-z")
    for number in range(40):
        store.seen(large(f"x{number}"))
    assert len(store.valid) == 20


def test_a_spec_that_is_not_utf8_is_a_fault_of_the_profile(store):
    obj = stored("a") | {"spec": msgspec.Raw(b'{"tolerations": "\xff"}')}
    store.seen(obj)
    assert "TolerationProfile" in store.observed["shop/a"].problem


def test_the_limit_counts_each_namespace_alone(store):
    filled(store).seen(stored("more", namespace="bank"))
    assert store.take_lines() == ["bank/more 950"]


def test_a_waiting_profile_counts_once_another_is_deleted(store):
    filled(store).seen(stored("more"))
    assert store.take_lines() == []
    store.gone("shop/p00", "uid-p00")
    assert store.take_lines() == ["shop/p00 gone", "shop/more 950"]
    assert store.observed["shop/more"].problem == ""


def test_a_waiting_profile_that_is_invalid_has_its_fault_and_its_last_valid_version(store):
    filled(store).seen(stored("more"))
    store.seen(stored("more", "wrong", generation=2))
    store.gone("shop/p00", "uid-p00")
    assert "spec.tolerations[0].value" in store.observed["shop/more"].problem
    assert store.take_lines() == ["shop/p00 gone", "shop/more 950"]


def test_the_deletion_of_a_waiting_profile_feeds_nothing(store):
    filled(store).seen(stored("more"))
    store.gone("shop/more", "uid-more")
    assert store.take_lines() == []
    assert "shop/more" not in store.observed

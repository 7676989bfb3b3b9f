"""The store: revisions, history, metadata."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localcluster import ApiError, Store
from localcluster.store.collection import Collection
from localcluster.store.entries import Change, Selection
from localcluster.store.listing import page
from localcluster.store.selectors import parse_fields


def _store(history_limit: int = 1000) -> tuple[Store, Collection]:
    store = Store(history_limit=history_limit)
    return store, store.register("things", generation=True, fields={"spec.color": ("spec", "color")})


def _thing(name: str, **spec: object) -> dict:
    return {"kind": "Thing", "metadata": {"name": name}, "spec": spec}


def test_every_write_is_one_revision() -> None:
    store, _ = _store()
    first = store.create("things", _thing("a"))
    second = store.update("things", {**first, "spec": {"color": "red"}})
    start = int(first["metadata"]["resourceVersion"])
    assert int(second["metadata"]["resourceVersion"]) == start + 1
    store.delete("things", "a", "default")
    assert store.revision == start + 2


def test_no_difference_is_no_write() -> None:
    store, _ = _store()
    first = store.create("things", _thing("a"))
    assert store.update("things", first) == first
    assert store.revision == int(first["metadata"]["resourceVersion"])


def test_the_generation_grows_with_the_spec_only() -> None:
    store, _ = _store()
    store.create("things", _thing("a"))
    grown = store.modify("things", "a", "default", lambda one: one["spec"].update(color="red"))
    assert grown["metadata"]["generation"] == 2
    quiet = store.modify("things", "a", "default", lambda one: one.update(status={"phase": "Ready"}))
    assert quiet["metadata"]["generation"] == 2


def test_an_old_revision_is_a_conflict() -> None:
    store, _ = _store()
    first = store.create("things", _thing("a"))
    store.update("things", {**first, "spec": {"color": "red"}})
    with pytest.raises(ApiError) as refused:
        store.update("things", {**first, "spec": {"color": "blue"}})
    assert (refused.value.code, refused.value.reason) == (409, "Conflict")


def test_what_a_caller_holds_is_a_copy() -> None:
    store, _ = _store()
    store.create("things", _thing("a", color="red"))
    store.get("things", "a", "default")["spec"]["color"] = "blue"
    assert store.get("things", "a", "default")["spec"]["color"] == "red"


def test_a_deletion_carries_its_own_revision() -> None:
    store, _ = _store()
    seen: list[Change] = []
    store.subscribe("things", seen.append)
    store.create("things", _thing("a"))
    store.delete("things", "a", "default")
    assert seen[-1].after is None
    assert seen[-1].left().decoded()["metadata"]["resourceVersion"] == str(store.revision)


def test_a_listener_can_leave() -> None:
    store, _ = _store()
    seen: list[Change] = []
    leave = store.subscribe("things", seen.append)
    leave()
    store.create("things", _thing("a"))
    assert seen == []


def test_history_is_bounded() -> None:
    store, things = _store(history_limit=3)
    for number in range(10):
        store.create("things", _thing(f"a{number}"))
    assert len(things.history) == 3
    assert things.oldest == store.revision - 3
    newest = store.revision
    assert [change.revision for change in things.since(things.oldest)] == [newest - 2, newest - 1, newest]


def test_compaction_forgets() -> None:
    store, things = _store()
    store.create("things", _thing("a"))
    store.compact("things")
    assert things.oldest == store.revision
    assert list(things.since(0)) == []


def test_leaving_a_selection_is_a_deletion() -> None:
    store, things = _store()
    seen: list[Change] = []
    store.subscribe("things", seen.append)
    store.create("things", _thing("a", color="red"))
    store.modify("things", "a", "default", lambda one: one["spec"].update(color="blue"))
    red = Selection(fields=parse_fields("spec.color=red", tuple(things.fields)))
    assert [red.sees(change) for change in seen] == ["ADDED", "DELETED"]
    assert page(things, red, store.revision).entries == []


_OPERATIONS = st.lists(st.tuples(st.sampled_from(["put", "delete"]), st.sampled_from("abcde")), max_size=40)


@given(_OPERATIONS, st.integers(1, 4))
def test_the_past_is_what_it_was(operations: list[tuple[str, str]], page_size: int) -> None:
    store, things = _store()
    states: dict[int, list[str]] = {store.revision: []}
    tokens: list[tuple[str, list[str]]] = []
    for step, (kind, name) in enumerate(operations):
        exists = ("default", name) in things.entries
        if kind == "delete" and exists:
            store.delete("things", name, "default")
        elif kind == "put" and exists:
            store.modify("things", name, "default", lambda one, step=step: one["spec"].update(step=step))
        elif kind == "put":
            store.create("things", _thing(name))
        states[store.revision] = [entry.key[1] for entry in things.state_at(store.revision)]
        first = page(things, Selection(), store.revision, limit=page_size)
        if first.token:
            tokens.append((first.token, states[store.revision][page_size:]))
    for revision, names in states.items():
        assert [entry.key[1] for entry in things.state_at(revision)] == names
    for token, rest in tokens:
        assert [entry.key[1] for entry in page(things, Selection(), store.revision, token=token).entries] == rest


def test_an_expired_page_is_refused() -> None:
    store, things = _store()
    for name in "abc":
        store.create("things", _thing(name))
    first = page(things, Selection(), store.revision, limit=1)
    store.create("things", _thing("bb"))
    store.compact()
    with pytest.raises(ApiError) as expired:
        page(things, Selection(), store.revision, limit=1, token=first.token)
    assert (expired.value.code, expired.value.reason) == (410, "Expired")


def test_a_list_of_the_past_is_refused() -> None:
    store, things = _store()
    with pytest.raises(ApiError) as refused:
        page(things, Selection(), store.revision, revision="100")
    assert refused.value.code == 501


def test_kinds_come_and_go() -> None:
    store, _ = _store()
    store.create("things", _thing("a"))
    assert "things" in store
    store.forget("things")
    with pytest.raises(ApiError) as refused:
        store.list("things")
    assert refused.value.code == 404

"""The store: revisions, history, metadata."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localcluster import ApiError, Store
from localcluster.store.collection import Collection
from localcluster.store.entries import Change, Selection
from localcluster.store.listing import page


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


def test_what_a_caller_holds_is_a_copy() -> None:
    store, _ = _store()
    store.create("things", _thing("a", color="red"))
    store.get("things", "a", "default")["spec"]["color"] = "blue"
    assert store.get("things", "a", "default")["spec"]["color"] == "red"


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


def test_a_list_of_the_past_is_refused() -> None:
    store, things = _store()
    with pytest.raises(ApiError) as refused:
        page(things, Selection(), store.revision, revision="100")
    assert refused.value.code == 501

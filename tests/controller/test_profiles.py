"""The profiles in force: what the machine hears of stored ones. The rules of a book are tested with policies."""

from typing import Any

import pytest

from taintwarden.controller.profiles import ProfileBook
from taintwarden.engine.machine import events

Json = dict[str, Any]


def stored(
    name: str = "fast", value: str = "950", *, namespace: str = "shop", uid: str = "", generation: int = 1
) -> Json:
    """As the API server has it. The value ``wrong`` is one that nobody accepts."""
    return {
        "apiVersion": "taintwarden.io/v1alpha1",
        "kind": "TolerationProfile",
        "metadata": {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}", "generation": generation},
        "spec": {"tolerations": [{"key": "sla", "operator": "Gt", "value": value}]},
    }


class Book(ProfileBook):
    """A book that keeps what it told."""

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
def book() -> Book:
    return Book()


def test_every_profile_of_a_list_is_told(book):
    book.load([stored("a"), stored("b", namespace="bank")])
    assert book.told() == ["shop/a 950", "bank/b 950"]


def test_an_empty_list_tells_nothing(book):
    book.load([])
    assert book.told() == []


def test_profiles_of_one_name_in_two_namespaces_are_two(book):
    book.load([stored("a"), stored("a", namespace="bank")])
    book.gone(stored("a"))
    assert book.told() == ["shop/a 950", "bank/a 950", "shop/a gone"]
    assert set(book.standings) == {"bank/a"}


def test_only_what_changed_is_told(book):
    book.load([stored("a"), stored("b")])
    book.told()
    book.load([stored("a", "900", generation=2), stored("b")])
    assert book.told() == ["shop/a 900"]


def test_what_a_list_does_not_name_is_gone(book):
    book.load([stored("a"), stored("b")])
    book.told()
    book.load([stored("b")])
    assert book.told() == ["shop/a gone"]


def test_a_status_that_changes_is_no_change(book):
    book.seen(stored("a"))
    book.told()
    book.seen(stored("a") | {"status": {"matchedPods": 7}})
    assert book.told() == []


def test_an_invalid_profile_keeps_its_last_valid_version_in_force(book):
    book.seen(stored("a"))
    book.told()
    book.seen(stored("a", "wrong", generation=2))
    assert book.told() == []
    assert "spec.tolerations[0].value" in book.standings["shop/a"].problem
    assert [(key, uid) for key, uid, _ in book.issues] == [("shop/a", "uid-a")]


def test_a_profile_deleted_while_invalid_is_gone(book):
    book.seen(stored("a"))
    book.seen(stored("a", "wrong", generation=2))
    book.told()
    book.gone(stored("a", "wrong", generation=2))
    assert book.told() == ["shop/a gone"]


def test_another_profile_of_the_same_name_inherits_nothing(book):
    book.seen(stored("a"))
    book.told()
    book.seen(stored("a", "wrong", uid="another"))
    assert book.told() == ["shop/a gone"]


def test_what_was_never_valid_is_not_told(book):
    book.seen(stored("a", "wrong"))
    book.gone(stored("a", "wrong"))
    assert book.told() == []

"""Policies as kopf hands them over."""

from typing import Any

import kopf
import pytest

from taintwarden.handlers.policies import watch_policies


class Book:
    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def seen(self, obj: dict[str, Any]) -> None:
        self.calls.append(("seen", obj["metadata"]["name"]))

    def gone(self, obj: dict[str, Any]) -> None:
        self.calls.append(("gone", obj["metadata"]["name"]))


class App:
    def __init__(self, book: Book) -> None:
        self.book = book
        self.handed_over: list[tuple[Any, Any]] = []

    def hand_over(self, action: Any, *args: Any) -> None:
        self.handed_over.append((action, args))


def handlers() -> list[Any]:
    registry = kopf.OperatorRegistry()
    watch_policies(registry)
    return list(registry._watching.get_all_handlers())


def test_policies_are_watched():
    [handler] = handlers()
    assert (handler.selector.group, handler.selector.version) == ("taintwarden.io", "v1alpha1")
    assert handler.selector.any_name == "taintevictionpolicies"


@pytest.mark.parametrize(
    ("kind", "call"), [(None, "seen"), ("ADDED", "seen"), ("MODIFIED", "seen"), ("DELETED", "gone")]
)
async def test_events_go_to_the_book(kind, call):
    [handler] = handlers()
    book = Book()

    app = App(book)
    event = {"type": kind, "object": {"metadata": {"name": "p"}}}
    await handler.fn(event=event, memo=kopf.Memo(app=app))
    assert book.calls == []  # the book lives with the machine, kopf in a loop of its own
    for action, args in app.handed_over:
        action(*args)
    assert book.calls == [(call, "p")]

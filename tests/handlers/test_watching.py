"""Policies and profiles as kopf hands them over."""

from typing import Any

import kopf
import pytest

from taintwarden.handlers.watching import watch_policies, watch_profiles


class Store:
    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def seen(self, obj: dict[str, Any]) -> None:
        self.calls.append(("seen", obj["metadata"]["name"]))

    def gone(self, obj: dict[str, Any]) -> None:
        self.calls.append(("gone", obj["metadata"]["name"]))


class App:
    def __init__(self) -> None:
        self.policies, self.profiles = Store(), Store()
        self.handed_over: list[tuple[Any, Any]] = []

    def hand_over(self, action: Any, *args: Any) -> None:
        self.handed_over.append((action, args))


def handlers() -> dict[str, Any]:
    registry = kopf.OperatorRegistry()
    watch_policies(registry)
    watch_profiles(registry)
    return {handler.selector.any_name: handler for handler in registry._watching.get_all_handlers()}


def test_policies_and_profiles_are_watched():
    found = handlers()
    assert set(found) == {"taintevictionpolicies", "tolerationprofiles"}
    assert {(one.selector.group, one.selector.version) for one in found.values()} == {("taintwarden.io", "v1alpha1")}


@pytest.mark.parametrize("kind", [(None, "seen"), ("ADDED", "seen"), ("MODIFIED", "seen"), ("DELETED", "gone")])
@pytest.mark.parametrize("plural", ["taintevictionpolicies", "tolerationprofiles"])
async def test_events_go_to_the_store(plural, kind):
    happened, call = kind
    app = App()
    mine, other = (app.policies, app.profiles) if plural == "taintevictionpolicies" else (app.profiles, app.policies)
    event = {"type": happened, "object": {"metadata": {"name": "p"}}}
    await handlers()[plural].fn(event=event, memo=kopf.Memo(app=app))
    assert mine.calls == []  # the store lives with the machine, kopf in a loop of its own
    for action, args in app.handed_over:
        action(*args)
    assert (mine.calls, other.calls) == ([(call, "p")], [])

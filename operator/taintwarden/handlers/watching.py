"""TaintEvictionPolicies and TolerationProfiles as kopf watches them."""

from collections.abc import Callable
from typing import Any

import kopf

from taintwarden.controller.stores import Store

GROUP_VERSION = ("taintwarden.io", "v1alpha1")


def watch_policies(registry: kopf.OperatorRegistry) -> None:
    """Register the handler of policies."""
    _watch(registry, "taintevictionpolicies", lambda app: app.policies)


def watch_profiles(registry: kopf.OperatorRegistry) -> None:
    """Register the handler of profiles."""
    _watch(registry, "tolerationprofiles", lambda app: app.profiles)


def _watch(registry: kopf.OperatorRegistry, plural: str, store_of: Callable[[Any], Store[Any]]) -> None:
    """Pass on every change. It is an event handler: kopf writes no finalizers and no annotations for it."""

    @kopf.on.event(*GROUP_VERSION, plural, registry=registry, id=plural)
    async def changed(event: kopf.RawEvent, memo: kopf.Memo, **_: Any) -> None:
        store = store_of(memo.app)
        memo.app.hand_over(store.gone if event["type"] == "DELETED" else store.seen, event["object"])

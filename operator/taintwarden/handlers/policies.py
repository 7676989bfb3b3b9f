"""TaintEvictionPolicies as kopf watches them."""

from typing import Any

import kopf

from taintwarden.controller.policies import PolicyBook

RESOURCE = ("taintwarden.io", "v1alpha1", "taintevictionpolicies")


def watch_policies(registry: kopf.OperatorRegistry) -> None:
    """Register the handler. It is an event handler: kopf writes no finalizers and no annotations for it."""

    @kopf.on.event(*RESOURCE, registry=registry)
    async def policy_changed(event: kopf.RawEvent, memo: kopf.Memo, **_: Any) -> None:
        book: PolicyBook = memo.app.book
        memo.app.hand_over(book.gone if event["type"] == "DELETED" else book.seen, event["object"])

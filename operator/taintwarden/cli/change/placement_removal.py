"""Removes the labels of a key from nodes, in two steps that an operator does not undo.

First every node says that its labels are being removed, so the operator, which would otherwise write them again because
other nodes carry them, leaves them. Then they go. Each step may be repeated, also after an interruption.
"""

import asyncio
from collections.abc import Sequence
from urllib.parse import quote

from taintwarden.engine.placement import Kept, keys_of
from taintwarden.engine.placement.labels import REMOVED, effect_label, label_version_label
from taintwarden.kube.wire.kinds import NodeObject
from taintwarden.kube.wire.resources import NODES
from taintwarden.rehearsal.session import ClusterError, Session

FIELD_MANAGER = "taintwarden-placement"
MAX_ROUNDS = 5
PAUSE_SECONDS = 1.0
"""A write of the operator may be in progress."""


async def remove(session: Session, keys: Sequence[Kept], pause_seconds: float = PAUSE_SECONDS) -> int:
    """Remove all labels about these keys, and look after each pause whether any came back. Returns from how many nodes.

    Raises:
        ClusterError: some nodes still carry them.

    """
    changed: set[str] = set()
    problem = ""
    for _ in range(MAX_ROUNDS):
        nodes = await _carrying(session, keys)
        if not nodes:
            return len(changed)
        changed |= nodes.keys()
        problem = await _write(session, {name: _marked(labels, keys) for name, labels in nodes.items()})
        if not problem:
            problem = await _write(session, {name: dict.fromkeys(labels) for name, labels in nodes.items()})
        await asyncio.sleep(pause_seconds)
    left = len(await _carrying(session, keys))
    msg = f"{left} nodes still carry labels: {problem or 'another client writes them'}. Run the command again"
    raise ClusterError(msg)


async def _carrying(session: Session, keys: Sequence[Kept]) -> dict[str, dict[str, str]]:
    """The nodes with labels about these keys, and these labels."""
    found: dict[str, dict[str, str]] = {}
    async for page in session.pages(NODES.path, NodeObject, NODES.name):
        for node in page:
            labels = node.metadata.labels
            if ours := {label: labels[label] for label in labels if any(one in keys for one in keys_of((label,)))}:
                found[node.metadata.name] = ours
    return found


def _marked(labels: dict[str, str], keys: Sequence[Kept]) -> dict[str, str | None]:
    """The labels of a node while they are removed: one for each key says so."""
    here = [one for one in keys_of(labels) if one in keys]
    marks = [label_version_label(one.key) if one.of_label else effect_label(one.key) for one in here]
    return {**dict.fromkeys(labels), **{label: REMOVED for label in marks if label is not None}}


async def _write(session: Session, wanted: dict[str, dict[str, str | None]]) -> str:
    """Write labels of nodes; returns why one could not be written."""

    async def one(name: str, labels: dict[str, str | None]) -> str:
        try:
            path, body = f"{NODES.path}/{quote(name, safe='')}", {"metadata": {"labels": labels}}
            await session.patch(path, body, f"node {name}", FIELD_MANAGER)
        except ClusterError as error:  # it may be gone
            return str(error)
        return ""

    return next(filter(None, await asyncio.gather(*(one(*pair) for pair in wanted.items()))), "")

"""What changes on which node: pure, and the same for ``DryRun`` and ``Publish``."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from taintwarden.api.objects import label_selector
from taintwarden.engine.numeric import parse_integer
from taintwarden_publisher.levels import keeping, next_level
from taintwarden_publisher.nodes import Node, Taint
from taintwarden_publisher.records import Record, bounds, read_record
from taintwarden_publisher.spec import OnStale, PublisherSpec, annotation

WINDOW = timedelta(minutes=10)
"""Nodes that were changed so lately count, too: a wrong value that spreads from node to node is one wrong value."""
YOUNG = timedelta(minutes=10)
"""The first value of a node that is not older is expected: many nodes may join at once."""


class Kind(StrEnum):
    """What happens to the taint of a node."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


class State(StrEnum):
    """What a node has after a round, apart from its changes."""

    PUBLISHED = "published"
    """A taint of this publisher with the value that it should have."""
    WAITING = "waiting"
    """A taint of this publisher that keeps its value for ``minDwellSeconds``."""
    STALE = "stale"
    """A taint of this publisher whose value is not known any more."""
    WITHOUT_VALUE = "without-value"
    """No taint, since no series has a usable value for it."""
    CONFLICTING = "conflicting"
    """A taint with this key that this publisher did not write."""


class Change(msgspec.Struct, frozen=True):
    """One node's new taints and record."""

    node: Node
    kind: Kind
    before: str
    """The value of the taint; empty if there is none."""
    after: str
    measured: float | None
    taints: tuple[Taint, ...]
    """All taints of the node afterwards."""
    record: Record | None
    counts: bool
    """Whether it counts for ``maxChangedNodes``."""


class Decision(msgspec.Struct, frozen=True):
    """What one round wants."""

    selected: int
    changes: tuple[Change, ...]
    states: Mapping[State, tuple[str, ...]]
    """Nodes that do not change, by what they have."""
    counted: int
    """Nodes that count for ``maxChangedNodes``: of this round, and of the last ten minutes."""
    concerned: int
    """Nodes that are selected, lose their taint, or count: what a percentage is of, so that all are never too many."""
    limit: int

    @property
    def is_too_much(self) -> bool:
        """Whether nothing may be changed."""
        return self.counted > self.limit


class View(msgspec.Struct, frozen=True):
    """What is known when a publisher decides."""

    name: str
    """Of the object."""
    spec: PublisherSpec
    nodes: Sequence[Node]
    values: Mapping[str, float]
    """Measured now, by node."""
    stale: frozenset[str]
    """Nodes without a usable value for ``staleAfterSeconds``."""
    now: datetime
    recent: frozenset[str] = frozenset()
    """Nodes that the publisher changed within ``WINDOW``, as far as that counts for ``maxChangedNodes``."""


def decide(view: View) -> Decision:
    """What to change on which node."""
    selector = label_selector(view.spec.node_selector)
    changes: list[Change] = []
    states: dict[State, list[str]] = {state: [] for state in State}
    selected = 0
    concerned = set(view.recent)
    for node in sorted(view.nodes, key=lambda node: node.name):
        is_selected = selector.selects(node.metadata.labels)
        selected += is_selected
        outcome = _of_node(view, node, is_selected=is_selected)
        if is_selected or isinstance(outcome, Change):
            concerned.add(node.name)
        if isinstance(outcome, Change):
            changes.append(outcome)
        elif outcome is not None:
            states[outcome].append(node.name)
    counting = {change.node.name for change in changes if change.counts}
    counted = len(counting | view.recent) if counting else 0
    limit = allowed(view.spec.max_changed_nodes, len(concerned))
    kept = {state: tuple(names) for state, names in states.items()}
    return Decision(selected, tuple(changes), kept, counted, len(concerned), limit)


def allowed(limit: int | str, nodes: int) -> int:
    """``maxChangedNodes`` of so many nodes; a percentage is rounded up."""
    return limit if isinstance(limit, int) else -(-nodes * int(limit.removesuffix("%")) // 100)


def recorded(name: str, key: str, nodes: Iterable[Node], now: datetime) -> dict[str, timedelta]:
    """How long ago nodes were changed, by their records: of changes within ``WINDOW`` that count.

    For a publisher that starts. A removal has no record, and a kubelet may write that of its own node.
    """
    ages: dict[str, timedelta] = {}
    for node in nodes:
        record = read_record(node.metadata.annotations, key)
        if record is None or record.publisher != name:
            continue
        is_first = record.at - node.metadata.creation_timestamp < YOUNG
        if timedelta() <= now - record.at < WINDOW and not is_first:
            ages[node.name] = now - record.at
    return ages


def withdrawals(name: str, key: str, nodes: Iterable[Node]) -> list[Change]:
    """What removes everything that a publisher wrote, and nothing else."""
    owned = [(node, read_record(node.metadata.annotations, key)) for node in nodes]
    return [_removal(node, key, record) for node, record in owned if record is not None and record.publisher == name]


def _of_node(view: View, node: Node, *, is_selected: bool) -> Change | State | None:
    spec, value = view.spec, view.values.get(node.name)
    record = read_record(node.metadata.annotations, spec.key)
    if not _is_ours(view.name, record, node.taints(spec.key)):
        return State.CONFLICTING if is_selected else None
    if record is None:
        if not is_selected:
            return None
        return State.WITHOUT_VALUE if value is None else _publication(view, node, None, value)
    if not is_selected:
        return _removal(node, spec.key, record)
    if value is None:
        if node.name not in view.stale:
            return State.PUBLISHED
        return _removal(node, spec.key, record) if spec.on_stale is OnStale.REMOVE else State.STALE
    return _publication(view, node, record, value)


def _publication(view: View, node: Node, record: Record | None, value: float) -> Change | State:
    spec = view.spec
    current = None if record is None else parse_integer(record.value)
    number = next_level(spec, current, value)
    taints = node.taints(spec.key)
    effects = set(map(str, spec.effects))
    if record is not None and number == current and taints.keys() == effects:
        return State.PUBLISHED
    if record is not None and number != current and taints and _dwells(view, record):
        return State.WAITING
    kind = Kind.CHANGED if taints else Kind.ADDED
    text = str(number)
    kept = keeping(spec, number)
    assert kept is not None  # noqa: S101 - it is a level
    return Change(
        node=node,
        kind=kind,
        before=record.value if record is not None and taints else "",
        after=text,
        measured=value,
        taints=_with(node, spec, text),
        record=Record(view.name, spec.effects, text, value, view.now.replace(microsecond=0), bounds(kept)),
        counts=kind is Kind.CHANGED or view.now - node.metadata.creation_timestamp >= YOUNG,
    )


def _removal(node: Node, key: str, record: Record) -> Change:
    ours = {(key, effect, record.value) for effect in record.effects}
    left = tuple(one for one in node.spec.taints if (one.get("key"), one.get("effect"), one.get("value")) not in ours)
    return Change(node, Kind.REMOVED, record.value, "", None, left, None, counts=True)


def _is_ours(name: str, record: Record | None, taints: Mapping[str, str]) -> bool:
    """Whether this publisher may write the key on a node: every taint of the key there is one that it wrote."""
    if record is None:
        return not taints
    return record.publisher == name and all(
        effect in record.effects and value == record.value for effect, value in taints.items()
    )


def _dwells(view: View, record: Record) -> bool:
    """Whether the value is too new to be changed. One from the future tells nothing: a clock was wrong."""
    age = view.now - record.at
    return timedelta() <= age < timedelta(seconds=view.spec.min_dwell_seconds)


def _with(node: Node, spec: PublisherSpec, value: str) -> tuple[Taint, ...]:
    """The taints of a node with those of the key replaced: each in its place, with the fields that it has."""
    missing = list(map(str, spec.effects))
    taints: list[Taint] = []
    for one in node.spec.taints:
        if one.get("key") != spec.key:
            taints.append(one)
        elif one.get("effect") in missing:
            missing.remove(str(one["effect"]))
            taints.append({**one, "value": value})
    added: list[dict[str, Any]] = [{"key": spec.key, "value": value, "effect": effect} for effect in missing]
    return (*taints, *added)


def patch(change: Change, key: str) -> dict[str, Any]:
    """A merge patch. It fails if the node has changed since it was read."""
    return {
        "metadata": {
            "resourceVersion": change.node.metadata.resource_version,
            "annotations": {annotation(key): None if change.record is None else change.record.text()},
        },
        "spec": {"taints": [dict(taint) for taint in change.taints]},
    }

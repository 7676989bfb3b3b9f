"""Decisions about the taints of each node. Pure, and the same for ``DryRun`` and ``Publish``."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from taintwarden.api.objects import label_selector
from taintwarden.engine.numeric import parse_integer
from taintwarden_publisher.levels import kept_interval, next_level
from taintwarden_publisher.nodes import Node, Taint
from taintwarden_publisher.records import Record, bounds, read_record
from taintwarden_publisher.spec import OnStale, PublisherSpec, annotation

WINDOW = timedelta(minutes=10)
"""Time for which a changed node counts for ``maxChangedNodes``, so that a fault cannot spread round by round."""
YOUNG = timedelta(minutes=10)
"""Maximum age of a node whose first value does not count for ``maxChangedNodes``. Many nodes may join at once."""


class Kind(StrEnum):
    """Kind of change of a node's taint."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


class State(StrEnum):
    """State of a node that a round does not change."""

    PUBLISHED = "published"
    """A taint of this publisher with the right value, or one whose measured value is missing but not stale yet."""
    WAITING = "waiting"
    """A taint of this publisher that keeps its value for ``minDwellSeconds``."""
    STALE = "stale"
    """A taint of this publisher without a current measured value."""
    WITHOUT_VALUE = "without-value"
    """No taint, since no series has a usable value for the node."""
    CONFLICTING = "conflicting"
    """A taint with this key that this publisher did not write."""


class Change(msgspec.Struct, frozen=True):
    """The new taints and the new record of one node."""

    node: Node
    kind: Kind
    before: str
    after: str
    """The values of the taint before and after the change; empty if there is none."""
    measured: float | None
    taints: tuple[Taint, ...]
    """All taints of the node afterwards."""
    record: Record | None
    counts: bool
    """True if the change counts for ``maxChangedNodes``."""


class Decision(msgspec.Struct, frozen=True):
    """The decision of one round."""

    selected: int
    changes: tuple[Change, ...]
    states: Mapping[State, tuple[str, ...]]
    """State -> names of the nodes that do not change."""
    counted: int
    """Number of nodes of the last ten minutes that count for ``maxChangedNodes``; 0 if no change of this round does."""
    concerned: int
    """Number of nodes that are selected, lose the taint, or count. A percentage is of these, so 100% is not a limit."""
    limit: int

    @property
    def is_too_much(self) -> bool:
        """True if too many nodes would change, so that none may be changed."""
        return self.counted > self.limit


class DecisionInput(msgspec.Struct, frozen=True):
    """Input of a decision."""

    name: str
    """Name of the TaintPublisher."""
    spec: PublisherSpec
    nodes: Sequence[Node]
    values: Mapping[str, float]
    """Node -> its current measured value."""
    stale: frozenset[str]
    """Names of nodes without a usable value for ``staleAfterSeconds``."""
    now: datetime
    recent: frozenset[str] = frozenset()
    """Names of nodes whose changes within ``WINDOW`` count for ``maxChangedNodes``."""


def decide(view: DecisionInput) -> Decision:
    """Decide about all nodes."""
    selector = label_selector(view.spec.node_selector)
    changes: list[Change] = []
    states: dict[State, list[str]] = {state: [] for state in State}
    selected = 0
    concerned = set(view.recent)
    for node in sorted(view.nodes, key=lambda node: node.name):
        is_selected = selector.selects(node.metadata.labels)
        selected += is_selected
        outcome = _decide_node(view, node, is_selected=is_selected)
        if is_selected or isinstance(outcome, Change):
            concerned.add(node.name)
        if isinstance(outcome, Change):
            changes.append(outcome)
        elif outcome is not None:
            states[outcome].append(node.name)
    counting = {change.node.name for change in changes if change.counts}
    counted = len(counting | view.recent) if counting else 0
    limit = max_changes(view.spec.max_changed_nodes, len(concerned))
    kept = {state: tuple(names) for state, names in states.items()}
    return Decision(selected, tuple(changes), kept, counted, len(concerned), limit)


def max_changes(limit: int | str, nodes: int) -> int:
    """Return ``maxChangedNodes`` as a number. A percentage of ``nodes`` is rounded up."""
    return limit if isinstance(limit, int) else -(-nodes * int(limit.removesuffix("%")) // 100)


def recent_changes(name: str, key: str, nodes: Iterable[Node], now: datetime) -> dict[str, timedelta]:
    """Return, for a starting publisher, the age of each node's last change if it is within ``WINDOW`` and counts.

    The ages are from the nodes' records. Removals leave no record, and a kubelet can write the record of its own node.
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
    """Return changes that remove everything that a publisher wrote, and nothing else."""
    owned = [(node, read_record(node.metadata.annotations, key)) for node in nodes]
    return [_removal(node, key, record) for node, record in owned if record is not None and record.publisher == name]


def _decide_node(view: DecisionInput, node: Node, *, is_selected: bool) -> Change | State | None:
    spec, value = view.spec, view.values.get(node.name)
    record = read_record(node.metadata.annotations, spec.key)
    if not _is_own_taint(view.name, record, node.taints(spec.key)):
        return State.CONFLICTING if is_selected else None
    if record is None:
        if not is_selected:
            return None
        return State.WITHOUT_VALUE if value is None else _publication(view, node, None, value)
    if not is_selected:
        return _removal(node, spec.key, record)
    if value is None:
        if not node.taints(spec.key):  # another client removed the taint
            return State.WITHOUT_VALUE
        if node.name not in view.stale:
            return State.PUBLISHED
        return _removal(node, spec.key, record) if spec.on_stale is OnStale.REMOVE else State.STALE
    return _publication(view, node, record, value)


def _publication(view: DecisionInput, node: Node, record: Record | None, value: float) -> Change | State:
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
    kept = kept_interval(spec, number)
    assert kept is not None  # noqa: S101 - it is a level
    return Change(
        node=node,
        kind=kind,
        before=record.value if record is not None and taints else "",
        after=text,
        measured=value,
        taints=_replaced_taints(node, spec, text),
        record=Record(view.name, spec.effects, text, value, view.now.replace(microsecond=0), bounds(kept)),
        counts=kind is Kind.CHANGED or view.now - node.metadata.creation_timestamp >= YOUNG,
    )


def _removal(node: Node, key: str, record: Record) -> Change:
    own = {(key, effect, record.value) for effect in record.effects}
    left = tuple(one for one in node.spec.taints if (one.get("key"), one.get("effect"), one.get("value")) not in own)
    return Change(node, Kind.REMOVED, record.value, "", None, left, None, counts=True)


def _is_own_taint(name: str, record: Record | None, taints: Mapping[str, str]) -> bool:
    """True if this publisher wrote every taint of the key on a node, so that it may change them."""
    if record is None:
        return not taints
    return record.publisher == name and all(
        effect in record.effects and value == record.value for effect, value in taints.items()
    )


def _dwells(view: DecisionInput, record: Record) -> bool:
    """True if the value is too new to be changed. A time in the future is ignored, since a clock was wrong."""
    age = view.now - record.at
    return timedelta() <= age < timedelta(seconds=view.spec.min_dwell_seconds)


def _replaced_taints(node: Node, spec: PublisherSpec, value: str) -> tuple[Taint, ...]:
    """Return a node's taints with new values for the key. Taints keep their position and their other fields."""
    missing = list(map(str, spec.effects))
    taints: list[Taint] = []
    for taint in node.spec.taints:
        if taint.get("key") != spec.key:
            taints.append(taint)
        elif taint.get("effect") in missing:
            missing.remove(str(taint["effect"]))
            taints.append({**taint, "value": value})
    added: list[dict[str, Any]] = [{"key": spec.key, "value": value, "effect": effect} for effect in missing]
    return (*taints, *added)


def patch(change: Change, key: str) -> dict[str, Any]:
    """Return a merge patch that fails if the node has changed since it was read."""
    return {
        "metadata": {
            "resourceVersion": change.node.metadata.resource_version,
            "annotations": {annotation(key): None if change.record is None else change.record.text()},
        },
        "spec": {"taints": [dict(taint) for taint in change.taints]},
    }

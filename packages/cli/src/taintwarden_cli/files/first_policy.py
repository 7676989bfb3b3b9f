"""Carries out ``init``: drafts policies for the taints that nodes of a cluster have."""

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import click
import msgspec

from taintwarden.api.types import GROUP, POLICY_KIND, VERSION
from taintwarden.controller.words.wording import several
from taintwarden.engine.limits.zones import ZONE_LABEL
from taintwarden.engine.machine import NodeView
from taintwarden.engine.model import Effect, Gates, Taint
from taintwarden.engine.natural import parse_natural
from taintwarden.engine.numeric import parse_integer
from taintwarden.engine.policy import Policy, ValueType
from taintwarden.fields.text import printable
from taintwarden_cli.cluster_session import ACTION_NEEDED, ask, settings_of
from taintwarden_cli.doctor.checks.policy_checks import STATIC_MARKERS
from taintwarden_cli.output import fail, listed
from taintwarden_cli.rehearsal.reading import read_nodes_and_policies
from taintwarden_cli.rehearsal.rehearsal import namespaced_name, rehearse
from taintwarden_cli.rehearsal.snapshot import Snapshot
from taintwarden_cli.status.lasting_problems import is_system_key

MIN_SHARE = 0.5
"""A key has a value type if more than this share of its values has it. The others are mistakes."""
MAX_NAMED = 3
"""Maximum number of nodes that a comment names."""


class PolicyDraft(msgspec.Struct, frozen=True):
    """A draft of a policy for one key. ``lowest`` and ``highest`` are values of ``value_type``."""

    key: str
    name: str
    effects: tuple[str, ...]
    nodes: int
    value_type: ValueType | None
    lowest: str = ""
    highest: str = ""
    invalid: tuple[tuple[str, Taint], ...] = ()
    """Nodes whose value is of another type, with the taint."""
    has_zones: bool = False
    """True if a node with the taint is in a zone."""


def show(keys: tuple[str, ...], **flags: object) -> None:
    """Carry out ``taintwarden init``."""
    settings, now = settings_of(flags), time.time()
    snapshot = ask(settings, lambda session: read_nodes_and_policies(session, now))
    found, left_out = draft_policies(snapshot, keys)
    if not found:
        left = "; ".join(f"{printable(key)}: {why}" for key, why in left_out.items())
        named = f" (left out: {left})" if left else ""
        fail(f"no node has a taint for which to write a policy: name one by --key{named}", ACTION_NEEDED)
    lines = [f"# {printable(key)} is left out: {printable(why)}." for key, why in left_out.items()]
    for draft in found:
        lines += ["---", *_policy_lines(draft)]
    click.echo("\n".join(lines))


def draft_policies(snapshot: Snapshot, wanted: Sequence[str]) -> tuple[list[PolicyDraft], dict[str, str]]:
    """Draft policies for the wanted keys, or for those whose values change. Returns also why keys are left out."""
    rehearsal = rehearse(snapshot, Gates())
    taints: dict[str, list[tuple[NodeView, Taint]]] = {}
    for node in filter(None, map(rehearsal.view.node, sorted(rehearsal.view.nodes))):
        for taint, _ in node.taints:
            taints.setdefault(taint.key, []).append((node, taint))
    acting = ((key, one) for one in rehearsal.policies for key, seen in taints.items() if any(_acts(one, seen)))
    known, stored = {key: policy.name for key, policy in acting}, [namespaced_name(one)[1] for one in snapshot.policies]
    found: list[PolicyDraft] = []
    left_out = {key: "no node has it" for key in wanted if key not in taints}
    for key, seen in sorted(taints.items()):
        if not wanted or key in wanted:
            drafted = _draft(key, seen, taken=[*stored, *(draft.name for draft in found)])
            if why := "" if wanted else _why_left_out(drafted, known):
                left_out[key] = why
            else:
                found.append(drafted)
    return found, left_out


def _acts(policy: Policy, seen: Sequence[tuple[NodeView, Taint]]) -> Iterator[bool]:
    return (policy.selector_for(taint) is not None for _, taint in seen)


def _why_left_out(draft: PolicyDraft, known: dict[str, str]) -> str:
    if draft.key in known:
        return f"policy {known[draft.key]} acts on it"
    if draft.key in STATIC_MARKERS:
        return "it states the class of a node, which does not change"
    if is_system_key(draft.key):
        return "a controller sets and removes it"
    return "" if draft.value_type is not None else "its values are neither integers nor versions"


def _draft(key: str, seen: Sequence[tuple[NodeView, Taint]], taken: Sequence[str]) -> PolicyDraft:
    effects, values = {taint.effect for _, taint in seen}, [taint.value for _, taint in seen]
    orders = ((kind, {one: rank for one in values if (rank := parse(one)) is not None}) for kind, parse in _ORDERS)
    fitting = (order for order in orders if sum(map(order[1].__contains__, values)) > MIN_SHARE * len(values))
    kind, ranks = next(fitting, (None, {}))
    valid = sorted(ranks, key=ranks.__getitem__)
    return PolicyDraft(
        key,
        _name(key, taken),
        tuple(effect.value for effect in Effect if effect.value in effects),
        len({node.node.name for node, _ in seen}),
        kind,
        lowest=valid[0] if valid else "",
        highest=valid[-1] if valid else "",
        invalid=tuple((node.node.name, taint) for node, taint in seen if kind and taint.value not in ranks),
        has_zones=any(ZONE_LABEL in node.node.labels for node, _ in seen),
    )


def _parse_version(text: str) -> Any:
    """Parse what looks like a version. The natural order alone accepts almost every text with a digit."""
    return parse_natural(text) if re.match(r"v?[0-9]+(\.[0-9]|$)", text) else None


_ORDERS: tuple[tuple[ValueType, Callable[[str], Any]], ...] = (
    (ValueType.INTEGER, parse_integer),
    (ValueType.VERSION, _parse_version),
)
"""Value types with their parsers, which return None for other values. Integers are first: they are also versions."""


def _name(key: str, taken: Iterable[str]) -> str:
    """Name of the policy: the key without its domain, with a number if the name is taken."""
    base = "".join(one if one.isalnum() and one.isascii() else "-" for one in key.rpartition("/")[2].lower())
    base = base.strip("-") or "taint"
    number, name = 2, base
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    return name


def _policy_lines(draft: PolicyDraft) -> Iterator[str]:
    have = "has" if draft.nodes == 1 else "have"
    yield f"# The policy for {printable(draft.key)}, which {several(draft.nodes, 'node')} {have}."
    yield f"apiVersion: {GROUP}/{VERSION}"
    yield f"kind: {POLICY_KIND}"
    yield "metadata:"
    yield f"  name: {draft.name}"
    yield "spec:"
    yield "  # It reports which pods it would evict, in Events and in taintwarden status, and evicts none."
    yield "  # Set Enforce when these are the right ones."
    yield "  mode: DryRun"
    yield "  taints:"
    yield f"    - key: {json.dumps(draft.key)}"  # whatever it looks like, YAML reads it as text
    if draft.effects != (Effect.NO_EXECUTE.value,):
        yield "      # The effects that the nodes have. Without this field it acts on NoExecute only."
        yield f"      effects: [{', '.join(draft.effects)}]"
    yield from _value_lines(draft)
    yield "      # The scheduler keeps pods off nodes whose value they do not tolerate: else they come back to"
    yield "      # the node that they have to leave. Their namespace needs the label taintwarden.io/inject=true,"
    yield "      # and the webhook has to run. A TolerationProfile says which values pods tolerate."
    yield "      placement: true"
    yield "  timing:"
    yield "    # From a bad value to the eviction, for pods whose tolerations set no grace."
    yield "    violationGraceSeconds: 60"
    yield "    # A value that recovers within this time evicts no pod."
    yield "    stabilizationWindowSeconds: 30"
    yield "  # Rates and the guard against mass evictions have their defaults: see limits."
    if draft.has_zones and draft.value_type is ValueType.INTEGER:
        yield "  limits:"
        yield "    zoneHealth:"
        yield "      # Nodes with such values are unhealthy: pods leave a zone slowly when most of its nodes are. No"
        low = printable(draft.lowest)
        yield f"      # node is now: the lowest value is {low}. Without zoneHealth only the guard stops large waves."
        yield "      unhealthy:"
        yield f"        - {{key: {json.dumps(draft.key)}, operator: Lt, value: {json.dumps(draft.lowest)}}}"


def _value_lines(draft: PolicyDraft) -> Iterator[str]:
    if draft.value_type is None:
        yield "      # Most values are neither integers nor versions: only Equal and Exists tolerate them."
        yield "      valueType: String"
        return
    low, high = printable(draft.lowest), printable(draft.highest)
    sentence = f"all are {low}" if low == high else f"from {low} to {high}"
    yield f"      # The type of the values: {sentence}. Any other value is a mistake, and pods are"
    yield "      # judged by the last valid value."
    if draft.invalid:
        named = [f"{printable(taint.value) or 'none'} on {name}" for name, taint in draft.invalid]
        yield f"      # Not of this type: {listed(named, MAX_NAMED)}. Correct them first."
    yield f"      valueType: {draft.value_type.value}"

"""Changes of taints on nodes: read from flags, and applied."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from taintwarden.engine.limits.zones import ZONE_LABEL, zone_of
from taintwarden.engine.model import Effect, Taint
from taintwarden.engine.policy import Mode
from taintwarden.fields.names import check_key, check_label_value
from taintwarden.kube.wire.kinds import NodeObject, TaintObject
from taintwarden_cli.rehearsal.manifests import BadInput
from taintwarden_cli.rehearsal.rehearsal import namespaced_name

_FORM = "write KEY=VALUE:EFFECT, for example sla=900:NoExecute"


class NodeSelection(msgspec.Struct, frozen=True):
    """Selects nodes by name, by zone (its label, or its name in ``status``) and by labels; each adds nodes."""

    nodes: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    selectors: tuple[str, ...] = ()
    labelled: Mapping[str, Collection[str]] = {}
    """The names of the nodes that each selector selects, as the API server answers."""

    def __str__(self) -> str:
        named = [", ".join(self.nodes), *(f"zone {one}" for one in self.zones), *self.selectors]
        return ", ".join(filter(None, named))

    def check(self) -> None:
        """Check that no label selector is empty, as it would select every node. Raises BadInput if one is."""
        if not all(text.strip() for text in self.selectors):
            raise BadInput("the label selector is empty: name nodes by --node, --zone or labels")

    def find(self, nodes: Sequence[NodeObject]) -> list[NodeObject]:
        """The selected nodes. Raises BadInput if a name, zone or selector matches no node."""
        found: dict[str, NodeObject] = {}
        for name in self.nodes:
            _add_matching(found, [node for node in nodes if node.metadata.name == name], f"there is no node {name}")
        for zone in self.zones:
            labels = ((node, node.metadata.labels) for node in nodes)
            there = [node for node, given in labels if zone in (given.get(ZONE_LABEL), zone_of(given))]
            _add_matching(found, there, f"there is no node in zone {zone}")
        for text in self.selectors:
            there = [node for node in nodes if node.metadata.name in self.labelled[text]]
            _add_matching(found, there, f"no node has the labels {text}")
        return list(found.values())


class Change(msgspec.Struct, frozen=True):
    """Taints that are set and removed on nodes. A taint with the same key and effect is replaced, as kubectl does."""

    selection: NodeSelection
    taints: tuple[Taint, ...] = ()
    remove: tuple[tuple[str, str], ...] = ()
    """Key and effect; an empty effect matches any effect."""

    def __str__(self) -> str:
        removed = [f"{key}:{effect}" if effect else key for key, effect in self.remove]
        parts = [*(f"{taint} on" for taint in self.taints), *(f"no {one} on" for one in removed)]
        return f"{', '.join(parts).removesuffix(' on').replace(' on,', ',')} on {self.selection}"


def enforce_policies(policies: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[Mapping[str, Any]]:
    """The stored policies, with those of these names in mode Enforce. Raises BadInput if a policy does not exist."""
    found = {namespaced_name(policy)[1]: policy for policy in policies}
    for name in names:
        if name not in found:
            msg = f"there is no TaintEvictionPolicy {name}; there is {', '.join(sorted(found)) or 'none at all'}"
            raise BadInput(msg)
        stored = found[name]
        found[name] = {
            **stored,
            # A new generation: the status is that of an older version.
            "metadata": {**stored["metadata"], "generation": stored["metadata"].get("generation", 0) + 1},
            "spec": {**(stored.get("spec") or {}), "mode": Mode.ENFORCE.value, "paused": False},
        }
    return list(found.values())


def apply_changes(changes: Iterable[Change], nodes: Sequence[NodeObject]) -> list[NodeObject]:
    """Apply the changes. Returns the nodes that differ. Raises BadInput if a node or a removed taint does not exist."""
    changed: dict[str, NodeObject] = {}
    for change in changes:
        current = [changed.get(node.metadata.name, node) for node in change.selection.find(nodes)]
        _check_removals(change, [taint for node in current for taint in node.spec.taints])
        for node in current:
            taints = _changed_taints(change, node.spec.taints)
            spec = msgspec.structs.replace(node.spec, taints=taints)
            changed[node.metadata.name] = msgspec.structs.replace(node, spec=spec)
    before = {node.metadata.name: node for node in nodes}
    return [node for name, node in changed.items() if node.spec.taints != before[name].spec.taints]


def _check_removals(change: Change, present: Sequence[TaintObject]) -> None:
    """Reject the removal of a taint that no node has: it is mistyped, and a plan without it would look harmless."""
    for key, effect in change.remove:
        if not any(taint.key == key and effect in ("", taint.effect) for taint in present):
            msg = f"no taint {key}:{effect} to remove on {change.selection}" if effect else ""
            raise BadInput(msg or f"no taint {key} to remove on {change.selection}")


def _changed_taints(change: Change, taints: Sequence[TaintObject]) -> list[TaintObject]:
    taken = {(taint.key, taint.effect) for taint in change.taints}
    kept: list[TaintObject] = [
        taint
        for taint in taints
        if (taint.key, taint.effect) not in taken
        and not any(taint.key == key and effect in ("", taint.effect) for key, effect in change.remove)
    ]
    known = {(taint.key, taint.value, taint.effect): taint for taint in taints}
    wanted = ((taint.key, taint.value, taint.effect) for taint in change.taints)
    return kept + [known.get(fields) or TaintObject(*fields) for fields in wanted]


def parse_taint(text: str) -> Taint:
    """Parse ``KEY=VALUE:EFFECT`` or ``KEY:EFFECT``. Raises BadInput if the text has another form."""
    pair, colon, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    if not colon:
        raise BadInput(f"{text!r} has no effect: {_FORM}")
    return _checked_taint(key, value, effect, text)


def parse_removal(text: str) -> tuple[str, str]:
    """Parse ``KEY`` or ``KEY:EFFECT``. Raises BadInput if the text has another form."""
    key, colon, effect = text.partition(":")
    taint = _checked_taint(key, "", effect if colon else Effect.NO_EXECUTE, text)
    return taint.key, taint.effect if colon else ""


def _checked_taint(key: str, value: str, effect: str, text: str) -> Taint:
    faults = [*check_key(key), *check_label_value(value)]
    if faults:
        raise BadInput(f"{text!r} is not a taint: {faults[0].detail}")
    if effect not in list(Effect):
        raise BadInput(f"{text!r} has effect {effect!r}: write {', '.join(Effect)}")
    return Taint(key, value, effect)


def _add_matching(found: dict[str, NodeObject], nodes: Iterable[NodeObject], problem: str) -> None:
    matching = {node.metadata.name: node for node in nodes}
    if not matching:
        raise BadInput(problem)
    found.update(matching)

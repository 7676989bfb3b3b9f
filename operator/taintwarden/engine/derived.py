"""Derived taints, which are not in a node's spec: a policy names the field of the node from which a value is read.

Every policy treats a derived taint as a taint of the node, with two differences. A taint in the node's spec with the
same key and effect replaces it. It concerns only pods with a toleration for its key: the authors of other pods cannot
know it, and the scheduler does not keep their pods off the node.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from taintwarden.engine.model import Node, SourceValue, Taint, Tolerations, ValueSource, names_key
from taintwarden.engine.policy import Policy


class Derivation(msgspec.Struct, frozen=True):
    """The source of the derived taints with one key, its text, and the effects of the taints."""

    source: ValueSource
    text: str
    effects: tuple[str, ...]


Derivations = Mapping[str, Derivation]
"""Derivations by the key of their taints."""


def derivations(policies: Iterable[Policy]) -> Derivations:
    """Return the derivations of policies in a fixed order. The oldest policy with a source for a key decides."""
    found: dict[str, Derivation] = {}
    for policy in sorted(policies, key=creation_order):
        for selector in policy.taints:
            if selector.source is None:
                continue
            known = found.get(selector.key) or Derivation(selector.source, str(selector.source), ())
            if known.source == selector.source:
                effects = tuple(dict.fromkeys((*known.effects, *selector.effects)))
                found[selector.key] = msgspec.structs.replace(known, effects=effects)
    return found


def source_conflicts(policies: Iterable[Policy]) -> dict[str, str]:
    """Return policy name -> error text, for policies whose source for a key differs from that of an older policy."""
    first: dict[str, tuple[ValueSource, str]] = {}
    found: dict[str, str] = {}
    for policy in sorted(policies, key=creation_order):
        named = {selector.key: selector.source for selector in policy.taints if selector.source is not None}
        for key, source in named.items():
            known, other = first.get(key, (source, ""))
            if known != source:
                found[policy.name] = (
                    f"spec.taints: policy {other}, which is older, reads the taint {key} from {known}, "
                    f"not from {source}: name the same source, or choose another key"
                )
                break
        else:
            first = {key: (source, policy.name) for key, source in named.items()} | first
    return found


def creation_order(policy: Policy) -> tuple[float, str]:
    """Return the sort key of a policy: its creation, then its name."""
    return policy.created_at, policy.name


def with_derived(node: Node, derived: Derivations) -> Node:
    """Return the node with newly derived taints in place of its former derived taints."""
    written = tuple([taint for taint in node.taints if not taint[0].source])
    added = tuple(derived_taints([taint for taint, _ in written], node.values, derived)) if derived else ()
    if not added and len(written) == len(node.taints):
        return node
    return msgspec.structs.replace(node, taints=written + added)


def derived_taints(
    written: Iterable[Taint], values: Mapping[ValueSource, SourceValue], derived: Derivations
) -> Iterator[tuple[Taint, float | None]]:
    """Yield the derived taints of a node with these taints in its spec, each with the time when it began, if known."""
    taken = {(taint.key, taint.effect) for taint in written}
    for key, derivation in derived.items():
        if (value := values.get(derivation.source)) is None:
            continue
        for effect in derivation.effects:
            if (key, effect) not in taken:
                yield Taint(key, value.text, effect, derivation.text), value.since


def concerns(taint: Taint, tolerations: Tolerations) -> bool:
    """Return True if the taint concerns pods with these tolerations: a derived one only if they name its key."""
    return not taint.source or names_key(taint.key, tolerations.native) or names_key(taint.key, tolerations.extended)

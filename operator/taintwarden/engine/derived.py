"""Taints that no client writes: derived from what a node carries anyway, as policies name it.

A derived taint is a taint of the node for every policy, with two differences, as Kubernetes does not know it. A taint
of the node's spec with the same key and effect replaces it. And it concerns only pods with a toleration for its key: no
other pod could know of it, and the scheduler keeps none of them off the node.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from taintwarden.engine.model import Node, Policy, SourceValue, Taint, Tolerations, ValueSource, names_key


class Derivation(msgspec.Struct, frozen=True):
    """The source of the taints with one key, as text too, and their effects."""

    source: ValueSource
    text: str
    effects: tuple[str, ...]


Derivations = Mapping[str, Derivation]
"""By the key of the taints."""


def derivations(policies: Iterable[Policy]) -> Derivations:
    """What policies derive, in a fixed order. If they name several sources for a key, that of the oldest one counts."""
    found: dict[str, Derivation] = {}
    for policy in sorted(policies, key=seniority):
        for selector in policy.taints:
            if selector.source is None:
                continue
            known = found.get(selector.key) or Derivation(selector.source, str(selector.source), ())
            if known.source == selector.source:
                effects = tuple(dict.fromkeys((*known.effects, *selector.effects)))
                found[selector.key] = msgspec.structs.replace(known, effects=effects)
    return found


def rivals(policies: Iterable[Policy]) -> dict[str, str]:
    """The policies that name another source for a key than an older one does: name -> why they cannot be followed."""
    first: dict[str, tuple[ValueSource, str]] = {}
    found: dict[str, str] = {}
    for policy in sorted(policies, key=seniority):
        named = {one.key: one.source for one in policy.taints if one.source is not None}
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


def seniority(policy: Policy) -> tuple[float, str]:
    """Orders policies by their creation, then by name."""
    return policy.created_at, policy.name


def with_derived(node: Node, derived: Derivations) -> Node:
    """The node with exactly these taints derived: those that were derived before do not count."""
    written = tuple([one for one in node.taints if not one[0].source])
    added = tuple(derived_taints([taint for taint, _ in written], node.values, derived)) if derived else ()
    if not added and len(written) == len(node.taints):
        return node
    return msgspec.structs.replace(node, taints=written + added)


def derived_taints(
    written: Iterable[Taint], values: Mapping[ValueSource, SourceValue], derived: Derivations
) -> Iterator[tuple[Taint, float | None]]:
    """What is derived on a node with these taints in its spec, each with the time at which it began, if known."""
    taken = {(taint.key, taint.effect) for taint in written}
    for key, one in derived.items():
        if (value := values.get(one.source)) is None:
            continue
        for effect in one.effects:
            if (key, effect) not in taken:
                yield Taint(key, value.text, effect, one.text), value.since


def concerns(taint: Taint, tolerations: Tolerations) -> bool:
    """Whether pods with these tolerations have to tolerate the taint: a derived one, only if they name its key."""
    return not taint.source or names_key(taint.key, tolerations.native) or names_key(taint.key, tolerations.extended)

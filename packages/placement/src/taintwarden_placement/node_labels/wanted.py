"""Translation of a node's taints, and of the versions in its labels, into the labels that repeat them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from taintwarden.engine.model import Effect, Node, Taint
from taintwarden.engine.natural import parse_natural
from taintwarden.engine.numeric import parse_integer
from taintwarden.engine.policy import Policy, TaintSelector, ValueType
from taintwarden.engine.versions import parse_version
from taintwarden_placement.node_labels.encoding import encode_natural, encode_version, is_misread
from taintwarden_placement.node_labels.names import (
    HIGHEST,
    LOWEST,
    effect_text,
    label_version_label,
    labels_about,
    taint_labels,
)

INEXPRESSIBLE = ""
"""Label value instead of a taint value that cannot be expressed. It is not an integer, so no comparison holds."""


_IS_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?").fullmatch
"""``validation.IsValidLabelValue``. Taints in a node's spec always have such values, derived taints may not."""
_TOO_LONG = "the version {} has too many digits for an integer that sorts as it does"


class Label(msgspec.Struct, frozen=True):
    """A label of a node."""

    key: str
    value: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}"


class NodeLabels(msgspec.Struct, frozen=True):
    """Labels of placement that a node should have; and the taints and labels that these cannot express, with reasons.

    A value that cannot be expressed has empty labels. A taint whose value is not a version has no version label.
    """

    labels: dict[str, str]
    faults: tuple[tuple[Taint | Label, str], ...] = ()
    owned: tuple[str, ...] = ()
    """Names of all labels about the keys that policies name. Labels about other keys are not changed."""

    def applied_to(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Return the ``labels`` of a node with the wanted ones in place of the owned ones."""
        return {**{label: value for label, value in labels.items() if label not in self.owned}, **self.labels}


def wanted_labels(node: Node, policies: Iterable[Policy]) -> NodeLabels:
    """Return the labels of placement that a node should have.

    The result does not depend on whether a policy selects the node, since tolerations do not depend on it either. If
    policies name a key and none places by it, as in DryRun, a node that has labels about the key gets those of a node
    without the taint, so that it matches every pod that was placed by the key.
    """
    policies = tuple(policies)
    named = dict.fromkeys(selector.key for policy in policies for selector in policy.taints)
    named_labels = dict.fromkeys(key for policy in policies for key in policy.version_labels)
    placing = [selector for policy in policies if not policy.rehearses for selector in policy.taints]
    selectors = [selector for selector in placing if selector.placement]
    placed, published = placed_keys(policies), published_labels(policies)
    ended = [key for key in named if key not in placed and any(label in node.labels for label in labels_about(key))]
    repeated = [key for key in named_labels if key not in published and label_version_label(key) in node.labels]
    of_taints = node_labels([taint for taint, _ in node.taints], selectors)
    of_labels = version_labels(node.labels, published)
    labels = {
        **neutral_labels(ended),
        **version_labels(node.labels, repeated).labels,
        **of_taints.labels,
        **of_labels.labels,
    }
    owned = [label for key in named for label in labels_about(key)]
    owned += [label for key in named_labels if (label := label_version_label(key))]
    return NodeLabels(labels, of_taints.faults + of_labels.faults, tuple(owned))


def placed_keys(policies: Iterable[Policy]) -> tuple[str, ...]:
    """Return the keys of taints by which these policies place pods."""
    placing = (policy for policy in policies if not policy.rehearses)
    return tuple(dict.fromkeys(selector.key for policy in placing for selector in policy.taints if selector.placement))


def published_labels(policies: Iterable[Policy]) -> tuple[str, ...]:
    """Return the keys of node labels whose versions are repeated as numbers."""
    placing = (policy for policy in policies if not policy.rehearses)
    return tuple(dict.fromkeys(key for policy in placing for key in policy.version_labels))


def node_labels(taints: Iterable[Taint], selectors: Iterable[TaintSelector]) -> NodeLabels:
    """Return the labels for those ``taints`` of a node whose key one of ``selectors`` names with ``placement``.

    They repeat taints of each effect that keeps pods off, even if no policy evicts by that effect. They depend on no
    other field of a policy: a pod that was placed by a label needs it while it runs.
    """
    types: dict[str, list[ValueType | None]] = {}
    for selector in selectors:
        if selector.placement:
            types.setdefault(selector.key, []).append(selector.value_type)
    found: dict[str, list[Taint]] = {key: [] for key in types}
    for taint in taints:
        if taint.key in found and taint.effect != Effect.PREFER_NO_SCHEDULE:
            found[taint.key].append(taint)
    labels: dict[str, str] = {}
    faults: list[tuple[Taint | Label, str]] = []
    for key, same_key in found.items():
        for taint, fault in _add_labels(labels, key, same_key, types[key]):
            faults.append((taint, fault))
    return NodeLabels(labels, tuple(faults))


def neutral_labels(keys: Iterable[str]) -> dict[str, str]:
    """Return the labels of a node that has no taint with these keys. Such a node matches every pod placed by them."""
    return node_labels((), (TaintSelector(key, placement=True) for key in keys)).labels


def version_labels(labels: Mapping[str, str], keys: Iterable[str]) -> NodeLabels:
    """Return the labels that repeat the versions in those ``labels`` of a node that ``keys`` name."""
    found: dict[str, str] = {}
    faults: list[tuple[Taint | Label, str]] = []
    for key in keys:
        if (value := labels.get(key)) is None or (repeated := label_version_label(key)) is None:
            continue
        version = parse_version(value)
        number = None if version is None else encode_version(version)
        if number is not None:
            found[repeated] = str(number)
        else:
            faults.append((Label(key, value), "it is not a version" if version is None else _TOO_LONG.format(value)))
    return NodeLabels(found, tuple(faults))


def _add_labels(
    labels: dict[str, str], key: str, taints: Sequence[Taint], types: Sequence[ValueType | None]
) -> Iterator[tuple[Taint, str]]:
    """Add the labels for the taints of one key. Yields at most one inexpressible taint, with the reason."""
    names = taint_labels(key)
    if names is None:
        if taints:
            yield taints[-1], "the prefix of its key is too long for a label"
        return
    if taints:
        value, version, fault = _label_values(taints, types)
        labels[names.value], labels[names.high_value] = value, INEXPRESSIBLE if value == HIGHEST else value
        if parse_integer(value) is not None:
            labels[names.low_value] = value
        if version is not None:  # without its label no comparison holds
            labels[names.version] = version
        if version:
            labels[names.low_version] = version
        if order := _order(taints):
            labels[names.order] = order
        if fault:
            yield taints[-1], fault
    else:
        labels |= dict.fromkeys((names.high_value, names.version), HIGHEST)
        labels |= dict.fromkeys((names.low_value, names.low_version), LOWEST)
    if text := effect_text(taint.effect for taint in taints):
        labels[names.effect] = text


def _label_values(taints: Sequence[Taint], types: Sequence[ValueType | None]) -> tuple[str, str | None, str]:
    """Return the label values for the value and the version of taints with one key, and a fault or ""."""
    value = taints[0].value
    if other := next((taint for taint in taints if taint.value != value), None):
        fault = f"{taints[0]} and {other} have different values, which cannot be expressed by one label"
        return INEXPRESSIBLE, INEXPRESSIBLE, fault
    number, fault = _version_number(value, types)
    if is_misread(value):
        fault = f"{value} is not a canonical integer, but the scheduler would compare it as {int(value)}"
        return INEXPRESSIBLE, number or INEXPRESSIBLE, fault
    if _IS_LABEL_VALUE(value) is None:
        words = fault or f"{value} cannot be the value of a label"
        return INEXPRESSIBLE, number or INEXPRESSIBLE, "" if number and ValueType.VERSION in types else words
    if value == HIGHEST:
        fault = f"{value} stands for a node without the taint"
    return value, number or None, fault


def _order(taints: Sequence[Taint]) -> str:
    """Return the label value for the position in the natural order; empty if the label is omitted."""
    value = taints[0].value
    version = parse_natural(value)
    if version is None or any(taint.value != value for taint in taints):
        return ""
    return str(encode_natural(version)[0])


def _version_number(value: str, types: Sequence[ValueType | None]) -> tuple[str, str]:
    """Return the label value for a version, empty if the label is omitted, and a fault or ""."""
    version = parse_version(value)
    if version is None:
        return "", ""
    number = encode_version(version)
    if number is not None:
        return str(number), ""
    # Without a type, a long integer is more likely an integer than a version.
    is_meant = ValueType.VERSION in types or (None in types and parse_integer(value) is None)
    return "", _TOO_LONG.format(value) if is_meant else ""

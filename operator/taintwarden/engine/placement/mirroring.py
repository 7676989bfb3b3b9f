"""Translates the taints of a node, and the versions in its labels, into the labels that repeat them."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from taintwarden.engine.matching.numeric import parse_integer
from taintwarden.engine.matching.versions import parse_version
from taintwarden.engine.model import Effect, Taint, TaintSelector, ValueType
from taintwarden.engine.placement.encoding import encode_version, is_misread
from taintwarden.engine.placement.labels import (
    effect_label,
    effect_text,
    label_version_label,
    prefer_value_label,
    prefer_version_label,
    value_label,
    version_label,
)

LEFT_OUT = ""
"""Replaces a value that cannot be expressed: not an integer, so no comparison of the scheduler holds for it."""


_TOO_LONG = "the version {} has too many digits for an integer that sorts as it does"


class Label(msgspec.Struct, frozen=True):
    """A label of a node."""

    key: str
    value: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}"


class NodeLabels(msgspec.Struct, frozen=True):
    """Taintwarden labels that a node should have; and what labels cannot express, each with the reason.

    A value that is left out is empty on the value and version labels; a taint without value has no version label.
    """

    labels: dict[str, str]
    faults: tuple[tuple[Taint | Label, str], ...] = ()


def node_labels(taints: Iterable[Taint], selectors: Iterable[TaintSelector]) -> NodeLabels:
    """The labels for those ``taints`` of a node whose key one of ``selectors`` names with ``placement``.

    They repeat taints of every effect: whether a policy evicts by it is of no concern to the scheduler.
    """
    types: dict[str, list[ValueType | None]] = {}
    for selector in selectors:
        if selector.placement:
            types.setdefault(selector.key, []).append(selector.value_type)
    found: dict[str, list[Taint]] = {key: [] for key in types}
    for taint in taints:
        if taint.key in found:
            found[taint.key].append(taint)
    labels: dict[str, str] = {}
    faults: list[tuple[Taint | Label, str]] = []
    for key, same_key in found.items():
        preferred = [taint for taint in same_key if taint.effect == Effect.PREFER_NO_SCHEDULE]
        required = [taint for taint in same_key if taint.effect != Effect.PREFER_NO_SCHEDULE]
        for group, value, version in (
            (required, value_label(key), version_label(key)),
            (preferred, prefer_value_label(key), prefer_version_label(key)),
        ):
            one, fault = _labels_of(group, value, version, types[key]) if group else ({}, "")
            labels |= one
            if fault:
                faults.append((group[-1], fault))
        if (label := effect_label(key)) and (text := effect_text(taint.effect for taint in required)):
            labels[label] = text
    return NodeLabels(labels, tuple(faults))


def version_labels(labels: Mapping[str, str], keys: Iterable[str]) -> NodeLabels:
    """The numbers of the versions in those ``labels`` of a node that ``keys`` name."""
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
            faults.append((Label(key, value), "it is no version" if version is None else _TOO_LONG.format(value)))
    return NodeLabels(found, tuple(faults))


def _labels_of(
    taints: Sequence[Taint], value_key: str | None, version_key: str | None, types: Sequence[ValueType | None]
) -> tuple[dict[str, str], str]:
    if value_key is None or version_key is None:
        return {}, "the prefix of its key is too long for a label"
    value = taints[0].value
    if other := next((taint for taint in taints if taint.value != value), None):
        fault = f"{taints[0]} and {other} have different values, which cannot be expressed by one label"
        return {value_key: LEFT_OUT, version_key: LEFT_OUT}, fault
    number, fault = _version_number(value, types)
    if is_misread(value):
        fault = f"{value} is no canonical integer, but the scheduler would compare it as {int(value)}"
        return {value_key: LEFT_OUT, version_key: number or LEFT_OUT}, fault
    return {value_key: value} | ({version_key: number} if number else {}), fault


def _version_number(value: str, types: Sequence[ValueType | None]) -> tuple[str, str]:
    """The text of the version's label, empty for none, and a fault to report about that."""
    wanted = [kind for kind in types if kind in (None, ValueType.VERSION)]
    version = parse_version(value) if wanted else None
    if version is None:
        return "", ""
    number = encode_version(version)
    if number is not None:
        return str(number), ""
    # Without a type, a long integer is more likely an integer than a version.
    is_meant = ValueType.VERSION in wanted or parse_integer(value) is None
    return "", _TOO_LONG.format(value) if is_meant else ""

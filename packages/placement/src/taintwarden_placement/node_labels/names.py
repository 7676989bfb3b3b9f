"""The labels that repeat a taint or a version on its node. A function returns None where the prefix is too long."""

from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

import msgspec

from taintwarden.engine.model import Effect
from taintwarden.engine.numeric import MAX_INT64
from taintwarden.fields.names import is_placeable


class Domain(StrEnum):
    """The suffix of a label's prefix: what the label says of the key that its own key names."""

    VALUE = "value.taintwarden.io"
    """The value of the taint; not there without the taint."""
    HIGH_VALUE = "value-or-max.taintwarden.io"
    """What ``Gt`` and ``Equal`` compare with: the value, and the greatest integer without the taint."""
    LOW_VALUE = "value-or-min.taintwarden.io"
    """What ``Lt`` compares with: the value, and 0 without the taint."""
    VERSION = "version.taintwarden.io"
    """What ``SemverGt`` and ``SemverEq`` compare with: the version as a number, the greatest without the taint."""
    LOW_VERSION = "version-or-min.taintwarden.io"
    """What ``SemverLt`` compares with: the version as a number, and 0 without the taint."""
    ORDER = "order.taintwarden.io"
    """What the ``Version`` operators compare with: the place of the value in the natural order as a number; not there
    without the taint."""
    EFFECT = "effect.taintwarden.io"
    LABEL_VERSION = "label-version.taintwarden.io"
    """The version in another label, as a number."""


NO_EFFECT = "None"
"""The effects of a taint that the node does not have. A node without the label was not looked at yet."""
HIGHEST, LOWEST = str(MAX_INT64), "0"
"""The values of a node without the taint: above and below whatever is compared, since labels have no sign."""


class Kept(NamedTuple):
    """A key that labels of placement are about: of a taint, or of another label."""

    key: str
    of_label: bool = False


class TaintLabels(msgspec.Struct, frozen=True):
    """The labels that terms about one key name: which of them an operator is compared with.

    Without values that mean "no such taint", the high and the low label are the same.
    """

    value: str
    high_value: str
    low_value: str
    version: str
    low_version: str
    effect: str = ""
    order: str = ""


def taint_labels(key: str) -> TaintLabels | None:
    """The labels for the taint ``key``; None if its prefix is too long."""
    if (value := value_label(key)) is None:
        return None
    domains = (Domain.HIGH_VALUE, Domain.LOW_VALUE, Domain.VERSION, Domain.LOW_VERSION, Domain.EFFECT, Domain.ORDER)
    return TaintLabels(value, *(_label(key, domain) or "" for domain in domains))


def plain_labels(value: str, version: str) -> TaintLabels:
    """A label with a value, and one with its version: no value means that it is absent."""
    return TaintLabels(value, value, value, version, version)


def value_label(key: str) -> str | None:
    """The label with the value of the taint ``key``, as text without changes."""
    return _label(key, Domain.VALUE)


def label_version_label(key: str) -> str | None:
    """The label with the version in the value of another label, ``key``, as an integer."""
    return _label(key, Domain.LABEL_VERSION)


@lru_cache(maxsize=1_000)
def labels_about(key: str) -> tuple[str, ...]:
    """All labels about the taint ``key``; none if its prefix is too long."""
    labels = (_label(key, domain) for domain in Domain if domain is not Domain.LABEL_VERSION)
    return tuple(label for label in labels if label is not None)


def effect_text(effects: Iterable[str]) -> str | None:
    """The label value for these effects; None if the label is omitted: for ``NoExecute`` and no other effect."""
    found = sorted(set(effects))
    return None if found == [Effect.NO_EXECUTE] else "_".join(found) or NO_EFFECT


@lru_cache(maxsize=10_000)
def mirrored(label: str) -> Kept | None:
    """What a node's label is about; None if it is no label of ours. No other actor may write one of ours."""
    prefix, has_prefix, name = label.partition("/")
    for domain in Domain if has_prefix else ():
        of_label = domain is Domain.LABEL_VERSION
        if prefix == domain:
            return Kept(name, of_label)
        if prefix.endswith(f".{domain}"):
            return Kept(f"{prefix.removesuffix(f'.{domain}')}/{name}", of_label)
    return None


def is_mirror_label(label: str) -> bool:
    """Whether a node's label is a Taintwarden label, for any taint or label."""
    return mirrored(label) is not None


def keys_of(labels: Iterable[str]) -> list[Kept]:
    """The keys that labels are about, each once. Labels that are none of ours are about no key."""
    return list(dict.fromkeys(about for label in labels if (about := mirrored(label)) is not None))


def _label(key: str, domain: Domain) -> str | None:
    if not is_placeable(key):
        return None
    prefix, has_prefix, name = key.rpartition("/")
    return f"{prefix}.{domain}/{name}" if has_prefix else f"{domain}/{name}"

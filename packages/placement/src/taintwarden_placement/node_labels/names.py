"""Names of the labels that repeat taints and versions. There is none for a key whose label prefix would be too long."""

from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

import msgspec

from taintwarden.engine.model import Effect
from taintwarden.engine.numeric import MAX_INT64
from taintwarden.fields.names import is_placeable


class Domain(StrEnum):
    """End of a label key's prefix: which property of a taint, or of another label, the label repeats."""

    VALUE = "value.taintwarden.io"
    """The value of the taint. Absent without the taint."""
    HIGH_VALUE = "value-or-max.taintwarden.io"
    """The value, for ``Gt`` and ``Equal``. Without the taint the greatest integer."""
    LOW_VALUE = "value-or-min.taintwarden.io"
    """The value, for ``Lt``. Without the taint 0."""
    VERSION = "version.taintwarden.io"
    """The version as a number, for ``SemverGt`` and ``SemverEq``. Without the taint the greatest integer."""
    LOW_VERSION = "version-or-min.taintwarden.io"
    """The version as a number, for ``SemverLt``. Without the taint 0."""
    ORDER = "order.taintwarden.io"
    """The position in the natural order as a number, for the ``Version`` operators. Absent without the taint."""
    EFFECT = "effect.taintwarden.io"
    LABEL_VERSION = "label-version.taintwarden.io"
    """The version in another label as a number."""


NO_EFFECT = "None"
"""Value of the label of effects on a node without the taint."""
HIGHEST, LOWEST = str(MAX_INT64), "0"
"""Values on a node without the taint: no threshold is above the first or below the second, as labels have no sign."""


class LabelSubject(NamedTuple):
    """The subject of labels of placement: the key of a taint, or of another label if ``of_label``."""

    key: str
    of_label: bool = False


class TaintLabels(msgspec.Struct, frozen=True):
    """Names of the labels that terms about one key compare.

    ``high_value`` and ``low_value`` are the same for a plain label, since none of its values means "no such taint".
    """

    value: str
    high_value: str
    low_value: str
    version: str
    low_version: str
    effect: str = ""
    order: str = ""


def taint_labels(key: str) -> TaintLabels | None:
    """Return the labels for the taint ``key``; None if its prefix is too long."""
    if (value := value_label(key)) is None:
        return None
    domains = (Domain.HIGH_VALUE, Domain.LOW_VALUE, Domain.VERSION, Domain.LOW_VERSION, Domain.EFFECT, Domain.ORDER)
    return TaintLabels(value, *(_label(key, domain) or "" for domain in domains))


def plain_labels(value: str, version: str) -> TaintLabels:
    """Return the names for terms about a label and its version label. Without the label, a node has neither."""
    return TaintLabels(value, value, value, version, version)


def value_label(key: str) -> str | None:
    """Return the label with the value of the taint ``key``, empty if inexpressible; None if its prefix is too long."""
    return _label(key, Domain.VALUE)


def label_version_label(key: str) -> str | None:
    """Return the label that repeats the version in the label ``key`` as an integer; None if its prefix is too long."""
    return _label(key, Domain.LABEL_VERSION)


@lru_cache(maxsize=1_000)
def labels_about(key: str) -> tuple[str, ...]:
    """Return all labels about the taint ``key``; none if its prefix is too long."""
    labels = (_label(key, domain) for domain in Domain if domain is not Domain.LABEL_VERSION)
    return tuple(label for label in labels if label is not None)


def effect_text(effects: Iterable[str]) -> str | None:
    """Return the value of the label of effects; None, which omits the label, if ``NoExecute`` is the only effect."""
    found = sorted(set(effects))
    return None if found == [Effect.NO_EXECUTE] else "_".join(found) or NO_EFFECT


@lru_cache(maxsize=10_000)
def label_subject(label: str) -> LabelSubject | None:
    """Return the subject of a label of placement; None for other labels. Only the labeller may write these labels."""
    prefix, has_prefix, name = label.partition("/")
    for domain in Domain if has_prefix else ():
        of_label = domain is Domain.LABEL_VERSION
        if prefix == domain:
            return LabelSubject(name, of_label)
        if prefix.endswith(f".{domain}"):
            return LabelSubject(f"{prefix.removesuffix(f'.{domain}')}/{name}", of_label)
    return None


def is_placement_label(label: str) -> bool:
    """True if a node's label is a label of placement."""
    return label_subject(label) is not None


def subjects_of(labels: Iterable[str]) -> list[LabelSubject]:
    """Return the subjects of the labels of placement in ``labels``, without duplicates."""
    return list(dict.fromkeys(about for label in labels if (about := label_subject(label)) is not None))


def _label(key: str, domain: Domain) -> str | None:
    if not is_placeable(key):
        return None
    prefix, has_prefix, name = key.rpartition("/")
    return f"{prefix}.{domain}/{name}" if has_prefix else f"{domain}/{name}"

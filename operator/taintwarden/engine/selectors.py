"""Kubernetes label selectors, compiled once and evaluated often."""

from collections.abc import Mapping
from enum import StrEnum

import msgspec


class SelectorOperator(StrEnum):
    """The operators of ``matchExpressions``."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class Requirement(msgspec.Struct, frozen=True):
    """One requirement on one label; all requirements of a selector must hold."""

    key: str
    operator: SelectorOperator
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Return True if ``labels`` meet the requirement. ``NotIn`` holds for an absent label, as in Kubernetes."""
        value = labels.get(self.key)
        match self.operator:
            case SelectorOperator.IN:
                return value is not None and value in self.values
            case SelectorOperator.NOT_IN:
                return value is None or value not in self.values
            case SelectorOperator.EXISTS:
                return value is not None
            case SelectorOperator.DOES_NOT_EXIST:
                return value is None


class LabelSelector(msgspec.Struct, frozen=True):
    """``matchLabels`` and ``matchExpressions`` in one list. Without requirements it selects everything."""

    requirements: tuple[Requirement, ...] = ()

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Return True if every requirement holds for ``labels``."""
        return all(requirement.holds(labels) for requirement in self.requirements)


EVERYTHING = LabelSelector()

"""The parts of node affinity that are used here."""

from enum import StrEnum

import msgspec


class NodeOperator(StrEnum):
    """The operators of ``nodeSelectorTerms[].matchExpressions`` that are used here."""

    IN = "In"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


class NodeRequirement(msgspec.Struct, frozen=True):
    """One entry of ``matchExpressions``."""

    key: str
    operator: NodeOperator
    values: tuple[str, ...] = ()

    def as_json(self) -> dict[str, str | list[str]]:
        """The entry in the form of the API."""
        written: dict[str, str | list[str]] = {"key": self.key, "operator": self.operator.value}
        return written | {"values": list(self.values)} if self.values else written


Term = tuple[NodeRequirement, ...]
"""Requirements that all have to hold."""

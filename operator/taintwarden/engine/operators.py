"""The table of operators: one row for each operator by which a toleration compares the value of a taint.

A row names the family of its operator, which parses values, and the side on which a taint's value has to lie. From
these two follow how a toleration compares, which values it takes, which gate it needs, and (in
``taintwarden_placement.affinity.translation``) which requirement on a node's labels is equivalent.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from enum import Enum, StrEnum
from typing import Any

import msgspec

from taintwarden.engine.model import Gates, Taint, Toleration
from taintwarden.engine.natural import explain_natural, parse_natural
from taintwarden.engine.numeric import explain_integer, parse_integer
from taintwarden.engine.policy import ValueType
from taintwarden.engine.versions import explain_text, explain_text_order, explain_version, parse_version

ALL_GATES = Gates()


class Operator(StrEnum):
    """Operator of a toleration: ``taint.value OPERATOR toleration.value``, the taint always on the left.

    KEP-5471 defines ``Gt``/``Lt``, and KEP-5721 ``Semver*``; only Taintwarden has ``In``/``NotIn`` and ``Version*``.
    """

    EQUAL = "Equal"
    EXISTS = "Exists"
    IN = "In"
    NOT_IN = "NotIn"
    GT = "Gt"
    LT = "Lt"
    SEMVER_GT = "SemverGt"
    SEMVER_LT = "SemverLt"
    SEMVER_EQ = "SemverEq"
    VERSION_GT = "VersionGt"
    VERSION_LT = "VersionLt"
    VERSION_EQ = "VersionEq"


class Side(Enum):
    """Position of a taint's value relative to the value, or the values, of a toleration that holds."""

    ANYWHERE = "anywhere"
    AT = "at"
    BESIDE = "beside"
    ABOVE = "above"
    BELOW = "below"


class Family(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Properties of operators that parse values alike.

    Attributes:
        value_type: type that the value of a taint must have; None if no value is read.
        parse: returns a value in the form that compares; None if the text is no such value.
        explain: returns why a text is no such value and what to write instead; None if it is one.
        takes: field of a toleration that is compared with the taint: ``value``, ``values``, or none ("").
        gate: setting without which these operators never hold; "" if there is none.
        example: a valid value.
        server: what an API server needs to accept the operators in ``spec.tolerations``; None: no server accepts them.

    """

    value_type: ValueType | None = None
    parse: Callable[[str], Any] = str
    explain: Callable[[str], str | None] = lambda _: None
    takes: str = ""
    gate: str = ""
    example: str = ""
    server: str | None = ""

    def is_on(self, gates: Gates) -> bool:
        """Return True if the settings enable these operators."""
        return not self.gate or bool(getattr(gates, self.gate))


EVERYTHING = Family()
TEXT = Family(value_type=ValueType.STRING, takes="value", example="gold")
TEXTS = Family(value_type=ValueType.STRING, takes="values", example="gold", server=None)
INTEGER = Family(
    value_type=ValueType.INTEGER,
    parse=parse_integer,
    explain=explain_integer,
    takes="value",
    gate="numeric_operators",
    example="950",
    server="Kubernetes 1.35 or newer with the feature gate TaintTolerationComparisonOperators",
)
SEMVER = Family(
    value_type=ValueType.VERSION,
    parse=parse_version,
    explain=explain_version,
    takes="value",
    gate="semver_operators",
    example="1.28.0",
    server="an API server that has KEP-5721",
)
VERSION = Family(
    value_type=ValueType.VERSION,
    parse=parse_natural,
    explain=explain_natural,
    takes="value",
    example="5.15.0-91-generic",
    server=None,
)
TYPED: Mapping[ValueType, Family] = {
    ValueType.INTEGER: INTEGER,
    ValueType.VERSION: VERSION,
    ValueType.STRING: TEXT,
}
"""Families that validate values by the ``valueType`` of a policy. A version only needs a place in the natural order."""


class Row(msgspec.Struct, frozen=True, gc=False):
    """One operator.

    Attributes:
        is_comparison: True if a pod has a grace period when a value stops satisfying the operator. False for
            ``Equal`` and ``Exists`` of Kubernetes, whose ``tolerationSeconds`` limit for how long they hold.

    """

    operator: Operator
    family: Family
    side: Side
    is_comparison: bool = True

    @property
    def is_exact(self) -> bool:
        """True if the operator names values, so that a value between two others may have another result than both."""
        return self.side in (Side.AT, Side.BESIDE)

    def wanted(self, toleration: Toleration) -> Any:
        """Return the operand of a toleration; None if the family cannot parse it, so that it never holds."""
        return toleration.values or None if self.family.takes == "values" else self.family.parse(toleration.value)

    def holds(self, value: Hashable, wanted: Any) -> bool:
        """Return True if the operator holds for a parsed value of a taint. ``wanted``: operand from :meth:`wanted`."""
        match self.side:
            case Side.ANYWHERE:
                return True
            case Side.AT:
                return bool(value in wanted if self.family.takes == "values" else value == wanted)
            case Side.BESIDE:
                return value not in wanted
            case Side.ABOVE:
                return bool(value > wanted)
            case Side.BELOW:
                return bool(value < wanted)


_TABLE = (
    Row(Operator.EQUAL, TEXT, Side.AT, is_comparison=False),
    Row(Operator.EXISTS, EVERYTHING, Side.ANYWHERE, is_comparison=False),
    Row(Operator.IN, TEXTS, Side.AT),
    Row(Operator.NOT_IN, TEXTS, Side.BESIDE),
    Row(Operator.GT, INTEGER, Side.ABOVE),
    Row(Operator.LT, INTEGER, Side.BELOW),
    Row(Operator.SEMVER_GT, SEMVER, Side.ABOVE),
    Row(Operator.SEMVER_LT, SEMVER, Side.BELOW),
    Row(Operator.SEMVER_EQ, SEMVER, Side.AT),
    Row(Operator.VERSION_GT, VERSION, Side.ABOVE),
    Row(Operator.VERSION_LT, VERSION, Side.BELOW),
    Row(Operator.VERSION_EQ, VERSION, Side.AT),
)
ROWS: Mapping[str, Row] = {row.operator: row for row in _TABLE} | {"": _TABLE[0]}
"""Rows by the text of their operator. Kubernetes reads an absent operator as ``Equal``."""


class Match(StrEnum):
    """Result of comparing a toleration with a taint. Only ``HOLDS`` tolerates; the others are reasons why not."""

    HOLDS = "holds"
    OTHER_EFFECT = "is for another effect"
    OTHER_KEY = "is for another key"
    DIFFERS = "does not hold"
    INVALID_TAINT = "cannot compare the taint's value"
    INVALID_TOLERATION = "has a value that cannot be compared"
    GATE_OFF = "uses an operator that is switched off"
    UNKNOWN_OPERATOR = "has an unknown operator"


def applies(toleration: Toleration, taint: Taint) -> bool:
    """Return True if ``toleration`` applies to the key and effect of ``taint``."""
    return toleration.effect in ("", taint.effect) and toleration.key in ("", taint.key)


def match(toleration: Toleration, taint: Taint, gates: Gates = ALL_GATES) -> Match:
    """Compare a toleration with a taint, which is always on the left: ``taint.value OPERATOR toleration.value``."""
    if toleration.effect not in ("", taint.effect):
        return Match.OTHER_EFFECT
    if toleration.key not in ("", taint.key):
        return Match.OTHER_KEY
    row = ROWS.get(toleration.operator)
    return Match.UNKNOWN_OPERATOR if row is None else _compare(row, toleration, taint, gates)


def why_not(
    tolerations: Iterable[Toleration], taint: Taint, gates: Gates = ALL_GATES
) -> list[tuple[Toleration, Match]]:
    """Return the tolerations for this taint that do not hold, each with the reason."""
    answers = [(toleration, match(toleration, taint, gates)) for toleration in tolerations]
    return [
        (toleration, answer)
        for toleration, answer in answers
        if answer not in (Match.OTHER_KEY, Match.OTHER_EFFECT, Match.HOLDS)
    ]


def is_comparison(toleration: Toleration) -> bool:
    """Return True if a toleration is a comparison: its operator is known, and neither ``Equal`` nor ``Exists``."""
    row = ROWS.get(toleration.operator)
    return row is not None and row.is_comparison


def caution(toleration: Toleration, value: str | None = None) -> tuple[str, str]:
    """Explain why a semantic comparison may be unintended, and what to write instead; both empty if there is no doubt.

    Args:
        toleration: the toleration whose value is compared.
        value: value of a taint; None: any value.

    """
    row = ROWS.get(toleration.operator)
    if row is None or row.family is not SEMVER:
        return "", ""
    reason = explain_text(toleration.value) if value is None else explain_text_order(value, toleration.value)
    if not reason:
        return "", ""
    other = next(one.operator for one in _TABLE if one.family is VERSION and one.side is row.side)
    return reason, f"use {other}, which compares the numbers in it, and valueType Version in the policy"


def _compare(row: Row, toleration: Toleration, taint: Taint, gates: Gates) -> Match:
    family = row.family
    if not family.is_on(gates):
        return Match.GATE_OFF
    wanted = row.wanted(toleration)
    if wanted is None:
        return Match.INVALID_TOLERATION
    value = family.parse(taint.value)
    if value is None:
        return Match.INVALID_TAINT
    return Match.HOLDS if row.holds(value, wanted) else Match.DIFFERS

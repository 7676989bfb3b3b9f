"""The comparison of one toleration with one taint, for all seven operators."""

from collections.abc import Callable, Iterable
from enum import StrEnum

from taintwarden.engine.matching.numeric import parse_integer
from taintwarden.engine.matching.versions import parse_version
from taintwarden.engine.model import NUMERIC_OPERATORS, SEMVER_OPERATORS, Gates, Operator, Taint, Toleration

ALL_GATES = Gates()


class Match(StrEnum):
    """The result of a toleration for a taint. Only ``HOLDS`` tolerates; the others are reasons why not."""

    HOLDS = "holds"
    OTHER_EFFECT = "is for another effect"
    OTHER_KEY = "is for another key"
    DIFFERS = "does not hold"
    INVALID_TAINT = "cannot compare the taint's value"
    INVALID_TOLERATION = "has a value that cannot be compared"
    GATE_OFF = "uses an operator that is switched off"
    UNKNOWN_OPERATOR = "has an unknown operator"


_COMPARE: dict[str, Callable[..., bool]] = {
    Operator.GT: lambda taint, wanted: taint > wanted,
    Operator.LT: lambda taint, wanted: taint < wanted,
    Operator.SEMVER_GT: lambda taint, wanted: taint > wanted,
    Operator.SEMVER_LT: lambda taint, wanted: taint < wanted,
    Operator.SEMVER_EQ: lambda taint, wanted: taint == wanted,
}


def applies(toleration: Toleration, taint: Taint) -> bool:
    """Whether ``toleration`` applies to the key and effect of ``taint``."""
    return toleration.effect in ("", taint.effect) and toleration.key in ("", taint.key)


def match(toleration: Toleration, taint: Taint, gates: Gates = ALL_GATES) -> Match:
    """Compare, with the reason. ``taint.value OPERATOR toleration.value``: the taint is always on the left."""
    if toleration.effect not in ("", taint.effect):
        return Match.OTHER_EFFECT
    if toleration.key != taint.key and not (toleration.key == "" and toleration.operator == Operator.EXISTS):
        return Match.OTHER_KEY
    operator = toleration.operator or Operator.EQUAL
    if operator == Operator.EXISTS:
        return Match.HOLDS
    if operator == Operator.EQUAL:
        return Match.HOLDS if taint.value == toleration.value else Match.DIFFERS
    if operator in NUMERIC_OPERATORS:
        return _compare(operator, parse_integer, toleration, taint, is_on=gates.numeric_operators)
    if operator in SEMVER_OPERATORS:
        return _compare(operator, parse_version, toleration, taint, is_on=gates.semver_operators)
    return Match.UNKNOWN_OPERATOR


def why_not(
    tolerations: Iterable[Toleration], taint: Taint, gates: Gates = ALL_GATES
) -> list[tuple[Toleration, Match]]:
    """The tolerations for this taint that do not hold, each with the reason."""
    answers = [(toleration, match(toleration, taint, gates)) for toleration in tolerations]
    return [
        (toleration, answer)
        for toleration, answer in answers
        if answer not in (Match.OTHER_KEY, Match.OTHER_EFFECT, Match.HOLDS)
    ]


def _compare(
    operator: str, parse: Callable[[str], object], toleration: Toleration, taint: Taint, *, is_on: bool
) -> Match:
    if not is_on:
        return Match.GATE_OFF
    wanted = parse(toleration.value)
    if wanted is None:
        return Match.INVALID_TOLERATION
    value = parse(taint.value)
    if value is None:
        return Match.INVALID_TAINT
    return Match.HOLDS if _COMPARE[operator](value, wanted) else Match.DIFFERS

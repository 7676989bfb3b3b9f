"""Translation of the tolerations for one taint key and effect into alternative terms about node labels."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from semver import Version

from taintwarden.engine.affinity import NodeOperator, NodeRequirement, Term
from taintwarden.engine.model import Effect, Gates, Taint, Toleration
from taintwarden.engine.natural import Natural
from taintwarden.engine.numeric import MAX_INT64
from taintwarden.engine.operators import ROWS, VERSION, Match, Side, match
from taintwarden.engine.policy import ValueType
from taintwarden_placement.node_labels.encoding import encode_natural, encode_version, is_misread
from taintwarden_placement.node_labels.names import HIGHEST, TaintLabels

# The values of taints and labels that apimachinery's validation.IsValidLabelValue accepts.
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_BOUNDS = (Side.ABOVE, Side.BELOW)


class _Bounds:
    """The most permissive lower and upper threshold of one order."""

    def __init__(self) -> None:
        self.above: Any = None
        self.below: Any = None

    def add(self, side: Side, bound: Any) -> None:
        """Replace the threshold of this side if ``bound`` permits more values."""
        if side is Side.ABOVE:
            self.above = bound if self.above is None else min(self.above, bound)
        else:
            self.below = bound if self.below is None else max(self.below, bound)


class Translation:
    """A translation in two steps: call :meth:`add` with each toleration, then :meth:`terms`.

    Args:
        labels: the node labels to compare. A label value that means "no such taint" passes every comparison.
        gates: which operators are switched on.

    """

    def __init__(self, labels: TaintLabels, gates: Gates) -> None:
        self.faults: list[str] = []
        """Sentences about tolerated nodes that are left out."""
        self._labels = labels
        self._absent = (HIGHEST,) if labels.high_value != labels.value else ()
        self._gates = gates
        self._matches_all = False
        self._matches_empty = False
        self._added: list[Toleration] = []
        self._excluded: tuple[str, ...] | None = None
        """The values that no ``NotIn`` tolerates; None if there is no ``NotIn``."""
        self._values: dict[str, None] = {}
        self._versions: dict[int, None] = {}
        self._orders: dict[int, None] = {}
        self._integer_bounds, self._version_bounds, self._order_bounds = _Bounds(), _Bounds(), _Bounds()

    def add(self, toleration: Toleration) -> None:
        """Include the nodes that this toleration tolerates. A toleration that can never hold adds nothing."""
        row = ROWS.get(toleration.operator)
        if row is None or not row.family.is_on(self._gates) or (wanted := row.wanted(toleration)) is None:
            return
        self._added.append(toleration)
        match row.family.value_type:
            case None:
                self._matches_all = True
            case ValueType.STRING if row.side is Side.BESIDE:
                known = self._excluded
                self._excluded = wanted if known is None else tuple(one for one in known if one in wanted)
            case ValueType.STRING if row.side is Side.AT:
                for value in toleration.values or (toleration.value,):
                    self._add_value(toleration, value)
            case ValueType.INTEGER if row.side in _BOUNDS:
                self._integer_bounds.add(row.side, wanted)
            case ValueType.VERSION if row.side in (Side.AT, *_BOUNDS):
                add = self._add_order if row.family is VERSION else self._add_version
                add(toleration, row.side, wanted)
            case _:  # a new operator: without an error, nodes would be left out unnoticed
                raise NotImplementedError(f"{toleration}: no node requirement expresses this operator")

    def terms(self) -> tuple[Term, ...] | None:
        """Return alternative terms for a node with the taint; None, and no faults, if all nodes are included."""
        excluded = None if self._excluded is None else [one for one in self._excluded if not self._is_tolerated(one)]
        if self._matches_all or excluded == []:
            self.faults.clear()
            return None
        if excluded is not None:
            self.faults.clear()
            return tuple(self._terms_except(excluded))
        return (*self._value_terms(), *self._version_terms(), *self._order_terms())

    # -- collecting

    def _add_value(self, toleration: Toleration, value: str) -> None:
        if not value:
            self._matches_empty = True
        elif is_misread(value):
            self.faults.append(f"{toleration}: nodes with {value} are left out, since it is not a canonical integer")
        else:
            self._values[value] = None

    def _add_version(self, toleration: Toleration, side: Side, version: Version) -> None:
        number = encode_version(version)
        if side is Side.AT and number is not None and not version.prerelease:
            self._versions[number] = None
        elif side is Side.AT:
            self._add_spellings(toleration, str(version), f"v{version}")
        elif number is None:
            self.faults.append(f"{toleration}: is left out, since the version has too many digits for a label")
        else:
            self._version_bounds.add(side, version)

    def _add_spellings(self, toleration: Toleration, *texts: str) -> None:
        self.faults.append(f"{toleration}: only nodes that spell the version {' or '.join(texts)} match")
        self._values |= dict.fromkeys(text for text in texts if _LABEL_VALUE.fullmatch(text))

    def _add_order(self, toleration: Toleration, side: Side, version: Natural) -> None:
        number, is_exact = encode_natural(version)
        if side is not Side.AT:
            self._order_bounds.add(side, (version, toleration.value))
        elif is_exact:
            self._orders[number] = None
        else:
            self._add_spellings(toleration, toleration.value)

    # -- results

    def _is_tolerated(self, value: str) -> bool:
        return any(
            match(one, Taint(one.key, value, one.effect or Effect.NO_EXECUTE), self._gates) is Match.HOLDS
            for one in self._added
        )

    def _terms_except(self, excluded: Sequence[str]) -> Iterator[Term]:
        """Yield terms for every value except ``excluded``. A value that cannot be expressed does not match."""
        label, others = self._labels.high_value, tuple(dict.fromkeys((*excluded, "")))
        yield NodeRequirement(label, NodeOperator.EXISTS), NodeRequirement(label, NodeOperator.NOT_IN, others)
        if "" not in excluded:
            yield self._empty_value_term()

    def _value_terms(self) -> Iterator[Term]:
        """Yield terms for integers and named values. Labels have no sign; the API server rejects signed operands."""
        above, below = self._integer_bounds.above, self._integer_bounds.below
        if above is not None and above < 0:
            above, below = 0, max(below or 0, 1)  # "less than 1" includes zero in any spelling
        above = None if above == MAX_INT64 else above
        below = None if below is not None and below <= 0 else below
        labels = self._labels
        yield from _comparisons(labels.high_value, labels.low_value, above, below, self._values, self._absent)
        if self._matches_empty:  # the labels of a value that cannot be expressed are empty, too
            yield self._empty_value_term()

    def _empty_value_term(self) -> Term:
        without_version = NodeRequirement(self._labels.version, NodeOperator.DOES_NOT_EXIST)
        return NodeRequirement(self._labels.value, NodeOperator.IN, ("",)), without_version

    def _version_terms(self) -> Iterator[Term]:
        """Yield terms for versions. Pre-releases of a version share one number, so some are left out and reported."""
        lowest, highest = self._version_bounds.above, self._version_bounds.below
        above, below = (None if one is None else encode_version(one) for one in (lowest, highest))
        for bound, side in ((lowest, "above"), (highest, "below")):
            if bound is None or not bound.prerelease or (bound is highest and bound.prerelease == "0"):
                continue  # no pre-release sorts below pre-release 0
            if not _is_outside(encode_version(bound), above, below):
                reason = "are left out: labels cannot order them"
                self.faults.append(f"pre-releases of {bound.finalize_version()} {side} {bound} {reason}")
        labels = self._labels
        yield from _comparisons(labels.version, labels.low_version, above, below, self._versions, self._absent)

    def _order_terms(self) -> Iterator[Term]:
        lowest, highest = self._order_bounds.above, self._order_bounds.below
        above, below = (None if one is None else encode_natural(one[0])[0] for one in (lowest, highest))
        for bound, side in ((lowest, "above"), (highest, "below")):
            number, is_exact = (None, True) if bound is None else encode_natural(bound[0])
            if not is_exact and not _is_outside(number, above, below):
                reason = "their label holds only the beginning of a long version"
                self.faults.append(f"versions {side} {bound[1]} that begin as it does are left out: {reason}")
        yield from _comparisons(self._labels.order, self._labels.order, above, below, self._orders)


def _comparisons(
    high: str, low: str, above: int | None, below: int | None, values: Iterable[object], absent: Sequence[str] = ()
) -> Iterator[Term]:
    """Yield terms for numbers above ``above``, below ``below``, or in ``values`` or ``absent`` (no such taint)."""
    if above is not None:
        yield (NodeRequirement(high, NodeOperator.GT, (str(above),)),)
    if below is not None:
        yield (NodeRequirement(low, NodeOperator.LT, (str(below),)),)
    if texts := tuple(map(str, values)):
        yield (NodeRequirement(high, NodeOperator.IN, (*texts, *absent)),)


def _is_outside(number: int | None, above: int | None, below: int | None) -> bool:
    """True if a number is greater than ``above`` or less than ``below``."""
    return number is not None and ((above is not None and number > above) or (below is not None and number < below))

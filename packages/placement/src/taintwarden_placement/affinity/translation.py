"""Collects the tolerations for one taint and effect as requirements on a node's labels: any of them is enough.

For preferences no node meets two of the terms: the scheduler adds the weights of all that a node meets, so a node that
is tolerated twice would score higher than one without the taint. Required terms may overlap, and are fewer.
"""

import re
from collections.abc import Iterator, Sequence

from semver import Version

from taintwarden.api.placement_labels import HIGHEST, TaintLabels
from taintwarden.engine.affinity import NodeOperator, NodeRequirement, Term
from taintwarden.engine.model import Effect, Gates, Taint, Toleration, ValueType
from taintwarden.engine.natural import Natural
from taintwarden.engine.numeric import MAX_INT64, parse_integer
from taintwarden.engine.operators import ROWS, VERSION, Match, Side, match
from taintwarden.engine.versions import parse_version
from taintwarden_placement.node_labels.encoding import encode_natural, encode_version, is_misread

# Of a taint's value and of a label's: validation.IsValidLabelValue of apimachinery.
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_BOUNDS = (Side.ABOVE, Side.BELOW)


class Translation:
    """Add the tolerations one by one, then call :meth:`terms`. A toleration that can never hold adds nothing.

    Args:
        labels: what is compared. Where they have values that stand for "no such taint", comparisons hold for these.
        gates: which operators may match at all.
        disjoint: no node meets two terms.

    """

    def __init__(self, labels: TaintLabels, gates: Gates, *, disjoint: bool = False) -> None:
        self.faults: list[str] = []
        """Sentences about nodes that are tolerated and left out."""
        self._labels = labels
        self._absent = (HIGHEST,) if labels.high_value != labels.value else ()
        self._gates = gates
        self._disjoint = disjoint
        self._everything = False
        self._empty = False
        self._added: list[Toleration] = []
        self._excluded: tuple[str, ...] | None = None
        """The values that no ``NotIn`` tolerates; None without one."""
        self._values: dict[str, None] = {}
        self._versions: dict[int, None] = {}
        self._above: int | None = None
        self._below: int | None = None
        self._above_version: Version | None = None
        self._below_version: Version | None = None
        self._orders: dict[int, None] = {}
        self._above_order: tuple[Natural, str] | None = None
        self._below_order: tuple[Natural, str] | None = None

    def add(self, toleration: Toleration) -> None:
        """Also include the nodes that this toleration tolerates."""
        row = ROWS.get(toleration.operator)
        if row is None or not row.family.is_on(self._gates) or (wanted := row.wanted(toleration)) is None:
            return
        self._added.append(toleration)
        match row.family.value_type:
            case None:
                self._everything = True
            case ValueType.STRING if row.side is Side.BESIDE:
                known = self._excluded
                self._excluded = wanted if known is None else tuple(one for one in known if one in wanted)
            case ValueType.STRING:
                for value in toleration.values or (toleration.value,):
                    self._equal(toleration, value)
            case ValueType.INTEGER if row.side in _BOUNDS:
                self._bound(row.side, wanted)
            case ValueType.VERSION if row.side in (Side.AT, *_BOUNDS):
                add = self._order if row.family is VERSION else self._version
                add(toleration, row.side, wanted)
            case _:  # a new row of the table: a guess would leave out nodes, and nothing would show it
                raise NotImplementedError(f"{toleration}: no requirement of a node says what it accepts")

    def terms(self) -> tuple[Term, ...] | None:
        """One of these has to hold for a node with the taint; None: all nodes are included, so there are no faults."""
        excluded = None if self._excluded is None else [one for one in self._excluded if not self._is_tolerated(one)]
        if self._everything or excluded == []:
            self.faults.clear()
            return None
        if excluded is not None:
            self.faults.clear()
            return tuple(self._all_but(excluded))
        bounds = self._of_bounds()
        texts = [text for text in self._values if not _is_outside(parse_integer(text), self._above, self._below)]
        versions = self._of_versions(texts)
        others = [*self._besides(versions, bounds, self._labels.version), *self._of_texts(texts), *versions]
        orders = self._of_orders()
        return (*self._besides(orders, others, self._labels.order), *orders)

    # -- collecting

    def _equal(self, toleration: Toleration, value: str) -> None:
        if not value:
            self._empty = True
        elif is_misread(value):
            self.faults.append(f"{toleration}: nodes with {value} are left out, since it is no canonical integer")
        else:
            self._values[value] = None

    def _bound(self, side: Side, bound: int) -> None:
        if side is Side.ABOVE:
            self._above = bound if self._above is None else min(self._above, bound)
        else:
            self._below = bound if self._below is None else max(self._below, bound)

    def _version(self, toleration: Toleration, side: Side, version: Version) -> None:
        number = encode_version(version)
        if side is Side.AT:
            self._same_version(toleration, version, number)
        elif number is None:
            self.faults.append(f"{toleration}: is left out, since the version has too many digits for a label")
        elif side is Side.ABOVE:
            known = self._above_version
            self._above_version = version if known is None else min(known, version)
        else:
            known = self._below_version
            self._below_version = version if known is None else max(known, version)

    def _same_version(self, toleration: Toleration, version: Version, number: int | None) -> None:
        if number is not None and not version.prerelease:
            self._versions[number] = None
            return
        self._spelled(toleration, str(version), f"v{version}")

    def _spelled(self, toleration: Toleration, *texts: str) -> None:
        self.faults.append(f"{toleration}: only nodes that spell it {' or '.join(texts)} are found")
        self._values |= dict.fromkeys(text for text in texts if _LABEL_VALUE.fullmatch(text))

    def _order(self, toleration: Toleration, side: Side, version: Natural) -> None:
        bound = (version, toleration.value)
        if side is Side.AT:
            number, is_exact = encode_natural(version)
            if is_exact:
                self._orders[number] = None
            else:
                self._spelled(toleration, toleration.value)
        elif side is Side.ABOVE:
            self._above_order = bound if self._above_order is None else min(self._above_order, bound)
        else:
            self._below_order = bound if self._below_order is None else max(self._below_order, bound)

    # -- results

    def _is_tolerated(self, value: str) -> bool:
        return any(
            match(one, Taint(one.key, value, one.effect or Effect.NO_EXECUTE), self._gates) is Match.HOLDS
            for one in self._added
        )

    def _all_but(self, excluded: Sequence[str]) -> Iterator[Term]:
        """Every value but those. What cannot be expressed is empty on both labels, and may be one of them."""
        label, others = self._labels.high_value, tuple(dict.fromkeys((*excluded, "")))
        yield NodeRequirement(label, NodeOperator.EXISTS), NodeRequirement(label, NodeOperator.NOT_IN, others)
        if "" not in excluded:
            yield self._without_value()

    def _of_bounds(self) -> list[Term]:
        """No label has a sign, and the API server rejects a sign in a requirement."""
        found: list[Term] = []
        if self._above is not None and self._above < 0:
            self._below = max(self._below or 0, 1)  # zero, however it is spelled
        if self._above is not None and self._below is not None:
            self._above = max(self._above, self._below - 1)
        if self._above is not None and self._above < MAX_INT64:
            found.append((NodeRequirement(self._labels.high_value, NodeOperator.GT, (str(max(self._above, 0)),)),))
        if self._below is not None and self._below > 0:
            found.append((NodeRequirement(self._labels.low_value, NodeOperator.LT, (str(self._below),)),))
        return found

    def _of_texts(self, texts: Sequence[str]) -> list[Term]:
        found: list[Term] = []
        if texts:
            found.append((NodeRequirement(self._labels.high_value, NodeOperator.IN, (*texts, *self._absent)),))
        if self._empty:  # what cannot be expressed is empty on both labels
            found.append(self._without_value())
        return found

    def _without_value(self) -> Term:
        without_version = NodeRequirement(self._labels.version, NodeOperator.DOES_NOT_EXIST)
        return NodeRequirement(self._labels.value, NodeOperator.IN, ("",)), without_version

    def _of_versions(self, texts: Sequence[str]) -> list[Term]:
        above = None if self._above_version is None else encode_version(self._above_version)
        below = None if self._below_version is None else encode_version(self._below_version)
        if above is not None and below is not None:
            above = max(above, below - 1)
        found: list[NodeRequirement] = []
        if above is not None:
            found.append(NodeRequirement(self._labels.version, NodeOperator.GT, (str(above),)))
        if below is not None:
            found.append(NodeRequirement(self._labels.low_version, NodeOperator.LT, (str(below),)))
        if versions := [number for number in self._versions if not _is_outside(number, above, below)]:
            found.append(NodeRequirement(self._labels.version, NodeOperator.IN, (*map(str, versions), *self._absent)))
        self._tell_siblings(above, below)
        spelled = [text for text in texts if self._is_found_by_number(text, above, below)]
        others = (NodeRequirement(self._labels.value, NodeOperator.NOT_IN, tuple(spelled)),)
        besides = others if spelled and self._disjoint else ()
        return [(requirement, *besides) for requirement in found]

    def _of_orders(self) -> list[Term]:
        above, below = (
            None if one is None else encode_natural(one[0])[0] for one in (self._above_order, self._below_order)
        )
        if above is not None and below is not None:
            above = max(above, below - 1)
        found: list[NodeRequirement] = []
        if above is not None:
            found.append(NodeRequirement(self._labels.order, NodeOperator.GT, (str(above),)))
        if below is not None:
            found.append(NodeRequirement(self._labels.order, NodeOperator.LT, (str(below),)))
        if orders := [number for number in self._orders if not _is_outside(number, above, below)]:
            found.append(NodeRequirement(self._labels.order, NodeOperator.IN, tuple(map(str, orders))))
        for bound, side in ((self._above_order, "above"), (self._below_order, "below")):
            number, is_exact = (None, True) if bound is None else encode_natural(bound[0])
            if bound is not None and not is_exact and not _is_outside(number, above, below):
                reason = "their label holds only the beginning of a long version"
                self.faults.append(f"versions {side} {bound[1]} that begin as it does are left out: {reason}")
        return [(requirement,) for requirement in found]

    def _besides(self, versions: Sequence[Term], bounds: list[Term], label: str) -> list[Term]:
        """The terms of ``bounds`` without the nodes of ``versions``: an integer is a version, too, 3 is 3.0.0.

        ``label``: with which the terms of ``versions`` begin.
        """
        if not (versions and self._disjoint):
            return bounds
        others = tuple([_opposite(requirement) for requirement, *_ in versions])
        alternatives = [others]
        if any(requirement.operator != NodeOperator.NOT_IN for requirement in others):  # which holds without the label
            alternatives.append((NodeRequirement(label, NodeOperator.DOES_NOT_EXIST),))
        return [(*bound, *besides) for bound in bounds for besides in alternatives]

    def _is_found_by_number(self, text: str, above: int | None, below: int | None) -> bool:
        version = parse_version(text)
        number = None if version is None else encode_version(version)
        return number in self._versions or _is_outside(number, above, below)

    def _tell_siblings(self, above: int | None, below: int | None) -> None:
        """Report the pre-releases that have the number of a bound, unless the other bound includes them."""
        lowest, highest = self._above_version, self._below_version
        if lowest is not None and lowest.prerelease and not _is_outside(encode_version(lowest), above, below):
            self._tell_left_out(lowest, "above")
        if highest is None or not highest.prerelease or highest.prerelease == "0":  # none sorts below that one
            return
        if not _is_outside(encode_version(highest), above, below):
            self._tell_left_out(highest, "below")

    def _tell_left_out(self, version: Version, side: str) -> None:
        self.faults.append(
            f"pre-releases of {version.finalize_version()} {side} {version} are left out: labels cannot order them"
        )


def _is_outside(number: int | None, above: int | None, below: int | None) -> bool:
    """Whether a number is above the one or below the other."""
    return number is not None and ((above is not None and number > above) or (below is not None and number < below))


def _opposite(requirement: NodeRequirement) -> NodeRequirement:
    """What holds for every number for which ``requirement`` does not."""
    key, values = requirement.key, requirement.values
    match requirement.operator:
        case NodeOperator.GT:
            return NodeRequirement(key, NodeOperator.LT, (str(int(values[0]) + 1),))
        case NodeOperator.LT if int(values[0]) > 0:
            return NodeRequirement(key, NodeOperator.GT, (str(int(values[0]) - 1),))
        case NodeOperator.LT:  # of no number: none is negative
            return NodeRequirement(key, NodeOperator.EXISTS)
        case _:
            return NodeRequirement(key, NodeOperator.NOT_IN, values)

"""The table of operators: each row is complete, and each place that names operators has a word for it."""

import json
from pathlib import Path
from typing import Any

import pytest

from taintwarden.api.tolerations import ExtendedToleration, check_toleration, parse_tolerations
from taintwarden.engine.evaluate import judge
from taintwarden.engine.model import Taint, Toleration
from taintwarden.engine.operators import ROWS, Match, Operator, Side, applies, caution, is_comparison, match, why_not
from taintwarden.engine.policy import TolerationSecondsMode
from taintwarden_placement.affinity.requirements import requirements

ROOT = Path(__file__).resolve().parents[2]
OPERATORS = list(Operator)
COMPARING = [one for one in OPERATORS if ROWS[one].family.takes]


def written(operator: Operator) -> dict[str, Any]:
    """A valid entry of the annotation with an operator."""
    family = ROWS[operator].family
    given: dict[str, Any] = {"key": "k", "operator": operator.value}
    match family.takes:
        case "values":
            given["values"] = [family.example]
        case "value":
            given["value"] = family.example
    return given


def toleration(operator: Operator) -> Toleration:
    """Toleration that is parsed from the entry of this operator."""
    (read,), faults = parse_tolerations(json.dumps([written(operator)]))
    assert not faults
    return read


def test_every_operator_has_one_row():
    assert set(ROWS) == {"", *Operator}
    assert len({id(ROWS[one]) for one in Operator}) == len(Operator)


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_example_of_its_family_is_a_value_that_it_takes(operator):
    row = ROWS[operator]
    assert row.wanted(toleration(operator)) is not None
    assert row.family.explain(row.family.example) is None


@pytest.mark.parametrize("operator", COMPARING)
def test_without_what_it_compares_with_it_is_refused(operator):
    faults = list(check_toleration(ExtendedToleration("k", operator)))
    assert [fault.path for fault in faults] == ([] if operator is Operator.EQUAL else [ROWS[operator].family.takes])


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_field_that_it_does_not_compare_with_is_refused(operator):
    takes = ROWS[operator].family.takes
    for field, given in (("value", "a"), ("values", ["a"])):
        if field != takes:
            tolerations, faults = parse_tolerations(json.dumps([{**written(operator), field: given}]))
            assert not tolerations
            assert faults[0].path.endswith(f"[0].{field}")


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_labels_of_a_node_say_what_it_compares(operator):
    """Nothing is required for what holds everywhere, and something for all else."""
    assert requirements("k", [toleration(operator)]).unrestricted is (ROWS[operator].side is Side.ANYWHERE)


@pytest.mark.parametrize("operator", OPERATORS)
def test_only_comparisons_have_a_grace(operator):
    tolerations, _ = parse_tolerations(json.dumps([{**written(operator), "violationGraceSeconds": 5}]))
    assert bool(tolerations) is ROWS[operator].is_comparison


@pytest.mark.parametrize("operator", [one for one in OPERATORS if ROWS[one].is_comparison])
def test_the_grace_of_a_comparison_counts(operator):
    read = Toleration(**{**structure(toleration(operator)), "violation_grace_seconds": 5})
    value = {Side.BESIDE: ROWS[operator].family.example, Side.AT: "0"}.get(ROWS[operator].side)
    value = value or {Side.ABOVE: "1", Side.BELOW: "9999"}[ROWS[operator].side]
    judgement = judge([read], Taint("k", value), TolerationSecondsMode.AFTER_VIOLATION)
    assert (judgement.tolerated, judgement.seconds, judgement.exact) == (False, 5, ROWS[operator].is_exact)


def structure(read: Toleration) -> dict[str, Any]:
    return {name: getattr(read, name) for name in read.__struct_fields__}


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_documents_explain_it(operator):
    table = (ROOT / "docs" / "concepts.md").read_text()
    assert any(line.startswith("|") and f"`{operator}`" in line for line in table.splitlines())


ANSWERS = [
    (Toleration("k", value="b"), Match.HOLDS),
    (Toleration("k", "Equal", "a"), Match.DIFFERS),
    (Toleration("", "Exists"), Match.HOLDS),
    (Toleration("k", "In", values=("a", "b")), Match.HOLDS),
    (Toleration("k", "In", values=("a", "c")), Match.DIFFERS),
    (Toleration("k", "NotIn", values=("a", "c")), Match.HOLDS),
    (Toleration("k", "NotIn", values=("a", "b")), Match.DIFFERS),
    (Toleration("k", "Gt", "1"), Match.INVALID_TAINT),
    (Toleration("k", "Gt", "b"), Match.INVALID_TOLERATION),
    (Toleration("k", "Like", "b"), Match.UNKNOWN_OPERATOR),
    (Toleration("other", "Exists"), Match.OTHER_KEY),
    (Toleration("k", "Exists", effect="NoSchedule"), Match.OTHER_EFFECT),
]


@pytest.mark.parametrize(("given", "answer"), ANSWERS)
def test_a_toleration_holds_or_it_is_known_why_not(given, answer):
    taint, is_for_another = Taint("k", "b"), answer in (Match.OTHER_KEY, Match.OTHER_EFFECT)
    assert match(given, taint) is answer
    assert applies(given, taint) is not is_for_another
    assert why_not([given], taint) == ([] if is_for_another or answer is Match.HOLDS else [(given, answer)])


def test_only_a_known_operator_besides_those_of_kubernetes_is_a_comparison():
    found = [one for one in ("", "Equal", "Exists", "In", "Gt", "Like") if is_comparison(Toleration("k", one))]
    assert found == ["In", "Gt"]


@pytest.mark.parametrize("operator", [Operator.IN, Operator.NOT_IN])
def test_an_empty_list_never_holds(operator):
    assert match(Toleration("k", operator), Taint("k", "c")) is Match.INVALID_TOLERATION


@pytest.mark.parametrize("side", ["Gt", "Lt", "Eq"])
def test_for_a_suffix_that_semver_takes_for_a_pre_release_the_natural_order_is_named(side):
    reason, remedy = caution(Toleration("k", f"Semver{side}", "5.15.0-91-generic"))
    assert reason == "-91-generic counts as a pre-release, below its release"
    assert remedy == f"use Version{side}, which compares the numbers in it, and valueType Version in the policy"
    assert caution(Toleration("k", f"Semver{side}", "5.15.0-91-generic"), "5.16.0") == ("", "")
    for other in (f"Version{side}", "Unknown"):
        assert caution(Toleration("k", other, "5.15.0-91-generic")) == ("", "")

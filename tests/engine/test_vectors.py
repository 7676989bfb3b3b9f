"""The facts: integers and versions as the real Go code judges them, and what to write instead of others."""

import json
from pathlib import Path

import pytest

from taintwarden.engine.model import Taint, Toleration
from taintwarden.engine.numeric import explain_integer, parse_integer
from taintwarden.engine.operators import Match, match
from taintwarden.engine.versions import explain_version, parse_version

VECTORS = Path(__file__).parent.parent / "vectors"
INTEGERS = json.loads((VECTORS / "integers.json").read_text())
SEMVER = json.loads((VECTORS / "semver.json").read_text())


def tolerated(operator: str, taint_value: str, toleration_value: str) -> bool:
    toleration = Toleration(key="k", operator=operator, value=toleration_value)
    return match(toleration, Taint("k", taint_value)) is Match.HOLDS


def test_integer_parses_as_in_go():
    for vector in INTEGERS["vectors"]:
        expected = int(vector["value"]) if vector["match_time_ok"] else None
        assert parse_integer(vector["input"]) == expected


def test_integer_is_explained_exactly_when_the_api_refuses_it_in_a_toleration():
    for vector in INTEGERS["vectors"]:
        assert (explain_integer(vector["input"]) is None) == vector["toleration_api_ok"]


def test_integers_compare_as_in_go():
    for pair in INTEGERS["comparisons"]:
        assert tolerated("Gt", pair["taint_value"], pair["toleration_value"]) == pair["tolerated_gt"]
        assert tolerated("Lt", pair["taint_value"], pair["toleration_value"]) == pair["tolerated_lt"]


def test_version_parses_as_in_go():
    for vector in SEMVER["vectors"]:
        version = parse_version(vector["input"])
        assert (version is not None) == vector["ok"]
        if version is not None:
            assert str(version) == vector["canonical"].partition("+")[0]


def test_versions_compare_as_in_go():
    for pair in SEMVER["comparisons"]:
        assert tolerated("SemverLt", pair["a"], pair["b"]) == pair["lt"]
        assert tolerated("SemverGt", pair["a"], pair["b"]) == pair["gt"]
        assert tolerated("SemverEq", pair["a"], pair["b"]) == pair["eq"]


NO_INTEGER = "must be a whole number of ASCII digits with an optional leading minus, for example 950"
NO_INT64 = "must be between -9223372036854775808 and 9223372036854775807, inclusive"


@pytest.mark.parametrize(
    ("text", "explanation"),
    [
        ("", "an integer is required, for example 950"),
        ("-05", "leading zeros are not allowed: write -5, not -05"),
        (" 5\n", "white space is not allowed: write 5"),
        ("+5", "a plus sign is not allowed: write 5"),
        ("\u0665", "only ASCII digits are allowed: write 5"),
        ("950%", "a percent sign is not allowed: write 950"),
        ("9.0", "decimals are not allowed: write 9"),
        ("0.95", "decimals are not allowed: scale the value, for example 95 for 0.95"),
        ("-1.5", "decimals are not allowed: scale the value, for example -15 for -1.5"),
        ("99.5%", "decimals and a percent sign are not allowed: scale the value, for example 995 for 99.5%"),
        (f"0.{'9' * 20}", "decimals are not allowed: scale the value"),
        ("-1,000", "separators are not allowed: write -1000"),
        ("1e3", "an exponent is not allowed: write 1000"),
        ("0x1F", "only decimal digits are allowed: write 31"),
        ("9223372036854775808", NO_INT64),
        ("-9223372036854775809", NO_INT64),
        ("9x0", "'x' at position 2 is not a digit"),
        ("-9x0", "'x' at position 3 is not a digit"),
        ("high", NO_INTEGER),
        ("-", NO_INTEGER),
    ],
)
def test_what_is_no_integer_is_explained(text, explanation):
    assert explain_integer(text) == explanation


@pytest.mark.parametrize(
    ("text", "explanation"),
    [
        ("1.28.0", None),
        ("v1.28", None),
        ("", "a version is required, for example 1.28.0"),
        ("containerd://2.1.4", "a version has no scheme: write 2.1.4"),
        ("V1.28", "only a lower-case v may precede a version: write 1.28"),
        (">=1.28", "only a lower-case v may precede a version: write 1.28"),
        ("1.2-rc1", "a pre-release or build needs all three numbers: write 1.2.0-rc1"),
        ("v1+5", "a pre-release or build needs all three numbers: write 1.0.0+5"),
        ("1.2.3.4", "must be a version: numbers as in 1.28.0, then optionally a pre-release (-rc.1) and a build (+5)"),
    ],
)
def test_version_is_explained(text, explanation):
    assert explain_version(text) == explanation


def test_a_number_of_thousands_of_digits_is_no_version():
    assert parse_version("9" * 5_000) is None

"""The facts: integers and versions as the real Go code judges them."""

import json
from pathlib import Path

from taintwarden.engine.model import Taint, Toleration
from taintwarden.engine.numeric import explain_integer, parse_integer
from taintwarden.engine.operators import Match, match
from taintwarden.engine.versions import parse_version

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

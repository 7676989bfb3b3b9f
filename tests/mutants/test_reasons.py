"""The mutants that no test can find are mutants of the code as it is."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "operator" / "taintwarden"
REASONS: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("no_difference.toml").read_text())


@pytest.mark.parametrize("module", REASONS)
def test_the_code_of_each_is_there(module: str) -> None:
    root = ROOT if module.startswith("packages/") else PACKAGE
    code = " ".join((root / module).read_text().split())
    assert [change for change in REASONS[module] if change.partition(" => ")[0] not in code] == []


@pytest.mark.parametrize("module", REASONS)
def test_each_has_a_reason(module: str) -> None:
    assert all(REASONS[module].values())

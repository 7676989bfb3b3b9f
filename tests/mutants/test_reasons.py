"""The mutants that no test can find are mutants of the code as it is."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "operator" / "taintwarden"
REASONS: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("no_difference.toml").read_text())


def test_the_code_of_each_is_there_and_each_has_a_reason() -> None:
    for module, changes in REASONS.items():
        root = ROOT if module.startswith("packages/") else PACKAGE
        code = " ".join((root / module).read_text().split())
        assert [change for change in changes if change.partition(" => ")[0] not in code] == []
        assert all(changes.values())

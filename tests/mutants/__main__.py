"""python -m mutants FILES --tests TESTS: which changes of the code no test finds."""

import argparse
import difflib
import hashlib
import json
import sys
import time
import tomllib
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from mutants.changes import base, changed_lines, folders_beside, in_turn
from mutants.making import Mutant, mutants
from mutants.running import Runner

ROOT = Path(__file__).parents[2]
STORE = ROOT / ".cache" / "mutants"
REASONS = Path(__file__).with_name("no_difference.toml")
"""By module, mutants that no test can find, as ``before => after``, each with the reason."""
PACKAGE = ROOT / "operator" / "taintwarden"
SOURCES = [
    *(str(PACKAGE / name) for name in ("engine", "controller", "kube")),
    *(str(ROOT / "packages" / name / "src") for name in ("devices", "placement", "publisher")),
]


def main() -> int:
    """Try out mutants. The result of each is stored, so that an interrupted run continues from there."""
    parser = argparse.ArgumentParser(prog="mutants")
    parser.add_argument("files", nargs="*", type=Path, help="modules or packages")
    parser.add_argument(
        "--changed", nargs="?", const="", metavar="COMMIT", help="lines that the branch changes, or all since a commit"
    )
    parser.add_argument("--tests", nargs="+", default=["tests/engine", "tests/controller"])
    parser.add_argument("--sample", type=int, default=0, help="so many of each module, chosen at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--typed", action="store_true", help="only what the type checker does not find")
    parser.add_argument("--seconds", type=float, default=20, help="CPU for one mutant: the cheapest tests come first")
    parser.add_argument("--within", type=float, default=float("inf"), help="seconds after which no other one is tried")
    parser.add_argument("--again", action="store_true", help="try survivors of an earlier run again")
    parser.add_argument("--results", type=Path, default=STORE / "results.jsonl")
    asked = parser.parse_args()
    STORE.mkdir(parents=True, exist_ok=True)
    is_change = asked.changed is not None
    before = asked.changed or (base(ROOT) if is_change else "")
    lines = changed_lines(before, ROOT, SOURCES) if before else dict.fromkeys(_modules(asked.files))
    made = {
        path: mutants(path, asked.sample, asked.seed, typed=asked.typed, lines=some) for path, some in lines.items()
    }
    chosen = {path: some for path, some in made.items() if some}
    if not chosen:
        print(
            f"no mutants: nothing that is tried out was changed since {before}" if before else "no mutants: no branch"
        )
        return 0
    tests = folders_beside(chosen, ROOT) if is_change else asked.tests
    sources = list(map(str, chosen)) if is_change else SOURCES
    known = _results(asked.results, again=asked.again or is_change)
    reasons = tomllib.loads(REASONS.read_text())
    for path, some in chosen.items():
        of_module = reasons.get(_name(path), {})
        known.update({_key(one): ["no difference", ""] for one in some if _change(one) in of_module})

    def work(runner: Runner) -> None:
        observed = runner.known(sources, STORE / f"{_fingerprint([*tests, *sources])}.json")
        until = time.monotonic() + asked.within
        with asked.results.open("a") as results:
            for mutant in in_turn(chosen.values()):
                if (key := _key(mutant)) in known or time.monotonic() >= until:
                    continue
                found = runner.try_out(mutant.path, mutant.line, mutant.text, observed, asked.seconds)
                known[key] = [found.outcome, found.by]
                name = str(mutant.path.relative_to(ROOT))
                results.write(json.dumps([key, *known[key], name, mutant.line, _difference(mutant)]) + "\n")
                results.flush()

    arguments = ["-q", "-s", "-n0", "-p", "no:cacheprovider", "--tb=native", "--timeout=30"]
    arguments += ["--hypothesis-profile=mutants", "-Wignore::pytest.PytestAssertRewriteWarning"]
    status = pytest.main([*arguments, *tests], plugins=[Runner(work)])
    survivors = _report(chosen, known)
    return int(status) or int(is_change and survivors > 0)


def _modules(files: list[Path]) -> list[Path]:
    found = {found.resolve() for path in files for found in (path.rglob("*.py") if path.is_dir() else [path])}
    return sorted(found)


def _key(mutant: Mutant) -> str:
    return hashlib.sha256(mutant.text.encode()).hexdigest()[:16]


def _fingerprint(tests: list[str]) -> str:
    """Hash of everything that decides which test runs which line."""
    found = hashlib.sha256(repr(sorted(tests)).encode())
    for folder in (ROOT / "operator", ROOT / "packages", ROOT / "tests"):
        for path in sorted(folder.rglob("*.py")):
            found.update(path.read_bytes())
    return found.hexdigest()[:16]


def _results(path: Path, *, again: bool) -> dict[str, list[str]]:
    """Stored results of mutants; with ``again`` only those of killed and refused ones."""
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {key: [outcome, by] for key, outcome, by, *_ in rows if not again or outcome in ("killed", "refused")}


def _name(path: Path) -> str:
    return str(path.relative_to(PACKAGE if path.is_relative_to(PACKAGE) else ROOT))


def _change(mutant: Mutant) -> str:
    """The lines that differ, on one: ``before => after``."""
    lines = _difference(mutant).splitlines()
    return " => ".join(" ".join(line[1:].strip() for line in lines if line.startswith(sign)) for sign in "-+")


def _difference(mutant: Mutant) -> str:
    before, after = mutant.path.read_text().splitlines(), mutant.text.splitlines()
    lines = list(difflib.unified_diff(before, after, lineterm="", n=0))[3:]
    return "\n".join(line for line in lines if not line.startswith("@@"))


def _report(chosen: dict[Path, list[Mutant]], known: dict[str, list[str]]) -> int:
    """Print what tests did not find. Returns how many they ran and did not find."""
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for path, some in chosen.items():
        name = _name(path)
        for mutant in some:
            outcome, _ = known.get(_key(mutant), ("not tried", ""))
            table[name][outcome] += 1
            if outcome in ("survived", "not run"):
                print(f"\n{outcome}: {name}:{mutant.line}\n{_difference(mutant)}")
    columns = ("killed", "survived", "not run", "no difference", "not tried")
    print(f"\n| module | mutants | {' | '.join(columns)} |\n|---|{'---:|' * (len(columns) + 1)}")
    for name, row in table.items():
        counts = [row[column] for column in columns]
        print(f"| `{name}` | {' | '.join(map(str, [sum(counts), *counts]))} |")
    return sum(row["survived"] for row in table.values())


if __name__ == "__main__":
    sys.exit(main())

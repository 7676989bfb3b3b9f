"""Lines of code that a change has written, and the tests that have to find mutants there."""

import random
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mutants.making import Mutant

CODE = re.compile(r"(?:operator/taintwarden|packages/\w+/src/taintwarden_)/?(\w+)/.*\.py")
"""A module, with the name of the layer or the package, which is that of the folder of its tests."""
HUNK = re.compile(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@")


def base(root: Path) -> str:
    """The commit at which this branch left the main one; empty on that one, whose changes were tried before."""
    for main in ("origin/main", "main"):
        found = _git(root, "merge-base", "HEAD", main)
        if found and found != _git(root, "rev-parse", "HEAD"):
            return found
    return ""


def changed_lines(commit: str, root: Path, sources: Iterable[str]) -> dict[Path, set[int]]:
    """By module below ``sources``, the lines that are not as they were in ``commit``.

    Raises:
        subprocess.CalledProcessError: there is no such commit.

    """
    asked = ["git", "diff", "--unified=0", "--no-color", "--no-ext-diff", "--diff-filter=AM", commit, "--", *sources]
    text = subprocess.run(asked, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout
    found: dict[Path, set[int]] = {}
    lines: set[int] = set()
    for line in text.splitlines():
        if line.startswith("+++ b/"):
            lines = set()
            if CODE.fullmatch(name := line.removeprefix("+++ b/")):
                found[root / name] = lines
        elif hunk := HUNK.match(line):
            first = int(hunk[1])
            lines.update(range(first, first + int(hunk[2] or 1)))
    return found


def folders_beside(paths: Iterable[Path], root: Path) -> list[str]:
    """The folders of tests that have to find what is changed in these modules."""
    return sorted({_tests_of(str(path.relative_to(root))) for path in paths})


def in_turn(modules: Iterable[list["Mutant"]]) -> Iterator["Mutant"]:
    """Mutants in an order that leaves out no module when the time is over; the same in each run."""
    every = [mutant for some in modules for mutant in some]
    return iter(random.Random(len(every)).sample(every, len(every)))


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, check=False, capture_output=True, text=True).stdout.strip()


def _tests_of(name: str) -> str:
    found = CODE.fullmatch(name)
    return f"tests/{found[1]}" if found else ""

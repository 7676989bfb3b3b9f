"""Lines and tests of a change, in a repository of its own."""

import subprocess
from pathlib import Path

import pytest

from mutants.changes import base, changed_lines, folders_beside

ENGINE, CLI = "operator/taintwarden/engine/limits/a.py", "packages/cli/src/taintwarden_cli/b.py"


class Repository:
    """A file of each kind, in one commit on main; with another one in each further commit."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit("abcd")

    def git(self, *words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *who, *words], cwd=self.root, check=True)

    def commit(self, lines: str) -> None:
        for path in (self.root / ENGINE, self.root / CLI):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(lines) + "\n")
        self.git("add", ".")
        self.git("commit", "--quiet", "--message=change")

    def changed(self) -> dict[Path, set[int]]:
        return changed_lines(base(self.root), self.root, [str(self.root / "operator")])


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_a_branch_changes_what_it_has_written_since_it_left_main(repository):
    repository.git("switch", "--quiet", "--create", "branch")
    for lines in ("aBcdef", "aBdef"):
        repository.commit(lines)
    assert repository.changed() == {repository.root / ENGINE: {2, 4, 5}}


def test_main_changes_nothing(repository):
    """Merged changes were tried on their branch."""
    repository.commit("aBcd")
    assert base(repository.root) == ""


def test_the_tests_of_a_layer_and_of_a_package_are_beside_it():
    paths = [Path("/r", name) for name in (ENGINE, CLI, "operator/taintwarden/engine/guard.py")]
    assert folders_beside(paths, Path("/r")) == ["tests/cli", "tests/engine"]

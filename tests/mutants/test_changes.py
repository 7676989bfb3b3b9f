"""What a change touches, in a repository of its own."""

import subprocess
from pathlib import Path

import pytest

from mutants.changes import base, changed_lines, folders_beside

ENGINE, CLI = "operator/taintwarden/engine/limits/a.py", "packages/cli/src/taintwarden_cli/b.py"


class Repository:
    """A file of each kind, in one commit on main."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "--quiet", "--initial-branch=main")
        self.write(ENGINE, "a", "b", "c", "d")
        self.write(CLI, "a")
        self.commit()

    def git(self, *words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *who, *words], cwd=self.root, check=True)

    def write(self, name: str, *lines: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines))

    def commit(self) -> None:
        self.git("add", ".")
        self.git("commit", "--quiet", "--message=change")

    def changed(self) -> dict[str, set[int]]:
        found = changed_lines(base(self.root), self.root, [str(self.root / "operator")])
        return {str(path.relative_to(self.root)): lines for path, lines in found.items()}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_lines_that_a_branch_writes_are_those_since_it_left_main(repository):
    repository.git("switch", "--quiet", "--create", "branch")
    repository.write(ENGINE, "a", "B", "c", "d", "e", "f")
    repository.write(CLI, "b")
    repository.commit()
    repository.write(ENGINE, "a", "B", "d", "e", "f")  # not committed yet
    repository.commit()
    assert repository.changed() == {ENGINE: {2, 4, 5}}


def test_on_main_they_are_those_of_the_last_commit(repository):
    repository.write(ENGINE, "a", "B", "c", "d")
    repository.commit()
    repository.write(ENGINE, "a", "B", "c", "D")
    repository.commit()
    assert repository.changed() == {ENGINE: {4}}


def test_in_a_clone_of_one_commit_there_is_nothing_to_compare_with(repository):
    assert base(repository.root) == ""


def test_the_tests_of_a_layer_and_of_a_package_are_beside_it():
    paths = [Path("/r", name) for name in (ENGINE, CLI, "operator/taintwarden/engine/guard.py")]
    assert folders_beside(paths, Path("/r")) == ["tests/cli", "tests/engine"]

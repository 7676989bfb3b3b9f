"""The shell completes commands, flags and choices, as documented."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXECUTABLE = Path(sys.executable).parent / "taintwarden"


def complete(line: str) -> list[str]:
    words = line.split(" ")
    told = {"_TAINTWARDEN_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    said = subprocess.run([EXECUTABLE], env=os.environ | told, capture_output=True, text=True, check=True, timeout=30)
    return [one.partition(",")[2] for one in said.stdout.splitlines()]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("taintwarden p", ["pause", "plan"]),
        ("taintwarden guard ", ["reset"]),
        ("taintwarden doctor --only budget", ["budgets-several", "budget-never-allows"]),
        ("taintwarden plan --repl", ["--replacement-seconds"]),
        ("taintwarden status -o ", ["table", "json", "yaml"]),
        ("taintwarden resume sla --mode ", ["Enforce", "DryRun"]),
    ],
)
def test_what_is_completed(line, wanted):
    assert complete(line) == wanted


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_for_a_shell(shell):
    environment = os.environ | {"_TAINTWARDEN_COMPLETE": f"{shell}_source"}
    said = subprocess.run([EXECUTABLE], env=environment, capture_output=True, text=True, check=True, timeout=30)
    assert "_TAINTWARDEN_COMPLETE" in said.stdout

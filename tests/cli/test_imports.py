"""What is imported before a command does anything: whoever asks for a version, help or a completion waits for it."""

import os
import subprocess
import sys

import click
import pytest

from taintwarden.cli import main

SLOW = {"aiohttp", "kopf", "kubernetes", "cryptography", "prometheus_client", "structlog", "rich", "localcluster"}
"""What talks to a cluster, or is one, and what draws: half a second and more."""
ALL = SLOW | {"yaml", "msgspec", "asyncio", "semver", "cronsim", "taintwarden_demo"}
PROGRAM = """
import sys
from taintwarden.cli import main
try:
    main(prog_name="taintwarden")
finally:
    print(*sys.modules, file=sys.stderr)
"""


def imported(*args: str, **environment: str) -> set[str]:
    """The packages that a command has imported when it ends."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *args],
        env=os.environ | environment, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout
    return {name.partition(".")[0] for name in done.stderr.split()}


def completing(line: str) -> set[str]:
    position = str(len(line.split(" ")) - 1)
    return imported(_TAINTWARDEN_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=position)


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_version_and_help_import_no_command(flag):
    assert imported(flag) & ALL == set()


@pytest.mark.parametrize("line", ["taintwarden ", "taintwarden p", "taintwarden --"])
def test_completing_a_command_imports_none(line):
    assert completing(line) & ALL == set()


@pytest.mark.parametrize("name", main.entries)
def test_the_help_of_a_command_is_quick(name):
    assert imported(name, "--help") & SLOW == set()


@pytest.mark.parametrize("line", [*(f"taintwarden {name} --" for name in main.entries), "taintwarden status -o "])
def test_completing_flags_and_values_is_quick(line):
    assert completing(line) & SLOW == set()


def test_all_commands_are_in_the_table():
    """Each entry leads to the command of that name, and says what the command itself says."""
    for name, entry in main.entries.items():
        command = main.get_command(click.Context(main), name)
        assert command is not None
        assert (command.name, command.short_help) == (name, entry.short_help)

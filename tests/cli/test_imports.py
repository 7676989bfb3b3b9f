"""What is imported before a command does anything: whoever asks for a version, help or a completion waits for it."""

import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from taintwarden.cli import lazy, main

SLOW = {
    "aiohttp",
    "kopf",
    "kubernetes",
    "cryptography",
    "prometheus_client",
    "structlog",
    "rich",
    "localcluster",
    "yaml",
}
"""What talks to a cluster, or is one, what draws, and what reads files."""
ALL = SLOW | {"msgspec", "asyncio", "semver", "cronsim", "taintwarden_demo"}
PROGRAM = """
import sys
from taintwarden.cli import main
try:
    main(prog_name="taintwarden")
finally:
    print(*sys.modules, file=sys.stderr)
"""


def imported(*args: str, code: int = 0, **environment: str) -> set[str]:
    """The packages that a command has imported when it ends, with this code."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *args],
        env=os.environ | environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return {name.partition(".")[0] for name in done.stderr.split()}


def completing(line: str, **environment: str) -> set[str]:
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    return imported(_TAINTWARDEN_COMPLETE="bash_complete", **words, **environment)


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


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    """Of a cluster that does not answer."""
    path = tmp_path / "kubeconfig"
    path.write_text("""
clusters: [{name: away, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: me, user: {}}]
contexts: [{name: away, context: {cluster: away, user: me}}]
current-context: away
""")
    return str(path)


def test_the_operator_imports_nothing_that_draws_and_no_kopf(kubeconfig):
    packages = imported("run", "--kubeconfig", kubeconfig, code=1)
    assert packages >= {"aiohttp", "structlog"}
    assert packages & {"kopf", "rich", "cryptography"} == set()


@pytest.mark.parametrize("name", ["webhook", "scheduler-extender"])
def test_a_process_that_serves_imports_nothing_that_draws(name, kubeconfig):
    packages = imported(name, "--kubeconfig", kubeconfig, "--http-host", "no address", code=2)
    assert packages >= {"aiohttp", "structlog"}
    assert packages & {"kopf", "rich"} == set()


def test_completing_names_imports_nothing_that_draws(kubeconfig):
    packages = completing("taintwarden status p", KUBECONFIG=kubeconfig)
    assert packages >= {"aiohttp", "structlog"}
    assert packages & {"kopf", "rich", "cryptography"} == set()


@pytest.mark.parametrize("name", ["status", "doctor", "plan"])
def test_a_command_that_asks_the_cluster_imports_no_kopf(name, kubeconfig):
    packages = imported(name, "--kubeconfig", kubeconfig, code=1)
    assert packages >= {"aiohttp", "structlog"}
    assert packages & {"kopf"} == set()


def test_all_commands_are_in_the_table():
    """Each entry leads to the command of that name, and says what the command itself says."""
    for name, entry in main.entries.items():
        command = main.get_command(click.Context(main), name)
        assert command is not None
        assert (command.name, command.short_help) == (name, entry.short_help)


def leaves(command: click.Command, name: str = "taintwarden") -> Iterator[tuple[str, click.Command]]:
    """The commands that do something, by what is typed."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command)
    for one in command.list_commands(context):
        below = command.get_command(context, one)
        assert below is not None
        yield from leaves(below, f"{name} {one}")


COMMANDS = {name: command for name, command in leaves(main) if name != "taintwarden demo"}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_hands_its_parameters_to_a_function_that_takes_them(name, monkeypatch):
    """It is named by a string, which no type checker follows."""
    command, calls = COMMANDS[name], []

    def imported(place: str, **_: bool) -> Any:
        return lambda *args, **given: calls.append((place, args, given))

    callback = inspect.unwrap(command.callback)
    monkeypatch.setitem(callback.__globals__, "imported", imported)
    callback(**{param.name: None for param in command.params})
    [(place, args, given)] = calls
    inspect.signature(lazy.imported(place)).bind(*args, **given)


@pytest.mark.parametrize("process", ["app", "placement.webhook_process", "placement.extender_process"])
def test_a_process_that_serves_takes_settings(process):
    inspect.signature(lazy.imported(f"taintwarden.{process}:run")).bind("settings")


@pytest.mark.parametrize("place", ["taintwarden.cli.nowhere:show", "taintwarden.cli.jsonpath:nothing"])
def test_a_wrong_place_is_an_error(place):
    with pytest.raises((ImportError, AttributeError)):
        lazy.imported(place)

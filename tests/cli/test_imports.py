"""Imports before a command does anything: a version, help or a completion waits for them."""

import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import click
import pytest

from taintwarden_cli import lazy
from taintwarden_cli.main import main

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
"""Packages that talk to a cluster, or simulate one, draw, or read files."""
ALL = SLOW | {"msgspec", "asyncio", "semver", "cronsim", "taintwarden_demo"}
PROGRAM = """
import json, os, sys
from taintwarden_cli.main import main
before = dict(os.environ)
for args, environment in json.loads(sys.argv[1]):
    os.environ.clear()
    os.environ.update(before | environment)
    try:
        main(args, prog_name="taintwarden")
    except SystemExit as end:
        print(json.dumps([end.code or 0, sorted({name.partition(".")[0] for name in sys.modules})]), file=sys.stderr)
"""
Typed = tuple[list[str], dict[str, str]]
"""Arguments of a command, and the environment."""


def imported_so_far(*typed: Typed) -> list[tuple[int, set[str]]]:
    """Exit code of each of these commands, run in one process, and the packages imported when it ended."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(typed)], capture_output=True, text=True, timeout=120, check=True
    )
    ends = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("[")]
    assert len(ends) == len(typed), done.stderr
    return [(code, set(packages)) for code, packages in ends]


def completing(line: str, **environment: str) -> Typed:
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    return [], {"_TAINTWARDEN_COMPLETE": "bash_complete", **words, **environment}


def first_that_imports(packages: set[str], *typed: Typed) -> Typed | None:
    """The first of these commands that imports one of these packages."""
    for asked, (code, found) in zip(typed, imported_so_far(*typed), strict=True):
        assert code == 0, asked
        if found & packages:
            return asked
    return None


def test_version_help_and_names_of_commands_import_no_command():
    lines = [completing(line) for line in ("taintwarden ", "taintwarden p", "taintwarden --")]
    assert first_that_imports(ALL, (["--version"], {}), (["--help"], {}), *lines) is None


def test_the_help_of_a_command_is_quick():
    assert first_that_imports(SLOW, *(([name, "--help"], {}) for name in main.entries)) is None


def test_completing_flags_and_values_is_quick():
    lines = [*(f"taintwarden {name} --" for name in main.entries), "taintwarden status -o "]
    assert first_that_imports(SLOW, *map(completing, lines)) is None


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    """A kubeconfig for a cluster that does not answer."""
    return written(tmp_path, "http://127.0.0.1:9")


def written(folder: Path, server: str) -> str:
    path = folder / "kubeconfig"
    path.write_text(f"""
clusters: [{{name: away, cluster: {{server: "{server}"}}}}]
users: [{{name: me, user: {{}}}}]
contexts: [{{name: away, context: {{cluster: away, user: me}}}}]
current-context: away
""")
    return str(path)


@pytest.fixture
def unauthorized(tmp_path: Path) -> Iterator[str]:
    """The kubeconfig of a cluster that refuses everything: the operator waits for one that does not answer."""

    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(401)

        def log_message(self, *_: object) -> None:
            """Drop the message: no test reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        Thread(target=server.serve_forever, args=(0.01,)).start()
        yield written(tmp_path, f"http://127.0.0.1:{server.server_port}")
        server.shutdown()


def test_what_serves_or_completes_names_imports_nothing_that_draws_and_no_command_kopf(kubeconfig, unauthorized):
    """In one process, each with more to import than those before: completion and the operator need no certificates."""
    cluster = ["--kubeconfig", kubeconfig]
    elsewhere = [*cluster, "--http-host", "192.0.2.1"]  # not an address of this machine
    typed: list[Typed] = [
        completing("taintwarden status p", KUBECONFIG=kubeconfig),
        (["run", "--kubeconfig", unauthorized], {}),
        *(([name, *elsewhere], {}) for name in ("webhook", "scheduler-extender")),
        *(([name, *cluster], {}) for name in ("status", "doctor", "plan")),
    ]
    codes, packages = zip(*imported_so_far(*typed), strict=True)
    assert codes == (0, 1, 2, 2, 1, 1, 1)
    assert packages[0] >= {"aiohttp", "structlog"}
    assert packages[1] & {"kopf", "rich", "cryptography"} == set()
    assert packages[3] & {"kopf", "rich"} == set()
    assert packages[6] & {"kopf"} == set()


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
def test_a_command_passes_its_parameters_to_a_function_that_accepts_them(name, monkeypatch):
    """The function is named by a string, which no type checker follows."""
    command, calls = COMMANDS[name], []

    def imported(place: str, **_: bool) -> Any:
        return lambda *args, **given: calls.append((place, args, given))

    callback = inspect.unwrap(command.callback)
    monkeypatch.setitem(callback.__globals__, "imported", imported)
    callback(**{param.name: None for param in command.params})
    [(place, args, given)] = calls
    inspect.signature(lazy.imported(place)).bind(*args, **given)


@pytest.mark.parametrize(
    "process", ["taintwarden.app", "taintwarden_placement.webhook_process", "taintwarden_placement.extender_process"]
)
def test_a_process_that_serves_takes_settings(process):
    inspect.signature(lazy.imported(f"{process}:run")).bind("settings")


@pytest.mark.parametrize("place", ["taintwarden_cli.nowhere:show", "taintwarden_cli.output:nothing"])
def test_a_wrong_place_is_an_error(place):
    with pytest.raises((ImportError, AttributeError)):
        lazy.imported(place)

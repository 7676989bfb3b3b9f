"""SIGTERM ends the operator, and what else serves, from its first instruction on, as process 1 of a container has it.

The kernel drops a signal that process 1 has no handler for; here it is ignored until there is one, which is the same.
"""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest
import yaml

from taintwarden_cli.entry import SERVING
from taintwarden_cli.main import main

PATIENCE_SECONDS = 30


@contextmanager
def serving(command: str, *args: str, path: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """A command of `taintwarden`, with this folder before all others that hold packages."""
    process = subprocess.Popen(
        ["sh", "-c", 'trap "" TERM; exec "$@"', "sh", sys.executable, "-m", "taintwarden_cli", command, *args],
        env={"PYTHONPATH": str(path)} if path else {},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def end(process: subprocess.Popen[str]) -> int:
    """End the process by SIGTERM, long before it would end by itself. Returns its exit code."""
    process.terminate()
    return process.wait(PATIENCE_SECONDS)


@pytest.fixture
def silent_server(tmp_path: Path) -> Iterator[tuple[socket.socket, Path]]:
    """One that takes connections and never says a word, and a kubeconfig for it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(PATIENCE_SECONDS)
        kubeconfig = tmp_path / "kubeconfig"
        cluster = {"server": f"http://127.0.0.1:{listening.getsockname()[1]}"}
        content = {
            "clusters": [{"name": "c", "cluster": cluster}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {}}],
            "current-context": "c",
        }
        kubeconfig.write_text(yaml.safe_dump(content))
        yield listening, kubeconfig


def test_it_ends_while_it_imports(tmp_path):
    """Imports take a second on a fast machine."""
    (tmp_path / "aiohttp.py").write_text(
        "print('importing', file=__import__('sys').stderr, flush=True)\nimport time\ntime.sleep(60)"
    )
    with serving("run", path=tmp_path) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "importing\n"
        assert end(process) == 0


def test_each_command_that_answers_probes_ends_so():
    commands = {name: main.get_command(click.Context(main), name) for name in main.entries}
    assert {
        name for name, command in commands.items() if "http_port" in {one.name for one in command.params}
    } == SERVING


def test_it_ends_while_a_server_does_not_answer(silent_server):
    listening, kubeconfig = silent_server
    with serving("run", "--kubeconfig", str(kubeconfig)) as process, listening.accept()[0]:
        assert end(process) == 0


def test_the_handler_comes_before_anything_that_takes_time():
    """Each of these takes longer than the interpreter itself."""
    code = (
        "import sys, taintwarden_cli.entry; print(*sorted({'msgspec', 'kopf', 'click', 'aiohttp'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120)
    assert done.stdout == "\n"

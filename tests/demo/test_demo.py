"""`taintwarden demo` as a newcomer runs it: a process, the real operator under it, and an exit code to believe."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

DEMO = [sys.executable, "-m", "taintwarden_cli", "demo", "--pace", "0.3"]
LONGEST_SECONDS = 240
WITHOUT_OPERATORS = """
from msgspec.structs import replace
from taintwarden_demo import operator_process, running, scenario
from taintwarden_cli.main import main
run = operator_process.asyncio.create_subprocess_exec
off = '--no-numeric-operators'
operator_process.asyncio.create_subprocess_exec = lambda *command, **more: run(*command, off, **more)
tell_story = running.tell_story
running.tell_story = lambda pace: replace(story := tell_story(pace), changes=story.changes[:1])
scenario.Story.gives_up_at = scenario.Story.ends_at  # it does not get better by waiting
main(['demo', '--pace', '0.3', '-o', 'json'])
"""
"""The first change of the story, with the comparison operators off: the guard trips, and no pod leaves."""
Demo = subprocess.Popen[str]


@pytest.fixture(scope="module")
def demos() -> Iterator[tuple[Demo, Demo]]:
    """The demo, and one that has to fail, at the same time: both mostly wait."""
    with _started(DEMO) as demo, _started([sys.executable, "-c", WITHOUT_OPERATORS]) as failing:
        yield demo, failing
        demo.kill()
        failing.kill()


def _started(command: list[str]) -> Demo:
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_the_demo_succeeds_without_a_terminal(demos: tuple[Demo, Demo]) -> None:
    out, error = demos[0].communicate(timeout=LONGEST_SECONDS)
    assert demos[0].returncode == 0, out + error
    assert error == ""
    assert "2 payments must leave in 2 s: sla=940, but sla Gt '950' does not hold" in out
    assert "All 9 as expected" in out
    assert "\x1b" not in out
    timeline = out.partition("┏")[0]
    assert max(map(len, timeline.splitlines())) <= 100


@pytest.mark.slow
def test_the_demo_fails_when_the_operator_does_something_else(demos: tuple[Demo, Demo]) -> None:
    """The whole way to the exit code."""
    out, error = demos[1].communicate(timeout=LONGEST_SECONDS)
    assert demos[1].returncode == 1, out + error
    told = json.loads(out)
    assert told["ok"] is False
    assert [check["expected"] for check in told["checks"] if not check["ok"]]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_an_interrupted_demo_leaves_nothing_behind(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    demo = subprocess.Popen(DEMO, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    (log,) = _wait_for(lambda: list(tmp_path.glob("taintwarden-demo-*/operator.log")))
    _wait_for(lambda: "operator-started" in log.read_text())
    demo.send_signal(signal.SIGTERM)
    _, said = demo.communicate(timeout=LONGEST_SECONDS)
    assert demo.returncode == 130
    assert said == "taintwarden: interrupted\n"
    assert list(tmp_path.glob("taintwarden-demo-*")) == []


def test_a_port_that_is_taken_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            [*DEMO, "--port", str(port)], capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False
        )
    assert done.returncode == 1
    assert done.stderr.startswith(f"taintwarden: cannot serve on port {port}: ")


def _wait_for(check):
    ends = time.monotonic() + LONGEST_SECONDS
    while not (found := check()):
        assert time.monotonic() < ends
        time.sleep(0.1)  # the demo is another process, and tells nothing
    return found

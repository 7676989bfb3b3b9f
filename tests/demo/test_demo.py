"""`taintwarden demo` as a newcomer runs it: a process, the real operator under it, and an exit code to believe."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

DEMO = [sys.executable, "-m", "taintwarden_cli", "demo", "--pace", "0.5"]
LONGEST_SECONDS = 240


@pytest.mark.slow
def test_the_demo_succeeds_without_a_terminal() -> None:
    done = subprocess.run(DEMO, capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "2 payments must leave in 3 s: sla=940, but sla Gt '950' does not hold" in done.stdout
    assert "All 9 as expected" in done.stdout
    assert "\x1b" not in done.stdout
    timeline = done.stdout.partition("┏")[0]
    assert max(map(len, timeline.splitlines())) <= 100


@pytest.mark.slow
def test_the_demo_fails_when_the_operator_does_something_else() -> None:
    """The whole way to the exit code: with the comparison operators off the guard trips, and no pod leaves."""
    code = (
        "from taintwarden_demo import operator_process, scenario\n"
        "from taintwarden_cli.main import main\n"
        "run = operator_process.asyncio.create_subprocess_exec\n"
        "operator_process.asyncio.create_subprocess_exec = "
        "lambda *command, **more: run(*command, '--no-numeric-operators', **more)\n"
        "scenario.Story.gives_up_at = scenario.Story.ends_at\n"  # it does not get better by waiting
        "main(['demo', '--pace', '0.4', '-o', 'json'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    told = json.loads(done.stdout)
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

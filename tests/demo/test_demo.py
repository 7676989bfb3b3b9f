"""`taintwarden demo` as a newcomer runs it: a process, the real operator under it, and an exit code to believe."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from taintwarden_cli.main import main
from taintwarden_demo import running
from taintwarden_demo.judge import Check
from taintwarden_demo.summary import Report, report

DEMO = [sys.executable, "-m", "taintwarden_cli", "demo", "--pace", "0.3"]
LONGEST_SECONDS = 240


@pytest.mark.slow
def test_the_demo_succeeds_without_a_terminal() -> None:
    done = subprocess.run(DEMO, capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False)
    out = done.stdout
    assert (done.returncode, done.stderr) == (0, ""), out
    assert "2 payments must leave in 2 s: sla=940, but sla Gt '950' does not hold" in out
    assert "All 9 as expected" in out
    assert "\x1b" not in out
    timeline = out.partition("┏")[0]
    assert max(map(len, timeline.splitlines())) <= 100


def test_the_demo_fails_when_the_operator_does_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cases in which the judge finds that are in test_judge.py."""

    @asynccontextmanager
    async def no_operator(*_: object) -> AsyncIterator[None]:
        yield

    async def judged(*_: object) -> Report:
        return report([Check("two leave", "no pod left", ok=False)], 1.0)

    monkeypatch.setattr(running, "start_demo", no_operator)
    monkeypatch.setattr(running, "play", judged)
    done = CliRunner().invoke(main, ["demo", "-o", "json"])
    assert done.exit_code == 1
    assert json.loads(done.stdout)["checks"] == [{"expected": "two leave", "happened": "no pod left", "ok": False}]


def test_json_is_all_of_the_output_of_a_demo_that_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def interrupted(*_: object) -> AsyncIterator[SimpleNamespace]:
        async def tick(_: object) -> None:
            raise asyncio.CancelledError

        yield SimpleNamespace(kubeconfig="kubeconfig", tick=tick)

    async def judged(*_: object) -> Report:
        return report([Check("two leave", "2 pods left", ok=True)], 1.0)

    monkeypatch.setattr(running, "start_demo", interrupted)
    monkeypatch.setattr(running, "play", judged)
    done = CliRunner().invoke(main, ["demo", "-o", "json", "--keep"])
    assert json.loads(done.stdout)["ok"]
    assert "export KUBECONFIG=kubeconfig" in done.stderr


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
        done = CliRunner().invoke(main, ["demo", "--port", str(port)])
    assert done.exit_code == 1
    assert done.stderr.startswith(f"taintwarden: cannot serve on port {port}: ")


def _wait_for(check):
    ends = time.monotonic() + LONGEST_SECONDS
    while not (found := check()):
        assert time.monotonic() < ends
        time.sleep(0.1)  # the demo is another process, and tells nothing
    return found

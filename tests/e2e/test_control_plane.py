"""The end-to-end tests' own ground: the server is real, the operator's rights are the shipped ones, nothing is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from controlplane import (
    ApiError,
    ControlPlane,
    Process,
    ProcessFailedError,
    Pulse,
    Target,
    sleep_until,
)
from controlplane import wait_until as wait
from controlplane.binaries import ROOT, wanted_version
from controlplane.manifests import documents
from controlplane.processes import exists


@pytest.mark.skipif("KUBEBUILDER_ASSETS" in os.environ, reason="binaries of another version are given")
def test_the_server_is_the_version_under_test(own_control_plane: ControlPlane) -> None:
    assert own_control_plane.version() == wanted_version()


def test_the_server_accepts_every_sample(control_plane: Target) -> None:
    """The rest of deploy/, as rendered, with the definitions, is in test_deploy_rendered.py."""
    found = list(documents(ROOT / "deploy" / "samples"))
    assert found
    refusals = []
    for path, document in found:
        try:
            control_plane.client.apply(document, dry_run=True)
        except ApiError as error:
            refusals.append(f"{path.relative_to(ROOT)}: {error}")
    assert refusals == []


def test_the_pulse_tells_what_a_server_that_stands_still_lost(own_control_plane: ControlPlane) -> None:
    pid = own_control_plane.api_server.pid
    assert pid is not None
    with Pulse(own_control_plane.client) as pulse:
        began = time.monotonic()
        os.kill(pid, signal.SIGSTOP)
        try:
            sleep_until(began + 1)
        finally:
            os.kill(pid, signal.SIGCONT)
        assert 0.6 < pulse.lost(began) <= time.monotonic() - began
        assert pulse.lost(began, began) == 0


class TestNothingIsLeft:
    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent has died")
    def test_a_process_is_stopped_when_the_interpreter_is_killed(self, tmp_path: Path) -> None:
        pid = started_elsewhere(tmp_path, f"import os; os.kill(os.getpid(), {int(signal.SIGKILL)})")
        wait(lambda: not exists(pid), 60, "the orphan to be killed")

    def test_a_failed_start_shows_the_end_of_the_log(self, tmp_path: Path) -> None:
        process = Process("broken", ["/bin/sh", "-c", "echo no such luck; exit 7"], tmp_path / "broken.log")
        process.start()
        with pytest.raises(ProcessFailedError, match=r"(?s)broken ended with 7.*no such luck"):
            process.wait_ready(lambda: False, 10)


def started_elsewhere(folder: Path, ending: str) -> int:
    """The pid of a process that another interpreter started and did not stop."""
    script = f"""
import sys, pathlib
sys.path.insert(0, {str(ROOT / "tests")!r})
from controlplane import Process
process = Process("sleeper", ["/bin/sleep", "600"], pathlib.Path({str(folder)!r}) / "sleeper.log")
process.start()
print(process.pid, flush=True)
{ending}
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    return int(result.stdout)


class TestNoClusterNoGreenRun:
    def test_the_run_fails(self, tmp_path: Path) -> None:
        result = subprocess.run(
            [sys.executable, "-m", "pytest", "tests/e2e/test_control_plane.py", "-k", "pulse"],
            cwd=ROOT,
            env={**os.environ, "KUBEBUILDER_ASSETS": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert result.returncode != 0
        assert "holds no executable etcd" in result.stdout + result.stderr

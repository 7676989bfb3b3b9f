"""`make cluster`: it says how to use it, works, and leaves nothing behind when it is ended."""

import itertools
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

from controlplane.binaries import ROOT, binary

SECONDS = 240


def test_it_starts_says_how_to_use_it_and_ends() -> None:
    """With `--slo` it is what test_slo_loop.py runs on."""
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    command = [sys.executable, "-m", "controlplane"]
    with subprocess.Popen(command, env=surroundings, stdout=subprocess.PIPE, text=True) as process:
        killer = threading.Timer(SECONDS, process.kill)
        killer.start()
        try:
            assert process.stdout is not None
            said = "".join(itertools.takewhile(lambda line: line != "Ctrl-C ends.\n", process.stdout))
            found = re.search(r"export KUBECONFIG=(\S+) PATH=", said)
            assert found, said
            shown = subprocess.run(
                [binary("kubectl"), "--kubeconfig", found[1], "get", "nodes,tep", "-o", "name"],
                capture_output=True,
                text=True,
                check=True,
            )
            nodes = [f"node/node-zone-{zone}-{number}" for zone in "abc" for number in (0, 1)]
            assert shown.stdout.split() == [*nodes, "taintevictionpolicy.taintwarden.io/sla"]
            listed = subprocess.run(
                [binary("kubectl"), "--kubeconfig", found[1], "get", "pods", "-n", "shop", "--no-headers"],
                capture_output=True,
                text=True,
                check=True,
            )
            assert [line.split()[1:3] for line in listed.stdout.splitlines()] == [["1/1", "Running"]] * 6
            process.send_signal(signal.SIGTERM)
            assert process.wait() == 0
        finally:
            killer.cancel()
            process.terminate()
    assert not Path(found[1]).parent.exists()

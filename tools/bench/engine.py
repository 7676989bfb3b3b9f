"""Measurement of the engine's cases, each in a new process, so that memory is measured for one case alone."""

import json
import subprocess
import sys

CASES = ("shared_verdicts", "node_change", "deadlines", "token_bucket", "feed")
STEPS = ("paused", "reclaims")
LIMIT_SECONDS = 300


def measure(case: str, scale: float) -> dict[str, float]:
    """Return the results of one case. Raises CalledProcessError, TimeoutExpired."""
    command = [sys.executable, "-m", "bench.engine_cases", case, str(scale)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=LIMIT_SECONDS)
    found: dict[str, float] = json.loads(done.stdout)
    return found

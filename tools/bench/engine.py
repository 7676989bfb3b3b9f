"""The engine's cases, each in a fresh process, so that none finds the memory of another."""

import json
import subprocess
import sys

CASES = ("shared_verdicts", "node_change", "deadlines", "token_bucket", "feed")
STEPS = ("paused", "reclaims")
LIMIT_SECONDS = 300


def measure(case: str, scale: float) -> dict[str, float]:
    """The numbers of one case. Raises CalledProcessError, TimeoutExpired."""
    command = [sys.executable, "-m", "bench.engine_cases", case, str(scale)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=LIMIT_SECONDS)
    found: dict[str, float] = json.loads(done.stdout)
    return found

"""Prometheus' own tools, as `make prometheus` builds them."""

import os
import subprocess
from pathlib import Path

from monitoring.rules import ROOT

BINARIES = ROOT / ".cache" / "prometheus" / "bin"
SECONDS = 60


class MissingPrometheusError(Exception):
    """A tool was not built; the message says how to."""


def tool(name: str) -> Path:
    """The path of promtool or prometheus. Raises MissingPrometheusError."""
    path = BINARIES / name
    if not os.access(path, os.X_OK):
        raise MissingPrometheusError(f"{path} is not there. Run `make prometheus` (needs Go).")
    return path


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run it. What it says is in the result, whether it found a fault or not."""
    command = [str(tool("promtool")), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)

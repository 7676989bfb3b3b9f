"""Prometheus' own tools, as `make prometheus` builds them."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import yaml

from monitoring.rules import ROOT, spec

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


def written_rules(folder: Path) -> Path:
    """The shipped groups as a file of Prometheus, without the objects around them."""
    path = folder / "rules.yaml"
    path.write_text(yaml.safe_dump(spec()))
    return path


def rule_faults(groups: Sequence[Mapping[str, Any]], folder: Path) -> dict[str, str]:
    """Play groups of tests, as promtool has them, with the shipped rules: what it found, by the name of the group."""
    tests, report = folder / "tests.yaml", folder / "report.xml"
    rules = written_rules(folder)
    whole = {"rule_files": [rules.name], "evaluation_interval": "30s", "tests": list(groups)}
    tests.write_text(yaml.safe_dump(whole))
    done = promtool("test", "rules", f"--junit={report}", tests)
    assert report.exists(), done.stderr
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        said = [part.text or part.get("message") or "" for part in case if part.tag in ("failure", "error")]
        found[case.attrib["name"]] = "\n".join(said)
    return found


def silent_group(name: str, series: Mapping[str, str], minutes: int = 60) -> dict[str, Any]:
    """A group of tests: with these series no alert fires within some minutes."""
    every = [
        {"expr": 'ALERTS{alertstate="firing"}', "eval_time": f"{at}m", "exp_samples": []} for at in range(minutes + 1)
    ]
    given = [{"series": one, "values": values} for one, values in series.items()]
    return {"name": name, "interval": "1m", "input_series": given, "promql_expr_test": every}

"""The table: one row for each fault, over all its runs."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from chaos.faults import FAULTS
from chaos.judge import Verdict
from chaos.playing import Run
from chaos.world import Scale

HEADS = (
    "fault",
    "times",
    "evictions",
    "lost",
    "wrong",
    "early",
    "doubled",
    "over a limit",
    "not by the leader",
    "calls/s",
    "latest (s)",
    "no leader (s)",
    "settled (s)",
)


def table(runs: Iterable[Run]) -> str:
    """A table in Markdown. Counts are added up, times are the longest."""
    by_fault: dict[str, list[Run]] = {}
    for run in runs:
        by_fault.setdefault(run.fault, []).append(run)
    rows = [_row(fault, by_fault[fault]) for fault in FAULTS if fault in by_fault]
    lines = ["| " + " | ".join(HEADS) + " |", "|---" + "|---:" * (len(HEADS) - 1) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _row(fault: str, runs: Sequence[Run]) -> list[str]:
    found = [run.verdict for run in runs]

    def total(column: str) -> str:
        return str(sum(getattr(one, column) for one in found))

    def most(column: str) -> str:
        return f"{max(getattr(one, column) for one in found):.1f}"

    counts = [total(column) for column in ("evictions", "lost", "wrong", "early", "doubled", "over", "not_leader")]
    calls = str(max(one.calls_per_second for one in found) or "")
    times = [most(f"{column}_seconds") for column in ("latest", "leaderless", "settled")]
    return [f"`{fault}`", str(len(runs)), *counts, calls, *times]


def save(path: Path, run: Run) -> None:
    """Add a run to a file of runs, one on each line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(asdict(run)) + "\n")


def load(path: Path) -> list[Run]:
    """The runs of such a file."""
    return [_run(json.loads(line)) for line in path.read_text().splitlines()]


def _run(saved: dict[str, object]) -> Run:
    scale, verdict = Scale(**saved.pop("scale")), Verdict(**saved.pop("verdict"))  # type: ignore[arg-type]
    return Run(scale=scale, verdict=verdict, **saved)  # type: ignore[arg-type]

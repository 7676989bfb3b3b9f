"""Charts of results in Markdown: ``python -m bench.charts FILE...``, with files that ``python -m bench --json`` wrote.

Mermaid draws them wherever the documentation is read, so no picture has to be kept.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.table import medians, shown, table

Bars = Mapping[str, float]


def charts(results: Mapping[str, Any]) -> Iterator[str]:
    """The machine, and a chart for each question that the results answer."""
    yield table(["machine", ""], [[name.replace("_", " "), value] for name, value in results["machine"].items()])
    for bench, draw in DRAWN.items():
        if rows := results.get(bench):
            yield from draw({name: medians(found) for name, found in rows.items()})


def wave(found: Mapping[str, Any]) -> Iterator[str]:
    """A wave against peers, without the one that got fewer pods."""
    most = max(row["pods"] for row in found.values())
    same = {name: row for name, row in found.items() if row["pods"] == most}
    yield bars(f"{most:,.0f} pods have to leave", "seconds", _column(same, "seconds"))
    yield bars(f"{most:,.0f} pods have to leave", "CPU seconds of the subject", _column(same, "subject_cpu_seconds"))


def sync(found: Mapping[str, Any]) -> Iterator[str]:
    """A start against the built-in controller's."""
    pods = f"start with {next(iter(found.values()))['pods']:,.0f} pods"
    yield bars(pods, "seconds until ready", _column(found, "seconds"))
    yield bars(pods, "CPU seconds", _column(found, "cpu_seconds"))
    yield bars(pods, "MiB", _column(found, "settled_mib"))


def replay(found: Mapping[str, Any]) -> Iterator[str]:
    """Cost against size."""
    starts = {name.removeprefix("start, "): row for name, row in found.items() if name.startswith("start, ")}
    yield bars("start, by the size of the cluster", "CPU seconds", _column(starts, "cpu_seconds"))
    yield bars("start, by the size of the cluster", "MiB", _column(starts, "settled_mib"))


DRAWN = {"wave": wave, "sync": sync, "replay": replay}


def _column(found: Mapping[str, Any], field: str) -> Bars:
    return {name: row[field] for name, row in found.items()}


def bars(title: str, unit: str, heights: Bars) -> str:
    """A bar chart. The heights are also in the names, since Mermaid writes no values."""
    names = ", ".join(f'"{name}: {shown(height)}"' for name, height in heights.items())
    values = ", ".join(f"{height:.4g}" for height in heights.values())
    lines = [f'title "{title}"', f"x-axis [{names}]", f'y-axis "{unit}"', f"bar [{values}]"]
    return "\n".join(["```mermaid", "xychart-beta", *(f"    {line}" for line in lines), "```"])


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print("\n\n".join(charts(json.loads(Path(argument).read_text()))), end="\n\n")

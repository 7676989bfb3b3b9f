"""Reports of the benchmarks: columns and ratios."""

from collections.abc import Mapping
from typing import Any

from bench.table import ratio, table

Medians = Mapping[str, Mapping[str, Any]]
OURS, BUILT_IN, DEFAULTS = "taintwarden", "built-in, 1000 qps", "built-in, defaults"


def wave(found: Medians) -> str:
    """Return the report of waves. Subjects whose name begins with "bare" are one client with different concurrency."""
    headings = [
        "subject", "seconds", "gone", "lost", "50%", "99%", "CPU s", "API server CPU s", "etcd CPU s",
        "others CPU s", "peak MiB",
    ]  # fmt: skip
    rows = [
        [
            name,
            row["seconds"],
            f"{row['gone']:,.0f} of {row['pods']:,}",
            row["lost"],
            *(row["curve"].get(share) for share in ("50%", "99%")),
            *(row[f"{who}_cpu_seconds"] for who in ("subject", "api_server", "etcd", "others")),
            row["peak_mib"],
        ]
        for name, row in found.items()
    ]
    return "\n\n".join([table(headings, rows), *wave_ratios(found)])


def wave_ratios(found: Medians) -> list[str]:
    """Return the ratios of Taintwarden to each other subject. CPU is the sum of subject, API server and etcd."""
    ours = found.get(OURS)
    bare = [name for name in found if name.startswith("bare")]
    best = sorted(bare, key=lambda name: found[name]["seconds"])[:1]
    others = [name for name in (BUILT_IN, DEFAULTS, *best) if name in found]
    if ours is None or not others:
        return []
    rows = []
    for name in others:
        row = found[name]
        scale = ours["pods"] / row["gone"] if row["gone"] else 0
        note = "" if scale == 1 else f" (extrapolated from {row['gone']:,.0f} pods)"
        rows.append(
            [
                f"{OURS} / {name}{note}",
                ratio(ours["seconds"], row["seconds"] * scale),
                ratio(cpu(ours), cpu(row) * scale),
            ]
        )
    return [table(["ratio", "time", "CPU"], rows)]


def cpu(row: Mapping[str, Any]) -> float:
    return row["subject_cpu_seconds"] + row["api_server_cpu_seconds"] + row["etcd_cpu_seconds"]


def start(found: Medians) -> str:
    columns = {
        "seconds": "seconds",
        "CPU s": "cpu_seconds",
        "API server CPU s": "api_server_cpu_seconds",
        "others CPU s": "others_cpu_seconds",
        "MiB when ready": "rss_mib",
        "MiB settled": "settled_mib",
        "peak MiB": "peak_mib",
        "reaction s": "reaction_seconds",
    }
    rows = [[name, row["pods"], *(row[field] for field in columns.values())] for name, row in found.items()]
    ours, *others = found.items()
    for name, row in others:
        ratios = [ratio(ours[1][field], row[field]) if row[field] else None for field in columns.values()]
        rows.append([f"{ours[0]} / {name}", "", *ratios])
    return table(["subject", "pods", *columns], rows)


def engine(found: Medians) -> str:
    rows = [[case, name.replace("_", " "), value] for case, row in found.items() for name, value in row.items()]
    return table(["case", "what", "median"], rows)

"""How each bench is told: which columns, and which ratios answer the question that it asks."""

from collections.abc import Mapping
from typing import Any

from bench.commands import BARE
from bench.table import ratio, table

Medians = Mapping[str, Mapping[str, Any]]
OURS, BUILT_IN, DEFAULTS = "taintwarden", "built-in, 1000 qps", "built-in, defaults"


def wave(found: Medians) -> str:
    """Subjects by name; those whose name begins with "bare" are the same client with different concurrency."""
    headings = [
        "subject", "seconds", "gone", "lost", "10%", "50%", "90%", "CPU s", "API server CPU s", "etcd CPU s",
        "others CPU s", "peak MiB",
    ]  # fmt: skip
    rows = [
        [
            name,
            row["seconds"],
            f"{row['gone']:,.0f} of {row['pods']:,}",
            row["lost"],
            *(row["curve"].get(share) for share in ("10%", "50%", "90%")),
            *(row[f"{who}_cpu_seconds"] for who in ("subject", "api_server", "etcd", "others")),
            row["peak_mib"],
        ]
        for name, row in found.items()
    ]
    return "\n\n".join([table(headings, rows), *wave_ratios(found)])


def wave_ratios(found: Medians) -> list[str]:
    """Ours to each of the others. CPU is that of subject, API server and etcd together."""
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


def sync(found: Medians) -> str:
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


def devices(found: Medians) -> str:
    columns = {
        "seconds": "seconds",
        "CPU s": "cpu_seconds",
        "MiB settled": "settled_mib",
        "peak MiB": "peak_mib",
        "ms of CPU a rewrite": "ms_per_rewrite",
        "reaction s": "reaction_seconds",
    }
    rows = [[name, row["claims"], *(row[field] for field in columns.values())] for name, row in found.items()]
    return table(["subject", "claims", *columns], rows)


def queries(found: Medians) -> str:
    fields = ("pods", "exit_code", "seconds", "cpu_seconds", "api_server_cpu_seconds", "peak_mib")
    rows = [[name, *(row[field] for field in fields)] for name, row in found.items()]
    return table(["command", *(field.replace("_", " ") for field in fields)], rows)


def watches(found: Medians) -> str:
    fields = ("updates", "seconds", "kib_per_update", "api_server_ms_per_update", "etcd_ms_per_update")
    rows = [[name, *(row[field] for field in fields)] for name, row in found.items()]
    return table(["watch", *(field.replace("_", " ") for field in fields)], rows)


def engine(found: Medians) -> str:
    rows = [[case, name.replace("_", " "), value] for case, row in found.items() for name, value in row.items()]
    return table(["case", "what", "median"], rows)


def replay(found: Medians) -> str:
    """What each case cost, and what else it found, one line each."""
    columns = {
        "CPU s": "cpu_seconds",
        "seconds": "seconds",
        "peak MiB": "peak_mib",
        "server CPU s": "server_cpu_seconds",
        "others CPU s": "others_cpu_seconds",
        "load": "load",
    }
    costs = [[name, *(row[field] for field in columns.values())] for name, row in found.items()]
    rest = {
        name: {field: value for field, value in row.items() if field not in columns.values()}
        for name, row in found.items()
    }
    return "\n\n".join([table(["case", *columns], costs), engine(rest)])


def spread(found: Medians) -> str:
    """Orders by name, and what ours costs, which is told apart."""
    columns = [
        "cases",
        "mean_skew",
        "mean_worst_skew",
        "worst_skew",
        "cases_worse_than_random",
        "least_possible_percent",
    ]
    orders = {name: row for name, row in found.items() if "mean_skew" in row}
    headings = ["order", *(column.replace("_", " ") for column in columns)]
    costs = engine({name: row for name, row in found.items() if name not in orders})
    return "\n\n".join(
        [table(headings, [[name, *(row[column] for column in columns)] for name, row in orders.items()]), costs]
    )


def webhook(found: Medians) -> str:
    """Creations of pods, with the time of each subject beside that without webhooks."""
    headings = [
        "subject",
        "pods",
        "refused",
        "median ms",
        "90% ms",
        "99% ms",
        "slowest ms",
        "webhook ms",
        "operator CPU s",
        "API server CPU s",
    ]
    columns = (
        "pods",
        "refused",
        "median_ms",
        "p90_ms",
        "p99_ms",
        "slowest_ms",
        "webhook_ms",
        "operator_cpu_seconds",
        "api_server_cpu_seconds",
    )
    lines = [table(headings, [[name, *(row[column] for column in columns)] for name, row in found.items()])]
    names = list(found)
    if without := found.get(names[0]):
        compared = ("median_ms", "p99_ms", "api_server_cpu_seconds")
        rows = [
            [f"{name} / {names[0]}", *(ratio(found[name][column], without[column]) for column in compared)]
            for name in names[1:]
        ]
        lines.append(table(["ratio", "median", "99%", "API server CPU"], rows))
    return "\n\n".join(lines)


def scheduling(found: Medians) -> str:
    """The extender's time a pod, and how fast kube-scheduler is with and without it."""
    columns = {
        "nodes": "nodes",
        "pods": "requests",
        "median ms": "median_ms",
        "90% ms": "p90_ms",
        "99% ms": "p99_ms",
        "slowest ms": "slowest_ms",
        "CPU median ms": "cpu_median_ms",
        "CPU 99% ms": "cpu_p99_ms",
        "process CPU ms": "process_cpu_ms",
        "peak MiB": "peak_mib",
    }
    answers = {name: row for name, row in found.items() if "p99_ms" in row}
    speeds = {name: row for name, row in found.items() if name not in answers}
    alone = next(iter(speeds.values()))["pods_per_second"]
    fields = ("nodes", "pods", "pods_per_second", "scheduler_cpu_seconds", "extender_cpu_seconds")
    headings = ["scheduler", *(field.replace("_", " ") for field in fields), "ratio"]
    rows = [
        [name, *(row[field] for field in fields), ratio(row["pods_per_second"], alone)] for name, row in speeds.items()
    ]
    asked = [[name, *(row[field] for field in columns.values())] for name, row in answers.items()]
    return "\n\n".join([table(["pods", *columns], asked), table(headings, rows)])


def commands(found: Medians) -> str:
    """Each command, and how often the start of an interpreter fits into its CPU."""
    bare = found[BARE]["cpu_seconds"]
    rows = [[name, row["seconds"], row["cpu_seconds"], ratio(row["cpu_seconds"], bare)] for name, row in found.items()]
    return table(["command", "seconds", "CPU s", f"CPU / {BARE}"], rows)

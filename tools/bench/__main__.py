"""The command line of the benchmarks."""

import argparse
import dataclasses
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench import engine, latency, machine, reports, start, waves
from bench.cluster import Store
from bench.population import Shape
from bench.subjects import FAST_CLIENT, Subject, built_in, floor, taintwarden
from bench.table import medians

WAVE, QUICK_WAVE = Shape(300, 9_000), Shape(30, 900)
START, QUICK_START = Shape(1_500, 50_000), Shape(150, 5_000)
PODS_PER_NODE = 30
LATENCY, QUICK_LATENCY = Shape(5_000, 5_000), Shape(1_500, 1_500)
DEFAULT_CLIENT = Shape(30, 900)
"""Smaller cluster for the built-in controller with its default client, which would take half an hour for a wave."""
QUICK_SCALE = 0.05
CONCURRENCIES = (16, 32, 64)
Rows = dict[str, list[dict[str, Any]]]


def run_wave(options: argparse.Namespace, folder: Path) -> Rows:
    """Measure all subjects in rounds; then once, on fewer pods, the built-in controller with its default client."""
    store = Store(folder, shape(options, WAVE, QUICK_WAVE))
    bare = [Subject(f"bare client, {count} at once", floor(count)) for count in CONCURRENCIES]
    fast = Subject(reports.BUILT_IN, built_in(*FAST_CLIENT))
    rounds = [*bare[:1], Subject(reports.OURS, taintwarden), *bare[1:], fast] * options.repeat
    work = [(store, subject) for subject in rounds]
    if store.shape.pods > DEFAULT_CLIENT.pods:
        work.append((Store(folder, DEFAULT_CLIENT), Subject(reports.DEFAULTS, built_in())))
    return collect(work, lambda each: each[1].name, lambda each: waves.measure(*each))


def run_latency(options: argparse.Namespace, folder: Path) -> Rows:
    """Measure each subject alone, and while heartbeats of all nodes arrive."""
    store = Store(folder, QUICK_LATENCY if options.quick else LATENCY)
    subjects = [Subject(reports.OURS, taintwarden), Subject(reports.BUILT_IN, built_in(*FAST_CLIENT))]
    work = [(subject, nodes) for nodes in (0, store.shape.nodes) for subject in subjects] * options.repeat
    return collect(work, "{0[0].name}, heartbeats of {0[1]:,} nodes".format, lambda each: latency.measure(store, *each))


def run_start(options: argparse.Namespace, folder: Path) -> Rows:
    store = Store(folder, shape(options, START, QUICK_START))
    return collect([*start.STARTS] * options.repeat, str, lambda subject: start.measure(store, subject))


def shape(options: argparse.Namespace, usual: Shape, quick: Shape) -> Shape:
    found = quick if options.quick else usual
    if options.pods:
        found = Shape(options.pods // PODS_PER_NODE, options.pods)
    return dataclasses.replace(found, has_small_pods=options.small)


def run_cases(cases: Iterable[str]) -> Callable[[argparse.Namespace, Path], Rows]:
    def run(options: argparse.Namespace, _: Path) -> Rows:
        scale = QUICK_SCALE if options.quick else 1.0
        return collect([*cases] * options.repeat, str, lambda case: engine.measure(case, scale))

    return run


def collect(work: Iterable[Any], name: Callable[[Any], str], measure: Callable[[Any], Any]) -> Rows:
    rows: Rows = {}
    for each in work:
        found = measure(each)
        row = dataclasses.asdict(found) if dataclasses.is_dataclass(found) else found
        rows.setdefault(name(each), []).append(row)
        print(f"  {name(each)}: {json.dumps(row, default=str)}", file=sys.stderr, flush=True)
    return rows


BENCHES = {
    "wave": (run_wave, reports.wave),
    "latency": (run_latency, reports.engine),
    "start": (run_start, reports.start),
    "engine": (run_cases(engine.CASES), reports.engine),
    "step": (run_cases(engine.STEPS), reports.engine),
}


@contextmanager
def data_folder(given: Path | None) -> Iterator[Path]:
    """Yield the folder for populated data: the given one, or a temporary one."""
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="taintwarden-bench-data-") as name:
        yield Path(name)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Compare; never assert.")
    parser.add_argument("benches", nargs="*", metavar="BENCH", help=f"one of {', '.join(BENCHES)}; all by default")
    parser.add_argument("--quick", action="store_true", help="use small clusters, for a trial: the ratios mean little")
    parser.add_argument("--pods", type=int, help="pods of wave and start, a multiple of 30 (default 9,000 and 50,000)")
    parser.add_argument("--small", action="store_true", help="use pods with few fields in wave and start")
    parser.add_argument("--repeat", type=int, default=1, help="rounds; the reports show their medians (default 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every measurement to a file")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="keep populated data here and use them again")
    options = parser.parse_args()
    if unknown := set(options.benches) - set(BENCHES):
        parser.error(f"no such bench: {', '.join(sorted(unknown))}")
    options.benches = options.benches or list(BENCHES)
    return options


def main() -> None:
    options = parse()
    results: dict[str, Any] = {"machine": machine.describe(), "quick": options.quick}
    with data_folder(options.data) as folder:
        for name in options.benches:
            run, report = BENCHES[name]
            print(f"{name}: measuring ...", file=sys.stderr, flush=True)
            rows = results[name] = run(options, folder)
            print(
                f"\n## {name}\n\n{report({subject: medians(found) for subject, found in rows.items()})}\n", flush=True
            )
    if options.json:
        options.json.write_text(json.dumps(results, indent=1, default=str) + "\n")


if __name__ == "__main__":
    main()

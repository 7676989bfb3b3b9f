"""`make chaos`: faults on the real control plane, judged from outside."""

import argparse
import random
import sys
from pathlib import Path

from chaos.faults import BY_NAME_ONLY, FAULTS, SHORT
from chaos.playing import Run, opened, play
from chaos.report import load, save, table
from chaos.world import Scale
from controlplane.binaries import MissingBinariesError

SHORT_SCALE = Scale(40, 400)
SHOWN = 12


def main() -> int:
    """Play what is asked for; 1 if something is not as promised."""
    options = _options().parse_args()
    if options.list:
        for name, kind in FAULTS.items():
            first = (kind.__doc__ or "").strip().splitlines()[0]
            print(f"{name:20} {first}")
        return 0
    if options.table:
        print(table(load(options.table)))
        return 0
    names = options.fault or (SHORT if options.short else [name for name in FAULTS if name not in BY_NAME_ONLY])
    usual = SHORT_SCALE if options.short else Scale()
    scale = Scale(options.nodes or usual.nodes, options.pods or usual.pods)
    runs = []
    try:
        with opened(scale, keep=options.keep) as scene:
            print(f"{scale.nodes} nodes, {scale.pods} pods, logs in {scene.plane.folder}", flush=True)
            for name in names:
                seed = random.randrange(10**6) if options.seed is None else options.seed
                print(f"\n{name}, seed {seed}", flush=True)
                run = play(scene, name, seed, scale)
                runs.append(run)
                _say(run)
                if options.save:
                    save(options.save, run)
    except MissingBinariesError as error:
        print(error, file=sys.stderr)
        return 2
    print("\n" + table(runs))
    bad = [run for run in runs if run.breaches]
    for run in bad:
        print(f'\nnot as promised: {run.fault} {run.breaches}: make chaos ARGS="--fault {run.fault} --seed {run.seed}"')
    return 1 if bad else 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make chaos ARGS=...", description=__doc__)
    parser.add_argument("--list", action="store_true", help="list the faults")
    parser.add_argument("--fault", action="append", choices=FAULTS, help="play this one; may be repeated")
    parser.add_argument("--seed", type=int, help="in which order values change and faults strike; printed for each run")
    parser.add_argument("--short", action="store_true", help=f"play only {', '.join(SHORT)}, with few pods")
    parser.add_argument("--nodes", type=int, help=f"how many nodes: {Scale.nodes}, or {SHORT_SCALE.nodes} if short")
    parser.add_argument("--pods", type=int, help=f"how many pods: {Scale.pods}, or {SHORT_SCALE.pods} if short")
    parser.add_argument("--save", type=Path, metavar="FILE", help="add each run to this file")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print the table of the runs in this file")
    parser.add_argument("--keep", action="store_true", help="keep the folder with the logs")
    return parser


def _say(run: Run) -> None:
    verdict = run.verdict
    counts = ", ".join(f"{name} {count}" for name, count in verdict.breaches().items()) or "nothing"
    print(
        f"  {verdict.evictions} evictions ({verdict.unjudged} more not judged), found: {counts}; "
        f"latest {verdict.latest_seconds:.1f} s, "
        f"settled in {verdict.settled_seconds:.0f} s, {run.seconds:.0f} s in all"
    )
    if run.measured:
        print(run.measured)
    for finding in verdict.findings[:SHOWN]:
        print(f"    {finding}")
    if len(verdict.findings) > SHOWN:
        print(f"    and {len(verdict.findings) - SHOWN} more", flush=True)


if __name__ == "__main__":
    sys.exit(main())

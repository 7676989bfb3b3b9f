"""The world from the command line, with ``tests`` on PYTHONPATH::

python -m simulated.world play THEME SEED       every breach of one history, with what happened before
python -m simulated.world seek THEME FROM TO    which seeds of a theme (or of all) have breaches
python -m simulated.world shrink THEME SEED JUDGE   the least plan in which this judge still finds one
python -m simulated.world small STATES [FILE]   every small history, up to so many states; FILE keeps those seen
python -m simulated.world points                every point of every scenario
python -m simulated.world isolation FROM TO     with one tenant, or one node, more
python -m simulated.world differential FROM TO  edits, and the last of them alone
python -m simulated.world days DAYS SEED        days in which every name changes, and what the operator holds
"""

import gc
import os
import pickle
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from simulated.world import days, differential, isolation, points, small
from simulated.world.playing import explained, fails_by, play, shrunk
from simulated.world.themes import THEMES, draw
from simulated.world.world import World

STORED_EVERY = 20_000
"""States, of the small histories."""


def _play(theme: str, seed: str) -> bool:
    found = play(theme, int(seed))
    for breach in found.breaches:
        print(explained(theme, int(seed), breach), end="\n\n")
    print(f"{found.evictions} evictions, {len(found.breaches)} breaches")
    return not found.breaches


def _seek(theme: str, begin: str, end: str) -> bool:
    count: Counter[str] = Counter()
    began, evictions, histories = monotonic(), 0, 0
    for name in THEMES if theme == "all" else [theme]:
        for seed in range(int(begin), int(end)):
            found = play.__wrapped__(name, seed)
            histories, evictions = histories + 1, evictions + found.evictions
            for judge in dict.fromkeys(one.judge for one in found.breaches):
                first = next(one for one in found.breaches if one.judge == judge)
                count[f"{name} {judge}"] += 1
                print(f"{name} {seed} {first}", flush=True)
    seconds = monotonic() - began
    print(f"{histories} histories, {evictions} evictions, {seconds:.0f} s; breaches: {dict(count)}")
    return not count


def _shrink(theme: str, seed: str, judge: str) -> bool:
    plan = draw(int(seed), theme)
    if not fails_by(judge)(plan):
        print(f"{judge} finds nothing in {theme} {seed}")
        return True
    plan = shrunk(plan, fails_by(judge))
    print(plan)
    for breach in World(plan).play().breaches:
        print(breach)
    return False


def _small(states: str, file: str = "") -> bool:
    """With a file, what was seen is stored in it now and then, and continued by the next call."""
    began, store = monotonic(), Path(file or os.devnull)
    search = pickle.loads(store.read_bytes()) if file and store.exists() else small.Search()
    try:
        for goal in (*range(search.found.states + STORED_EVERY, int(states), STORED_EVERY), int(states)):
            search.explore(goal)
            store.write_bytes(pickle.dumps(search))
            gc.freeze()  # what is known stays, so the collector does not look at it again
    except small.BreachError as error:
        rule, sentence, path = error.args
        print(f"{rule}: {sentence}", *path, sep="\n")
        return False
    print(f"{search.found}, {monotonic() - began:.0f} s, no rule broken")
    return True


def _points() -> bool:
    count, bad = 0, 0
    for name in points.SCENARIOS:
        for point in points.points_of(name):
            count += 1
            for breach in points.breaches_at(point):
                bad += 1
                print(f"{point}: {breach}")
    print(f"{count} points, {bad} breaches")
    return not bad


def _isolation(begin: str, end: str) -> bool:
    bad = 0
    for seed in range(int(begin), int(end)):
        for adversary in (isolation.tenant, isolation.node):
            for breach in isolation.compare(seed, adversary):
                bad += 1
                print(f"{adversary.__name__} {seed}: {breach.sentence}", flush=True)
    print(f"{bad} breaches")
    return not bad


def _differential(begin: str, end: str) -> bool:
    bad = 0
    for seed in range(int(begin), int(end)):
        for breach in differential.compare(seed):
            bad += 1
            print(f"{seed}: {breach.sentence}", flush=True)
    print(f"{bad} breaches")
    return not bad


def _days(number: str, seed: str) -> bool:
    began = monotonic()
    found = days.play(24 * int(number), int(seed))
    for one in found.hours[23::24]:
        print(f"day {one.hours // 24}: {one.evictions} evictions, {one.names} names, {one.objects} objects are held")
    print(f"{found.per_name:+.4f} objects for each name, {monotonic() - began:.0f} s")
    print(*found.breaches, sep="\n")
    return not found.breaches


COMMANDS: dict[str, Callable[..., bool]] = {
    one.__name__.removeprefix("_"): one
    for one in (_play, _seek, _shrink, _small, _points, _isolation, _differential, _days)
}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    sys.exit(0 if COMMANDS[sys.argv[1]](*sys.argv[2:]) else 1)

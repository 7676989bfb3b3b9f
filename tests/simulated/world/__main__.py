"""The world from the command line, with ``tests`` on PYTHONPATH::

python -m simulated.world play THEME SEED       every breach of one history, with what happened before
python -m simulated.world seek THEME FROM TO    which seeds of a theme (or of all) have breaches
python -m simulated.world shrink THEME SEED JUDGE   the least plan in which this judge still finds one
"""

import sys
from collections import Counter
from collections.abc import Callable
from time import monotonic

from simulated.world.playing import explained, fails_by, play, shrunk
from simulated.world.themes import THEMES, draw
from simulated.world.world import World


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


COMMANDS: dict[str, Callable[..., bool]] = {one.__name__.removeprefix("_"): one for one in (_play, _seek, _shrink)}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    sys.exit(0 if COMMANDS[sys.argv[1]](*sys.argv[2:]) else 1)

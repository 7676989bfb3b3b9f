"""python -m fuzz TARGET [FLAGS OF LIBFUZZER]: search for inputs that a target does not stand, until one is found."""

import sys
import tempfile
import time
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["taintwarden", "yaml"]):
    from fuzz.mutation import mutate
    from fuzz.targets import TARGETS

BASE_SECONDS, SECONDS_PER_BYTE = 0.1, 30e-6
"""CPU time that an input may take, with all that watches it. What grows with the square of the input takes longer."""
TRIES = 3


class TooSlowError(Exception):
    """The best of some tries took longer than its length allows."""


def main() -> None:
    """Run one target."""
    name, *flags = sys.argv[1:]
    target = TARGETS[name]

    def tried(data: bytes) -> None:
        allowed = BASE_SECONDS + SECONDS_PER_BYTE * len(data)
        for _ in range(TRIES):
            began = time.process_time()
            target.run(data)
            if time.process_time() - began <= allowed:
                return
        raise TooSlowError(f"{len(data)} bytes took longer than {allowed:.2f} s of CPU")

    with tempfile.TemporaryDirectory(prefix=f"fuzz-{name}-") as folder:
        for number, seed in enumerate(target.seeds):
            (Path(folder) / str(number)).write_bytes(seed)
        atheris.Setup(
            [sys.argv[0], "-max_len=16384", "-rss_limit_mb=2048", "-print_final_stats=1", *flags, folder],
            tried,
            custom_mutator=lambda data, size, seed: mutate(data, size, seed, atheris.Mutate),
        )
        atheris.Fuzz()


main()

"""What stays in memory if the garbage collector does not run."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[Callable[[type], int]]:
    """Stop the collector. Yields what counts the objects of a type that were made since."""
    gc.collect()
    gc.disable()
    gc.freeze()  # else each count looks at all objects of all tests
    try:
        yield lambda kind: sum(isinstance(each, kind) for each in gc.get_objects())
    finally:
        gc.enable()

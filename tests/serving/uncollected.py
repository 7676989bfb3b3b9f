"""Counts of the objects that stay in memory while the garbage collector does not run."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[Callable[[type], int]]:
    """Stop the collector, and yield a function that counts the objects of a type that were made since."""
    gc.collect()
    gc.disable()
    gc.freeze()  # else each count looks at all objects of all tests
    try:
        yield lambda kind: sum(isinstance(each, kind) for each in gc.get_objects())
    finally:
        gc.enable()

"""Output to a terminal, in place of a pipe."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def terminal(columns: int = 100) -> Iterator[None]:
    """A terminal without colours, of `columns` columns."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("FORCE_COLOR", "1"), ("TERM", "dumb"), ("COLUMNS", str(columns)), ("LINES", "40")):
            patch.setenv(name, value)
        yield

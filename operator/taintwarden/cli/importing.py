"""What a command need not import."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def without_rich() -> Iterator[None]:
    """Hide rich from what is imported meanwhile.

    structlog imports it, if it is installed, for tracebacks that we do not use: a sixth of the imports of the operator.
    """
    modules: dict[str, Any] = sys.modules
    if "rich" in modules:
        yield
        return
    modules["rich"] = None  # Python: importing it raises ModuleNotFoundError
    try:
        yield
    finally:
        del modules["rich"]

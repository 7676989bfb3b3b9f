"""What was parsed of annotations, each text once: the pods of a workload have the same."""

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

SHORT, SHORT_TEXTS = 1_000, 4_000
"""A text of so many characters is short, and so many are remembered. A tenant can write many different ones."""
LONG, LONG_TEXTS = 65_536, 64
"""The same of long ones. What is longer is not parsed, and so not remembered."""

Parsed = TypeVar("Parsed")


def remembered(parse: Callable[[str], Parsed]) -> Callable[[str], Parsed]:
    """The same function of a text, which remembers its results. Long texts never take the place of short ones."""
    short, long = lru_cache(SHORT_TEXTS)(parse), lru_cache(LONG_TEXTS)(parse)
    return lambda text: (short if len(text) <= SHORT else long if len(text) <= LONG else parse)(text)

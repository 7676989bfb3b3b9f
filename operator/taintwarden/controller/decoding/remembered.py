"""What was parsed of annotations, each text once: the pods of a workload have the same."""

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

SHORT, SHORT_TEXTS, LONG_TEXTS = 1_000, 4_000, 64
"""A text of so many characters is short, and so many are remembered. A tenant can write many different ones: four
million characters of short ones, and as many of long ones, of which 65,536 count.
"""

Parsed = TypeVar("Parsed")


def remembered(parse: Callable[[str], Parsed]) -> Callable[[str], Parsed]:
    """The same function of a text, which remembers its results. Long texts never take the place of short ones."""
    short, long = lru_cache(SHORT_TEXTS)(parse), lru_cache(LONG_TEXTS)(parse)
    return lambda text: short(text) if len(text) <= SHORT else long(text)

"""A cache of parsed annotations. The pods of a workload have equal ones, so each text is parsed once."""

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

SHORT, SHORT_TEXTS = 1_000, 4_000
"""Maximum length of a short text, and maximum number of short texts cached. A tenant can write many different ones."""
LONG, LONG_TEXTS = 65_536, 64
"""Maximum length of a long text, and maximum number of long texts cached. The parser refuses longer ones at once."""

Parsed = TypeVar("Parsed")


def cached_by_text(parse: Callable[[str], Parsed]) -> Callable[[str], Parsed]:
    """Return ``parse`` with a cache. Long texts never displace short ones."""
    short, long = lru_cache(SHORT_TEXTS)(parse), lru_cache(LONG_TEXTS)(parse)
    return lambda text: (short if len(text) <= SHORT else long if len(text) <= LONG else parse)(text)

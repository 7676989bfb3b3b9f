"""Integers as parsed by Kubernetes' ``Gt`` and ``Lt`` (KEP-5471).

Canonical means ASCII ``0`` or ``-?[1-9][0-9]*`` within signed 64 bit, as apimachinery's ``IsDecimalInteger`` and
Go's ``strconv.ParseInt`` both accept. ``int()`` alone would accept ``+5``, `` 5``, ``1_000`` and non-ASCII digits.
"""

import re
from functools import lru_cache

MIN_INT64 = -(2**63)
MAX_INT64 = 2**63 - 1

# [0-9] and fullmatch on purpose: \d matches digits of other scripts, $ matches before a final newline.
_CANONICAL = re.compile(r"0|-?[1-9][0-9]{0,18}")


@lru_cache(maxsize=65536)
def parse_integer(text: str) -> int | None:
    """The value of a canonical int64, None for any other text."""
    if not _CANONICAL.fullmatch(text):
        return None
    value = int(text)
    return value if MIN_INT64 <= value <= MAX_INT64 else None


def explain_integer(text: str) -> str | None:
    """Why ``text`` is not a canonical integer and what to write instead; None if it is one."""
    if parse_integer(text) is not None:
        return None
    if not text:
        return "an integer is required, for example 950"
    try:
        value = int(text.replace("_", "?"))
    except ValueError:
        if re.fullmatch(r"-?[0-9]*\.[0-9]+", text):
            return "decimals are not allowed: scale the value, for example 995 for 99.5"
        return "must be a whole number of ASCII digits with an optional leading minus, for example 950"
    if not MIN_INT64 <= value <= MAX_INT64:
        return f"must lie between {MIN_INT64} and {MAX_INT64}"
    if text != text.strip():
        return f"white space is not allowed: write {value}"
    if text.startswith("+"):
        return f"a plus sign is not allowed: write {value}"
    if not text.isascii():
        return f"only ASCII digits are allowed: write {value}"
    return f"leading zeros are not allowed: write {value}, not {text}"

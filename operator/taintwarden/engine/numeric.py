"""Integers as Kubernetes parses them for ``Gt`` and ``Lt`` (KEP-5471).

Canonical means ASCII ``0`` or ``-?[1-9][0-9]*`` within signed 64 bits, as apimachinery's ``IsDecimalInteger`` and
Go's ``strconv.ParseInt`` both accept. ``int()`` alone would accept ``+5``, `` 5``, ``1_000`` and non-ASCII digits.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

MIN_INT64 = -(2**63)
MAX_INT64 = 2**63 - 1

_ZEROS = "leading zeros are not allowed"
# [0-9] and fullmatch on purpose: \d matches digits of other scripts, $ matches before a final newline.
_CANONICAL = re.compile(r"0|-?[1-9][0-9]{0,18}")


@lru_cache(maxsize=65536)
def parse_integer(text: str) -> int | None:
    """Return the value of a canonical int64; None for any other text."""
    if not _CANONICAL.fullmatch(text):
        return None
    value = int(text)
    return value if MIN_INT64 <= value <= MAX_INT64 else None


def explain_integer(text: str) -> str | None:
    """Explain why ``text`` is not a canonical integer and what to write instead; None if it is one."""
    if parse_integer(text) is not None:
        return None
    if not text:
        return "an integer is required, for example 950"
    for reason, meant in _readings(text):
        if parse_integer(meant) is not None:
            return f"{reason}: write {meant}" + (f", not {text}" if reason == _ZEROS else "")
    if decimal := re.fullmatch(r"(-?[0-9]*)\.([0-9]+)(%?)", text):
        also = " and a percent sign" if decimal[3] else ""
        scaled = (decimal[1] + decimal[2]).lstrip("0")
        example = f", for example {scaled} for {text}" if parse_integer(scaled) is not None else ""
        return f"decimals{also} are not allowed: scale the value{example}"
    if re.fullmatch(r"\s*[-+]?[0-9]+\s*", text):
        return f"must be between {MIN_INT64} and {MAX_INT64}, inclusive"
    if any(letter in "0123456789" for letter in text) and (found := re.search(r"[^0-9]", text.removeprefix("-"))):
        position = found.start() + 1 + text.startswith("-")
        return f"{found[0]!r} at position {position} is not a digit"
    return "must be a whole number of ASCII digits with an optional leading minus, for example 950"


def _readings(text: str) -> Iterator[tuple[str, str]]:
    """Yield possible faults of ``text``, each with the text that may be meant, which need not be an integer."""
    try:
        plain = str(int(text.replace("_", "?")))  # white space, signs, zeros and digits of other scripts
    except ValueError:
        plain = ""
    if text != text.strip():
        yield "white space is not allowed", plain
    elif text.startswith("+"):
        yield "a plus sign is not allowed", plain
    elif not text.isascii():
        yield "only ASCII digits are allowed", plain
    else:
        yield "zero may not have a minus sign" if plain == "0" and text.startswith("-") else _ZEROS, plain
    if re.fullmatch(r"-?[0-9]{1,3}([,_'][0-9]{3})+", text):
        yield "separators are not allowed", re.sub(r"[,_']", "", text)
    yield "a percent sign is not allowed", text.removesuffix("%")
    if whole := re.fullmatch(r"(-?[0-9]+)\.0*%?", text):
        yield "decimals are not allowed", whole[1]
    if power := re.fullmatch(r"(-?[0-9]{1,18})[eE]\+?([0-9]{1,2})", text):
        yield "an exponent is not allowed", power[1] + "0" * int(power[2])
    if re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}", text):
        yield "only decimal digits are allowed", str(int(text, 16))

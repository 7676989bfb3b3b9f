"""Values as integers for the scheduler: versions as numbers of the same orders, and texts that it would misread.

The scheduler parses a label with Go's ``strconv.ParseInt`` in base ten, which also accepts leading zeros.
"""

import re

from semver import Version

from taintwarden.engine import natural
from taintwarden.engine.natural import Natural, Part
from taintwarden.engine.numeric import MAX_INT64, parse_integer

MINOR_DIGITS = 4
PATCH_DIGITS = 8
MAJOR_LIMIT = 10**5
MINOR_LIMIT = 10**MINOR_DIGITS
PATCH_LIMIT = 10**PATCH_DIGITS
"""The lowest numbers that are too large. With the last digit there are 18 digits, all of which fit into int64."""

ORDER_BITS = 62
"""Of a place in the natural order: enough for the numbers of kernels, and it fits into int64."""

_DIGITS = re.compile(r"[0-9]+")
_PREFIXES = ("000", "001", "010", "011", "10", "11")
"""Of each kind of a part, in their order; none begins another."""


def encode_version(version: Version) -> int | None:
    """A number that sorts as the version does; None if one of its three numbers has too many digits.

    Read from the right: 1 for a release and 0 for its pre-releases, eight digits of the patch, four of the minor, then
    the major: 1.28.3 is 10028000000031. Pre-releases of one version get the same number: their order is lost.
    """
    if version.major >= MAJOR_LIMIT or version.minor >= MINOR_LIMIT or version.patch >= PATCH_LIMIT:
        return None
    number: int = (version.major * MINOR_LIMIT + version.minor) * PATCH_LIMIT + version.patch
    return number * 10 + (0 if version.prerelease else 1)


def encode_natural(version: Natural) -> tuple[int, bool]:
    """A number that sorts as the version does in the natural order, and whether no other version has it.

    Each part is written in bits that sort as the part does. Of a long version only the first of them fit, so that
    versions with the same beginning get the same number.
    """
    bits = "".join(map(_bits, version))
    return int(bits[:ORDER_BITS].ljust(ORDER_BITS, "0"), 2) + 1, len(bits) <= ORDER_BITS


def _bits(part: Part) -> str:
    kind, number, text = part
    match kind:
        case natural.PRE_RELEASE:
            return f"{_PREFIXES[kind]}{number:03b}"
        case natural.TEXT:
            return _PREFIXES[kind] + "".join(f"{ord(letter) - ord('a') + 1:05b}" for letter in text) + "00000"
        case natural.NUMBER:  # its length first, in ones: a longer number is a larger one
            digits = f"{number + 1:b}"
            return f"{_PREFIXES[kind]}{'1' * (len(digits) - 1)}0{digits[1:]}"
        case _:
            return _PREFIXES[kind]


def is_misread(value: str) -> bool:
    """Whether the scheduler would compare ``value`` as an integer although it is not canonical: 0950 as 950."""
    return parse_integer(value) is None and bool(_DIGITS.fullmatch(value)) and int(value) <= MAX_INT64

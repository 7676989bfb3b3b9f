"""Encoding of versions as integers in the same order, and detection of texts that the scheduler would misread.

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
"""Exclusive upper bounds of the three numbers. An encoded version has at most 18 digits, so it fits into int64."""

ORDER_BITS = 62
"""Number of bits of a version encoded in the natural order. It fits into int64 and suffices for kernel versions."""

_DIGITS = re.compile(r"[0-9]+")
_PREFIXES = ("000", "001", "010", "011", "10", "11")
"""Bit prefix of each kind of part, in the order of the kinds. No prefix is the beginning of another."""


def encode_version(version: Version) -> int | None:
    """Return an integer that sorts as the version does; None if one of its three numbers has too many digits.

    From the right: one digit, 1 for a release and 0 for its pre-releases; eight digits of the patch version, four of
    the minor version, then the major version. 1.28.3 is 10028000000031. A version's pre-releases share one number.
    """
    if version.major >= MAJOR_LIMIT or version.minor >= MINOR_LIMIT or version.patch >= PATCH_LIMIT:
        return None
    number: int = (version.major * MINOR_LIMIT + version.minor) * PATCH_LIMIT + version.patch
    return number * 10 + (0 if version.prerelease else 1)


def encode_natural(version: Natural) -> tuple[int, bool]:
    """Return an integer that sorts as the version does, and True if no other version has the same integer.

    The bits of each part sort as the parts do. Long versions are cut, so those with the same beginning get the same
    integer.
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
        case natural.NUMBER:  # first its length as a run of ones, since a longer number is larger
            digits = f"{number + 1:b}"
            return f"{_PREFIXES[kind]}{'1' * (len(digits) - 1)}0{digits[1:]}"
        case _:
            return _PREFIXES[kind]


def is_misread(value: str) -> bool:
    """True if the scheduler would compare ``value`` as an integer although it is not canonical, such as 0950 as 950."""
    return parse_integer(value) is None and bool(_DIGITS.fullmatch(value)) and int(value) <= MAX_INT64

"""Values as integers for the scheduler: versions as numbers of the same order, and texts that it would misread.

The scheduler parses a label with Go's ``strconv.ParseInt`` in base ten, which also accepts leading zeros.
"""

import re

from semver import Version

from taintwarden.engine.numeric import MAX_INT64, parse_integer

MINOR_DIGITS = 4
PATCH_DIGITS = 8
MAJOR_LIMIT = 10**5
MINOR_LIMIT = 10**MINOR_DIGITS
PATCH_LIMIT = 10**PATCH_DIGITS
"""The lowest numbers that are too large. With the last digit there are 18 digits, all of which fit into int64."""

_DIGITS = re.compile(r"[0-9]+")


def encode_version(version: Version) -> int | None:
    """A number that sorts as the version does; None if one of its three numbers has too many digits.

    Read from the right: 1 for a release and 0 for its pre-releases, eight digits of the patch, four of the minor, then
    the major: 1.28.3 is 10028000000031. Pre-releases of one version get the same number: their order is lost.
    """
    if version.major >= MAJOR_LIMIT or version.minor >= MINOR_LIMIT or version.patch >= PATCH_LIMIT:
        return None
    number: int = (version.major * MINOR_LIMIT + version.minor) * PATCH_LIMIT + version.patch
    return number * 10 + (0 if version.prerelease else 1)


def is_misread(value: str) -> bool:
    """Whether the scheduler would compare ``value`` as an integer although it is not canonical: 0950 as 950."""
    return parse_integer(value) is None and bool(_DIGITS.fullmatch(value)) and int(value) <= MAX_INT64

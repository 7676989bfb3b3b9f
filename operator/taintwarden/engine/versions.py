"""Versions as in KEP-5721: tolerant parsing, semver precedence.

The normalisation follows blang/semver v4 ``ParseTolerant`` rule by rule, because the KEP names it; the ``semver``
package then compares. Its ``optional_minor_and_patch`` differs: it refuses ``v1.2.3`` and accepts ``1.2-rc1``.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from semver import Version

from taintwarden.engine.natural import parse_natural

MAX_UINT64 = 2**64 - 1
MAX_SHOWN = 40
"""Maximum characters of a pre-release that a reason quotes. Longer ones are cut, so that the text stays readable."""

# Go's unicode.IsSpace. str.strip() would also trim \x1c-\x1f.
_GO_WHITE_SPACE = (
    "\t\n\v\f\r \u0085\u00a0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
_NUMBER = re.compile(r"0|[1-9][0-9]*")
_IDENTIFIER = re.compile(r"[0-9A-Za-z-]+")
_DIGITS = re.compile(r"[0-9]+")
_MIXED = re.compile(r"(?=.*[0-9]).*[A-Za-z].*")
_LOWEST = "0"
"""Lowest pre-release. A client writes it to include all other pre-releases of a release, so it needs no warning."""


@lru_cache(maxsize=65536)
def parse_version(text: str) -> Version | None:
    """Parse ``text`` as a version; None if it is not one. Compare results with ``<``, ``>`` and ``==``.

    Build metadata is dropped, since no operator compares it.
    """
    parts = text.strip(_GO_WHITE_SPACE).removeprefix("v").split(".", 2)
    parts = [*map(_without_leading_zeros, parts), *["0"] * (3 - len(parts))]
    rest, has_build, build = parts[2].partition("+")
    patch, has_prerelease, prerelease = rest.partition("-")
    numbers = [number for part in (*parts[:2], patch) if (number := _number(part)) is not None]
    if len(numbers) < 3 or (has_build and not all(_IDENTIFIER.fullmatch(part) for part in build.split("."))):
        return None
    if has_prerelease and not all(_is_prerelease_identifier(part) for part in prerelease.split(".")):
        return None
    major, minor, patch_number = numbers
    return Version(major, minor, patch_number, prerelease)


def semver_sort_key(text: str) -> tuple[object, ...] | None:
    """Return a sort key for semver precedence, which compares fast; None if ``text`` is not a version."""
    version = parse_version(text)
    if version is None:
        return None
    identifiers = version.prerelease.split(".") if version.prerelease else []
    placed = [(0, int(one), "") if _DIGITS.fullmatch(one) else (1, 0, one) for one in identifiers]
    return (version.major, version.minor, version.patch, not placed, *placed)


def explain_version(text: str) -> str | None:
    """Explain why ``text`` is not a version and what to write instead; None if it is one."""
    if parse_version(text) is not None:
        return None
    if not text:
        return "a version is required, for example 1.28.0"
    for reason, meant in _meant_versions(text):
        if parse_version(meant) is not None:
            return f"{reason}: write {meant}"
    return "must be a version: numbers as in 1.28.0, then optionally a pre-release (-rc.1) and a build (+5)"


def explain_text_order(version: str, other: str) -> str:
    """Explain why the order of two versions depends on text and may be unintended; empty if it does not.

    It does if the numbers are equal, and a vendor's suffix counts as a pre-release or mixes digits with letters.
    """
    first, second = parse_version(version), parse_version(other)
    if first is None or second is None or first.finalize_version() != second.finalize_version() or first == second:
        return ""
    return explain_text(version) or explain_text(other)


def explain_text(text: str) -> str:
    """Explain why the order of versions with equal numbers depends on their text; empty if it does not."""
    version = parse_version(text)
    identifiers = (version.prerelease or "").split(".") if version is not None else []
    mixed = next((identifier for identifier in identifiers if _MIXED.fullmatch(identifier)), "")
    return _explain_suffix(".".join(identifiers)) or (f"{_shortened(mixed)} compares as text" if mixed else "")


def _explain_suffix(prerelease: str) -> str:
    """Explain that semver orders a vendor's suffix below its release; empty if the natural order does so, too."""
    suffixed, release = parse_natural(f"1.1-{prerelease}"), parse_natural("1.1")
    if prerelease in ("", _LOWEST) or suffixed is None or release is None or suffixed < release:
        return ""
    return f"-{_shortened(prerelease)} counts as a pre-release, below its release"


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def _meant_versions(text: str) -> Iterator[tuple[str, str]]:
    """Yield possible faults of ``text``, each with a correction, which may still be no version."""
    if "://" in text:
        yield "a version has no scheme", text.split("://", 1)[1]
    yield "only a lower-case v may precede a version", text.lstrip("vV=^~<> ")
    whole = text
    if short := re.fullmatch(r"v?([0-9]+)(\.[0-9]+)?([-+].+)", text):
        whole = f"{short[1]}{short[2] or '.0'}.0{short[3]}"
        yield "a pre-release or build needs all three numbers", whole
    yield "a number in a pre-release has no leading zeros", re.sub(r"(?<=[-.])0+(?=[0-9]+(?:[.+]|$))", "", whole)


def _without_leading_zeros(part: str) -> str:
    if len(part) <= 1:
        return part
    trimmed = part.lstrip("0")
    return trimmed if trimmed[:1] in tuple("0123456789") else "0" + trimmed


def _number(text: str) -> int | None:
    if not _NUMBER.fullmatch(text):
        return None
    # 20 digits are enough for any uint64; int() of a longer text is slow and, above 4300 digits, raises.
    return value if len(text) <= 20 and (value := int(text)) <= MAX_UINT64 else None


def _is_prerelease_identifier(text: str) -> bool:
    if _DIGITS.fullmatch(text):
        return _number(text) is not None
    return bool(_IDENTIFIER.fullmatch(text))

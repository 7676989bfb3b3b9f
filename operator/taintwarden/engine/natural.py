"""Versions as nodes report them, in the order that users expect: kernels, node images, builds of vendors.

Most of these values are not semantic versions, or semver takes a vendor's suffix for a pre-release. No library sorts
all of ``tests/vectors/natural.json``: not ``univers``, ``packaging``, ``looseversion``, ``natsort``, nor Debian's
algorithm. Maven's order in ``univers`` comes nearest, with 3 errors in 180 pairs; the package takes half a second to
import and has three dependencies.
"""

import re
from functools import lru_cache

MAX_LENGTH = 256
"""Maximum characters of a text that is parsed. Taint values have at most 63, and no field of a node is longer."""
PRE_RELEASES = ("dev", "snapshot", "nightly", "alpha", "beta", "preview", "pre", "rc")
"""Words that make a version a pre-release, lowest first. ``~`` does so, too, and is lower than all of them."""

# Kinds of parts that may follow equal beginnings of two versions, lowest first.
TILDE, PRE_RELEASE, END, SEPARATOR, TEXT, NUMBER = range(6)

Part = tuple[int, int, str]
"""A part of a version: its kind, its number or index in ``PRE_RELEASES``, and its text. Parts compare as tuples."""
Natural = tuple[Part, ...]
"""A version as its parts. Compare with ``<``, ``>`` and ``==``."""

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://")
_LEADING_V = re.compile(r"v(?=[0-9])")
_SERVICE_PACK = re.compile(r"[-_ ]sp(?=[0-9])")
_RUNS = re.compile(r"[0-9]+|[a-z]+|~|[-+]+")
_DIGITS = "0123456789"
_ZERO: Part = (NUMBER, 0, "")
_SEPARATOR: Part = (SEPARATOR, 0, "")
_END: Part = (END, 0, "")


@lru_cache(maxsize=65536)
def parse_natural(text: str) -> Natural | None:
    """Parse the version in ``text``; None if it is none. Never raises.

    Runs of digits compare as numbers, runs of letters as text without regard to case; ``-`` and ``+`` are separators.
    All other characters but ``~`` only end a run, so a blank equals a ``_``. At the first difference, lowest first:
    ``~``, a pre-release, the end, a separator, text, a number. So 1.2~1 < 1.2-rc1 < 1.2 < 1.2-gke.1 < 1.2k < 1.2.1.
    Dropped are a scheme (``containerd://``), a leading ``v``, zeros that no number follows directly (6.8.0 is 6.8, and
    6.8.0-1 is 6.8-1), and a separator beside a pre-release or at the end. 15-SP6 is 15.6, since SLES writes both.
    """
    return None if _fault(text) else tuple(_parts(_bare(text)))


def explain_natural(text: str) -> str | None:
    """Explain why ``text`` is not a version and what to write instead; None if it is one."""
    return _fault(text) or None


def _fault(text: str) -> str:
    if not text:
        return "a version is required, for example 5.15.0-91-generic"
    if len(text) > MAX_LENGTH:
        return f"may not be more than {MAX_LENGTH} characters"
    if not (text.isascii() and text.isprintable()):
        return "must consist of printable ASCII characters"
    if not text[0].isalnum():
        return "must start with a letter or digit"
    if not any(char in _DIGITS for char in text):
        return "must contain a number, for example 5.15.0-91-generic"
    return ""


def _bare(text: str) -> str:
    lower = text.lower()
    if scheme := _SCHEME.match(lower):
        lower = lower[scheme.end() :]
    if _LEADING_V.match(lower):
        lower = lower[1:]
    return _SERVICE_PACK.sub(".", lower)


def _parts(bare: str) -> list[Part]:
    found: list[Part] = []
    runs: list[str] = _RUNS.findall(bare)
    for part in (*map(_part, runs), _END):
        if part[0] != NUMBER:
            _drop(found, _ZERO)
        if part[0] < TEXT:
            _drop(found, _SEPARATOR)
        if part == _SEPARATOR and found and found[-1][0] == PRE_RELEASE:
            continue
        found.append(part)
    return found


def _drop(parts: list[Part], last: Part) -> None:
    while parts and parts[-1] == last:
        parts.pop()


def _part(run: str) -> Part:
    if run[0] in _DIGITS:
        return (NUMBER, int(run), "")
    if run == "~":
        return (TILDE, 0, "")
    if run in PRE_RELEASES:
        return (PRE_RELEASE, PRE_RELEASES.index(run), "")
    return (TEXT, 0, run) if run[0].isalpha() else _SEPARATOR

"""Formatting of foreign text for Events, logs and terminals: escapes, bounded length, no passwords."""

import re

_USERINFO = re.compile(r"//.*@", re.DOTALL)
_CUT = " ... "
MAX_QUOTED = 300
"""Maximum characters quoted from an unexpected answer."""


def shortened(text: str, limit: int) -> str:
    """Shorten ``text`` to ``limit`` characters: its beginning and its end remain.

    The cause is at the end if a server passes on an error: ``failed calling webhook "a": Post "https://...": EOF``.
    """
    if len(text) <= limit:
        return text
    tail = (limit - len(_CUT)) // 2
    return f"{text[: limit - len(_CUT) - tail]}{_CUT}{text[len(text) - tail :]}"


def printable(text: str, limit: int | None = None) -> str:
    r"""Put ``text`` on one line, shortened to ``limit`` characters.

    Control characters, directional marks and lone surrogates become escapes such as ``\x1b``, as in a Python literal,
    and non-ASCII white space becomes a space: no terminal acts on them, and the text is always valid UTF-8.
    """
    if limit is not None:
        return shortened(printable(shortened(text, 3 * limit)), limit)
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else _escaped(one) for one in text)


def quoted(body: bytes) -> str:
    """Shorten an unexpected answer to one line, for example the HTML page of a gateway."""
    text = shortened(body.decode("utf-8", "replace"), 10 * MAX_QUOTED)
    return printable(" ".join(text.split()), MAX_QUOTED)


def without_userinfo(text: str) -> str:
    """Remove users and passwords from URLs in ``text``: ``//user:secret@host`` becomes ``//...@host``."""
    return _USERINFO.sub("//...@", text)


def _escaped(character: str) -> str:
    return " " if character.isspace() and ord(character) > 0x7F else character.encode("unicode_escape").decode("ascii")

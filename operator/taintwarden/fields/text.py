"""Foreign text made fit for Events, logs and terminals: control characters escaped, length bounded, no passwords."""

import re

_USERINFO = re.compile(r"//.*@", re.DOTALL)


def printable(text: str, limit: int | None = None) -> str:
    r"""``text`` on one line, at most ``limit`` characters of it; what is cut off leaves ``...``.

    Control characters, line separators, directional marks and lone surrogates become escapes such as ``\x1b``, as in a
    Python literal: no terminal acts on them, and the text is always valid UTF-8.
    """
    if limit is not None:
        shown = printable(text[: limit + 1])
        return shown if len(shown) <= limit else shown[:limit] + "..."
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else _escaped(one) for one in text)


def without_userinfo(text: str) -> str:
    """``text`` without users and passwords in URLs: ``//user:secret@host`` becomes ``//...@host``."""
    return _USERINFO.sub("//...@", text)


def _escaped(character: str) -> str:
    return " " if character.isspace() and ord(character) > 0x7F else character.encode("unicode_escape").decode("ascii")

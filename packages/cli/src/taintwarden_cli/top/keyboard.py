"""Keys of a terminal, one at a time and without an echo. Nothing on Windows or where standard input is no terminal."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Iterator

_ARROWS = {"\x1b[A": "up", "\x1b[B": "down", "\x1bOA": "up", "\x1bOB": "down"}


def split_keys(text: str) -> list[str]:
    """What was typed as keys: an arrow is several characters."""
    keys = []
    while text:
        arrow = next((one for one in _ARROWS if text.startswith(one)), None)
        keys.append(_ARROWS[arrow] if arrow else text[0])
        text = text[len(arrow) if arrow else 1 :]
    return keys


@contextlib.contextmanager
def typed() -> Iterator["asyncio.Queue[str]"]:
    """A queue that receives each key while this is entered."""
    keys: asyncio.Queue[str] = asyncio.Queue()
    if sys.stdin is None or not sys.stdin.isatty():
        yield keys
        return
    try:
        import termios  # noqa: PLC0415 - Windows has neither
        import tty  # noqa: PLC0415
    except ImportError:
        yield keys
        return
    descriptor, loop = sys.stdin.fileno(), asyncio.get_running_loop()
    before = termios.tcgetattr(descriptor)

    def read() -> None:
        for key in split_keys(os.read(descriptor, 64).decode(errors="ignore")):
            keys.put_nowait(key)

    tty.setcbreak(descriptor)
    loop.add_reader(descriptor, read)
    try:
        yield keys
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)

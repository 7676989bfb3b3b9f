"""Recording of the terminal output of commands."""

import asyncio
import fcntl
import os
import re
import struct
import termios
from collections.abc import Mapping, Sequence

WIDTH, HEIGHT = 100, 44
# Sequences with which rich redraws a live view: it moves up to the first line and erases each line on the way, or
# moves to the corner of an alternate screen.
_REDRAW = re.compile(r"\r?\x1b\[2K(?:\x1b\[1A\x1b\[2K)*|\x1b\[H")
_CURSOR = re.compile(r"\x1b\[\?(?:25|1049)[lh]")


async def record(command: Sequence[str], environment: Mapping[str, str], expected: int = 0) -> list[str]:
    """Run ``command`` and return its output, one text for each redrawing.

    Raises:
        RuntimeError: the exit code was neither ``expected`` nor 0.

    """
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    surroundings = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "", "LANG": "C.UTF-8", **environment}
    process = await asyncio.create_subprocess_exec(
        *command, stdin=theirs, stdout=theirs, stderr=theirs, env=surroundings, start_new_session=True
    )
    os.close(theirs)
    drawn = asyncio.create_task(asyncio.to_thread(_read_all, ours))
    code = await process.wait()
    text = await drawn
    if code not in {0, expected}:
        msg = f"{' '.join(command)} ended with {code}:\n{text}"
        raise RuntimeError(msg)
    return [_CURSOR.sub("", frame).rstrip() for frame in _REDRAW.split(text.replace("\r\n", "\n")) if frame.strip()]


def _read_all(terminal: int) -> str:
    """Read until the other end is closed, which Linux reports as an error."""
    parts: list[bytes] = []
    while True:
        try:
            part = os.read(terminal, 65_536)
        except OSError:
            part = b""
        if not part:
            os.close(terminal)
            return b"".join(parts).decode("utf-8", "replace")
        parts.append(part)

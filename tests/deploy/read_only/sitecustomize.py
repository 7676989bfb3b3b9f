"""A read-only file system, as far as Python is asked: whatever would write a file fails as the kernel would have it.

Python imports this by itself where this folder is in PYTHONPATH. Devices and what is open already can be written.
"""

import errno
import os
import sys

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = {
    *(f"os.{call}" for call in ("mkdir", "rename", "remove", "rmdir", "symlink", "link", "truncate", "chmod", "utime")),
    "tempfile.mkstemp",
    "tempfile.mkdtemp",
}


def refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open":
        path, _, flags = arguments
        if isinstance(path, int) or not (isinstance(flags, int) and flags & WRITES):
            return
        if os.fsdecode(path).startswith("/dev/"):  # type: ignore[arg-type]
            return
    elif event not in CHANGES:
        return
    raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(arguments[0]))


sys.addaudithook(refuse)

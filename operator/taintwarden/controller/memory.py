"""The memory of a process that knows its cluster."""

import ctypes
import gc


def release_unused() -> None:
    """What is known now stays for long, and what it took to read it is not needed any more.

    The collector does not look at it again. The C library returns its free memory to the kernel: it would keep that of
    the pages of lists. Other C libraries than glibc have no such call.
    """
    gc.collect()
    gc.freeze()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)

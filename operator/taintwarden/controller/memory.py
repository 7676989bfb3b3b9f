"""Memory management of the process after it has read its cluster."""

import ctypes
import gc


def release_unused() -> None:
    """Free the memory that the first lists needed, and exclude the objects read from garbage collection.

    These objects live long, so collecting them again is wasted work. glibc would keep the memory of the pages of
    lists, so it is asked to return that to the kernel. Other C libraries have no such call.
    """
    gc.collect()
    gc.freeze()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)

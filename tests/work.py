"""The cost of code as a number of steps, which is the same on every machine; `bench` measures times."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps(work: Callable[[], object]) -> int:
    """Number of lines of Python that a call runs and of functions that it calls, those in C too.

    What C does inside one call is a step, however long it takes: bound the size of what C is given beside it.
    """
    count = 0

    def line(_frame: FrameType, event: str, _arg: object) -> Any:
        nonlocal count
        count += event == "line"
        return line

    def call(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    tracing, profiling = sys.gettrace(), sys.getprofile()
    sys.setprofile(call)
    sys.settrace(line)
    try:
        work()
    finally:
        sys.settrace(tracing)
        sys.setprofile(profiling)
    return count

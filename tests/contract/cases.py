"""All cases, in order."""

import inspect
from collections.abc import Awaitable, Callable
from importlib import import_module

from contract import MODULES
from contract.api import Api

Case = Callable[[Api], Awaitable[None]]


def _cases() -> list[Case]:
    modules = [import_module(f"contract.{name}") for name in MODULES]
    return [case for module in modules for case in vars(module).values() if _is_case(case, module.__name__)]


def _is_case(case: object, module: str) -> bool:
    is_own = inspect.iscoroutinefunction(case) and case.__module__ == module
    return is_own and not case.__name__.startswith("_")


def name_of(case: Case) -> str:
    """The id of a case."""
    return f"{case.__module__.rpartition('.')[2]}-{case.__name__}"


CASES = _cases()
GATED = [case for case in CASES if "comparison" in case.__name__]  # answer differently with the feature gate on

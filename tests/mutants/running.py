"""Mutants under test: pytest collects once, then a child process for each mutant replaces the code and runs tests."""

import gc
import json
import os
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import NamedTuple

import coverage
import pytest
from hypothesis import Phase, settings

CPU_FACTOR, CPU_SECONDS = 10, 5
"""Maximum CPU time of a test with a mutant, as a factor and in addition; a test that takes more has found it."""
MEMORY_BYTES = 4 << 30

# A failure is enough: the smallest example is not reported.
settings.register_profile(
    "mutants", derandomize=True, deadline=None, database=None, phases=[Phase.explicit, Phase.generate]
)


class Found(NamedTuple):
    """Result of the tests for a mutant."""

    outcome: str
    """``killed``, ``survived``, ``not run`` where no test runs the line, or ``refused`` where it cannot be applied."""
    by: str = ""
    """The test that failed."""


class Known(NamedTuple):
    """Duration and coverage of tests without a mutant."""

    costs: dict[str, float]
    """Seconds of CPU, of each test that passes."""
    runners: dict[str, dict[str, list[str]]]
    """By file and line, the tests that run it."""


class Runner:
    """A plugin of pytest that does ``work`` in place of running the tests."""

    def __init__(self, work: Callable[["Runner"], None]) -> None:
        self._work = work
        self._failed = ""
        self._functions: list[FunctionType] = []
        self.items: list[pytest.Item] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Everything is imported and collected."""
        self.items = session.items
        gc.unfreeze()  # conftest.py froze what was collected, and nothing of that would be listed
        gc.collect()
        self._functions = [found for found in gc.get_objects() if type(found) is FunctionType]
        gc.freeze()
        self._work(self)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember that a test failed."""
        if report.failed:
            self._failed = report.nodeid

    def known(self, sources: list[str], stored: Path) -> Known:
        """Run all tests once; what they do is ``stored`` for the next time."""
        if not stored.exists():
            _in_child(lambda _: self._observe(sources, stored))
        if not stored.exists():
            msg = "the process that ran the tests to observe them ended early"
            raise RuntimeError(msg)
        return Known(*json.loads(stored.read_text()))

    def try_out(self, path: Path, line: int, text: str, known: Known, seconds: float) -> Found:
        """Run the cheapest tests that run ``line``, for ``seconds`` of CPU at most, with ``text`` as the module."""
        spent, chosen = 0.0, []
        running = set(_runners(path, line, known.runners.get(str(path), {})))
        for item in sorted(
            (item for item in self.items if item.nodeid in running), key=lambda i: known.costs[i.nodeid]
        ):
            spent += known.costs[item.nodeid]
            if spent > seconds:
                break
            chosen.append(item)
        if not chosen:
            return Found("not run")

        def attempt(say: Callable[[str], None]) -> None:
            if not self._replaced(path, text):
                say("refused")
                return
            for item, following in zip(chosen, [*chosen[1:], None], strict=True):
                say(item.nodeid)  # the last word, if the process is ended in it
                if self._fails(item, following, known.costs[item.nodeid]):
                    return
            say("survived")

        said = _in_child(attempt)
        return Found(said) if said in ("survived", "refused") else Found("killed", said)

    def _fails(self, item: pytest.Item, following: pytest.Item | None, cost: float) -> bool:
        limit = int(time.process_time() + CPU_FACTOR * cost + CPU_SECONDS)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
        self._failed = ""
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        return bool(self._failed)

    def _replaced(self, path: Path, text: str) -> bool:
        """Give every function that is defined in ``path`` the code that ``text`` has for it."""
        try:
            new = dict(_codes(compile(text, str(path), "exec")))
            before = ((name, old) for name, old in _codes(compile(path.read_text(), str(path), "exec")))
            changed = {old: new[name] for name, old in before if name in new and new[name] != old}
            found = [
                one for one in self._functions if one.__code__.co_filename == str(path) and one.__code__ in changed
            ]
            for function in found:
                function.__code__ = changed[function.__code__]
        except (SyntaxError, ValueError):  # a ``ValueError`` where it has other variables of an outer function
            return False
        return bool(found)

    def _observe(self, sources: list[str], stored: Path) -> None:
        costs = {}
        files = [source if source.endswith(".py") else f"{source}/*" for source in sources]
        observed = coverage.Coverage(data_file=None, branch=False, include=files, config_file=False)
        observed.set_option("run:core", "ctrace")  # the only one that tells tests apart
        observed.start()
        for item, following in zip(self.items, [*self.items[1:], None], strict=True):
            began = time.process_time()
            observed.switch_context(item.nodeid)
            self._failed = ""
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if not self._failed:
                costs[item.nodeid] = time.process_time() - began
        observed.stop()
        data = observed.get_data()
        runners = {
            path: {
                line: [name for name in names if name in costs] for line, names in data.contexts_by_lineno(path).items()
            }
            for path in data.measured_files()
        }
        stored.write_text(json.dumps([costs, runners]))


def _in_child(work: Callable[[Callable[[str], None]], None]) -> str:
    """The last that ``work`` said in a process of its own, which leaves nothing behind in this one."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            work(lambda said: _written(writing, said))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read().splitlines()
    os.waitpid(child, 0)
    return said[-1] if said else "refused"


def _written(stream: int, said: str) -> None:
    os.write(stream, f"{said}\n".encode())


def _runners(path: Path, line: int, known: dict[str, list[str]]) -> list[str]:
    """The tests that run a line, or the nearest above it in the same function: a statement may have several lines."""
    lines = path.read_text().splitlines()
    while line and not lines[line - 1].lstrip().startswith(("def ", "async def ", "class ")):
        if found := known.get(str(line)):
            return found
        line -= 1
    return []


def _codes(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    """All code in a module by qualified name and, where two have the same name, by order."""
    counted: dict[str, int] = {}
    waiting = [code]
    while waiting:
        for inner in waiting.pop().co_consts:
            if isinstance(inner, CodeType):
                number = counted[inner.co_qualname] = counted.get(inner.co_qualname, 0) + 1
                yield (inner.co_qualname, number), inner
                waiting.append(inner)

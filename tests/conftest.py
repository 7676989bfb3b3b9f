"""Options of the tests that take a cluster, and Hypothesis: the same few cases in every run, so that nothing is guarded
by chance. `make search` looks for new ones.
"""

import asyncio
import gc
from collections.abc import Callable
from functools import partial
from pathlib import Path

import looptime
import pytest
import structlog
import uvloop
import yaml
from hypothesis import settings

# `yaml.safe_load` and `yaml.safe_dump` are ten times as fast where libyaml is there.
yaml.SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
yaml.SafeDumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("taintwarden end-to-end")
    group.addoption("--kubeconfig", type=Path, help="run against an existing cluster instead of starting one")
    group.addoption("--context", default="", help="its context; must be on the allow list, since the tests evict pods")


settings.register_profile("same", derandomize=True, deadline=None, max_examples=40)
settings.register_profile("search", deadline=None, print_blob=True)
settings.load_profile("same")


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The event loop the served commands run on, or with ``looptime`` one whose clock moves by itself.

    The plugin of looptime is off: it looks at every fixture of every test, a quarter of what an empty test costs.
    """
    if mark := item.get_closest_marker("looptime"):
        return {"asyncio": partial(looptime.new_event_loop, **mark.kwargs)}
    return {"uvloop": uvloop.new_event_loop}


def pytest_collection_finish() -> None:
    """The garbage collector looks no more at what all tests are made of, each time that one of them allocates much."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def plain_logs() -> None:
    """A test that configures logs, as every command does, silences them for no other test."""
    structlog.reset_defaults()

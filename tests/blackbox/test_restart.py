"""The operator's process ends, in order or not, and the next one continues from its state."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from blackbox.box import ACT, NO_LIMIT, Box
from controlplane import Operator
from e2e.stories import taint, toleration

PODS, PER_SECOND, BEGUN = 12, 2, 3
LEASE_SECONDS = 15
START_SECONDS = 10
"""Seconds until a process has started and filled its caches, on most machines."""
BAD = taint("900")
STEP_SECONDS = 3_600
GRACE_SECONDS, KNOWN_SECONDS = 4, 15
CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static long step(void) { const char *text = getenv("CLOCK_STEP"); return text ? atol(text) : 0; }
int clock_gettime(clockid_t clock, struct timespec *found) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int failed = real(clock, found);
  if (!failed && clock == CLOCK_REALTIME) found->tv_sec += step();
  return failed;
}
int gettimeofday(struct timeval *found, void *zone) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  found->tv_sec = now.tv_sec; found->tv_usec = now.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *found) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (found) *found = now.tv_sec;
  return now.tv_sec;
}
"""


@pytest.fixture
def replaced(operator: Operator) -> Iterator[Operator]:
    """The operator, which a story ends; the next story finds it leading."""
    environment = dict(operator.process.env or {})
    yield operator
    if operator.process.env != environment:
        operator.process.stop()
        operator.process.env = environment
    if not operator.process.is_running:
        operator.start()
    operator.wait_leading()


@pytest.mark.parametrize("killed", [True, False], ids=["killed", "upgraded"])
def test_the_next_process_keeps_deadlines_and_evicts_no_pod_twice(box: Box, replaced: Operator, killed: bool) -> None:
    lasts = (LEASE_SECONDS if killed else 0) + START_SECONDS
    box.enforce(limits=NO_LIMIT | {"evictionsPerSecond": PER_SECOND, "burst": 1})
    node = box.node()
    pods = [box.pod(f"wave-{index}", node) for index in range(PODS)]
    later = box.pod("later", node, toleration("Exists", seconds=lasts + 3))
    tainted = box.taint(node, BAD)
    box.wait(lambda: box.left(pods) <= PODS - BEGUN, 15, "the wave to begin")
    if killed:
        replaced.kill9()
    else:
        replaced.stop()
    left = box.left(pods)
    assert left, "the wave was over before"
    replaced.start()
    replaced.wait_leading()
    leading = time.monotonic()
    box.last_gone(pods, leading, left / PER_SECOND + 3)
    box.leaves_by(leading + left / PER_SECOND, later, tainted, lasts + 3)
    assert box.accepted() == {pod.name: 1 for pod in [*pods, later]}


def test_a_tripped_guard_holds_over_a_restart(box: Box, replaced: Operator) -> None:
    box.enforce(limits=NO_LIMIT | {"guard": {"minPods": 2, "maxPercent": 1}})
    node = box.node()
    pods = box.crowd([box.namespace], 6, node)
    box.taint(node, BAD)
    box.wait_condition("GuardTripped", "True")
    replaced.restart()
    replaced.wait_leading()
    box.stays(*pods, until=time.monotonic() + 4)
    assert box.status_code() == ACT


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that moves the wall clock of a process."""
    if not (compiler := shutil.which("cc")):
        pytest.fail("there is no cc: install a C compiler, such as the package gcc of Debian")
    folder = tmp_path_factory.mktemp("clock")
    source, library = folder / "clock.c", folder / "clock.so"
    source.write_text(CLOCK)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


@pytest.mark.parametrize("step", [STEP_SECONDS, -STEP_SECONDS], ids=["ahead", "behind"])
def test_a_wrong_clock_moves_no_deadline(box: Box, replaced: Operator, clock: Path, step: int) -> None:
    box.enforce(timing={"violationGraceSeconds": GRACE_SECONDS})
    node, before = box.node(), box.node(name="before")
    known = box.pod("known", before, toleration("Exists", seconds=KNOWN_SECONDS))
    since = box.taint(before, BAD)
    box.wait_seen(before, "900")
    replaced.stop()
    replaced.process.env = {**(replaced.process.env or {}), "LD_PRELOAD": str(clock), "CLOCK_STEP": str(step)}
    replaced.start()
    replaced.wait_leading()
    leading = time.monotonic()
    pod = box.pod("web", node)
    box.leaves(pod, box.taint(node, BAD), GRACE_SECONDS)
    box.leaves_by(leading, known, since - 1, KNOWN_SECONDS)  # the header by which it is corrected has whole seconds

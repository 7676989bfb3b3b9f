"""Invariants of a guard in random histories."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from engine.guard.bench import WINDOW, Bench
from taintwarden.engine.guard import ALL
from taintwarden.engine.records import GuardRecord


class History:
    """Waves under one leader after another. Pods are evicted as limits ask it: each is in the stored record first."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.due: dict[str, tuple[str, float]] = {}
        """Pods that have to leave, with their namespace and when."""
        self.left: list[float] = []
        """When pods were evicted."""
        self.was_narrow = False
        self._stored = GuardRecord()
        self._number = 0

    def wave(self, namespace: str, size: int, after: float) -> None:
        for number in range(self._number, self._number + size):
            self.due[f"p{number}"] = namespace, self.bench.now.wall + after
            self.bench.expect(f"p{number}", namespace=namespace, after=after)
        self._number += size

    def recover(self, namespace: str) -> None:
        """Every other pod of a namespace may stay."""
        for uid in [uid for uid, (where, _) in self.due.items() if where == namespace][::2]:
            del self.due[uid]
            self.bench.forget(uid)

    def lead(self) -> None:
        """Another leader has the record that was stored last."""
        self.bench = self.bench.restart(self._stored)
        for uid, (namespace, at) in self.due.items():
            self.bench.expect(uid, namespace=namespace, after=at - self.bench.now.wall)
        self.bench.resolve(*self.due)

    def _store(self) -> None:
        if self.bench.guard.has_to_save:
            self._stored = self.bench.store()

    def evict(self, failing: str) -> None:
        """All that may go are called; calls of one namespace fail."""
        called: set[str] = set()
        while True:
            guard, now = self.bench.guard, self.bench.now
            self.bench.check_guard()
            self._store()
            self.was_narrow |= guard.latch.scope != ALL
            waiting = {uid: where for uid, (where, at) in self.due.items() if at <= now.wall and uid not in called}
            free = {uid: where for uid, where in waiting.items() if not guard.holds(where)}
            for uid in [uid for uid in free if guard.may_call(uid)]:
                called.add(uid)
                if free[uid] == failing:
                    self.bench.fail(uid, namespace=failing)
                else:
                    self.bench.evict(uid, namespace=free[uid])
                    del self.due[uid]
                    self.left.append(now.wall)
            if not [uid for uid in free if uid not in called and guard.want(uid, free[uid])]:
                return


NAMESPACES = st.sampled_from(["shop", "bank", "play"])


@given(
    st.lists(
        st.tuples(
            NAMESPACES,
            st.integers(0, 12),
            st.sampled_from([0, 0, 0, 400]),
            st.sampled_from([0, 1, 61, 200, 630]),
            st.sampled_from(["", "", "", "recover", "restart", "fail"]),
        ),
        max_size=12,
    )
)
def test_unreleased_at_most_the_allowance_leaves_within_a_window(steps):
    """1.5 times of it where one namespace was held. Pods are replaced at once."""
    history = History()
    for namespace, size, after, pause, also in steps:
        history.wave(namespace, size, after)
        if also == "recover":
            history.recover(namespace)
        history.evict(namespace if also == "fail" else "")
        if also == "restart":
            history.lead()
        history.bench.seconds += pause
    left, most = history.left, 15 if history.was_narrow else 10
    for first, last in itertools.combinations_with_replacement(range(len(left)), 2):
        if left[last] - left[first] <= WINDOW:
            assert last - first + 1 <= most


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from("ebtfw"), st.integers(0, 700)), max_size=60))
def test_the_guard_counts_the_pods_that_are_due(steps):
    """However they came to be due: expected again, called, or forgotten."""
    bench, due = Bench(max_percent=100), {}
    for number, step, seconds in steps:
        uid = f"p{number}"
        if step in "eb":
            bench.expect(uid, after=seconds, budget="b" if step == "b" else "")
            due[uid] = bench.seconds + seconds
        elif step == "w":
            bench.advance(seconds)
        else:
            {"t": bench.evict, "f": bench.forget}[step](uid)
            due.pop(uid, None)
    bench.allow("b", 100)
    bench.check_guard()
    assert bench.guard.expected() == sum(at <= bench.seconds + WINDOW for at in due.values())

"""How many pods of a workload may be missing, whoever took them."""

import msgspec
import pytest

from engine.kept import kept
from engine.limits.asking import AT_ONCE, ask
from engine.rig import limited, owner
from taintwarden.engine.interning import Interner
from taintwarden.engine.limits import Freed, Settlement
from taintwarden.engine.limits.refusal import WORKLOAD
from taintwarden.engine.limits.workloads import COUNTED_KINDS, FORGIVEN_SECONDS, UNKNOWN_SECONDS, Workloads
from taintwarden.engine.model import Instant, MonotonicTime, Owner, Pod, Share, Tolerations

ONE = Share(number=1)
FOREIGN = owner("clone", "CloneSet")


class Bench:
    """Workloads with the keys that they have freed, and pods by name."""

    def __init__(self, of: Owner | None = None) -> None:
        self.freed = Freed()
        self.workloads = Workloads(self.freed)
        self.interner = Interner()
        self.of = of or owner()
        self.pods: dict[str, Pod] = {}
        self.seconds = 0.0

    def pod(self, name: str, *, ready: bool = True, **labels: str) -> Pod:
        shared = self.interner.pod_class("shop", labels, Tolerations(), owner=self.of)
        pod = Pod(name, name, "n1", shared, 0.0, 1, ready)
        self.workloads.seen(pod, None)
        self.pods[name] = pod
        return pod

    def run(self, *names: str, wanted: int | None = None) -> None:
        for name in names:
            self.pod(name)
        self.workloads.want(("shop", self.of.uid), len(names) if wanted is None else wanted)
        self.freed.take()

    def turn(self, name: str, *, ready: bool) -> None:
        before = self.pods[name]
        self.pods[name] = msgspec.structs.replace(before, ready=ready)
        self.workloads.seen(self.pods[name], before)

    def leave(self, name: str) -> None:
        self.workloads.leave(self.pods[name])

    def gone(self, name: str) -> None:
        self.workloads.gone(self.pods[name], Instant(self.seconds, self.seconds))

    def admits(self, name: str, share: Share = ONE) -> bool:
        return self.workloads.refuse(self.pods[name], share, self.seconds) is None


# -- what counts as missing -------------------------------------------------------------------------------------------


def test_a_whole_workload_spares_a_pod():
    bench = Bench()
    bench.run(*"abcd")
    assert bench.admits("a")


def test_a_pod_on_its_way_out_counts_as_missing():
    bench = Bench()
    bench.run(*"abcd")
    bench.leave("a")
    assert not bench.admits("b")


def test_a_pod_that_is_gone_counts_as_missing_whoever_took_it():
    bench = Bench()
    bench.run(*"abcd")
    bench.gone("a")
    assert not bench.admits("b")


def test_a_pod_that_left_is_not_counted_twice():
    bench = Bench()
    bench.run(*"abcd")
    bench.leave("a")
    bench.gone("a")
    assert bench.admits("b", Share(number=2))


def test_a_pod_that_was_never_there_counts_as_missing():
    bench = Bench()
    bench.run(*"abc", wanted=4)
    assert not bench.admits("a")


def test_a_pod_that_is_not_ready_counts_as_missing():
    bench = Bench()
    bench.run(*"abcd")
    bench.turn("d", ready=False)
    assert not bench.admits("a")


def test_a_pod_that_is_not_ready_may_go_since_it_is_missing_already():
    bench = Bench()
    bench.run(*"abcd")
    bench.turn("d", ready=False)
    bench.gone("c")
    assert bench.admits("d")


def test_a_pod_that_is_not_ready_and_goes_changes_nothing():
    bench = Bench()
    bench.run(*"abcd")
    bench.turn("d", ready=False)
    bench.leave("d")
    assert bench.admits("a", Share(number=2))


def test_a_pod_that_turns_unready_on_its_way_out_is_counted_once():
    bench = Bench()
    bench.run(*"abcd")
    bench.leave("a")
    bench.turn("a", ready=False)
    assert bench.admits("b", Share(number=2))
    bench.turn("a", ready=True)
    assert bench.admits("b", Share(number=2))


def test_a_replacement_counts_when_it_is_ready():
    bench = Bench()
    bench.run(*"abcd")
    bench.gone("a")
    bench.pod("e", ready=False)
    assert not bench.admits("b")
    bench.turn("e", ready=True)
    assert bench.admits("b")


def test_more_pods_than_wanted_can_be_spared():
    bench = Bench()
    bench.run(*"abcdef", wanted=4)
    for name in "ab":
        bench.leave(name)
    assert bench.admits("c")
    bench.leave("c")
    assert not bench.admits("d")


def test_a_workload_scaled_down_misses_nobody():
    bench = Bench()
    bench.run(*"abcd")
    bench.gone("a")
    bench.workloads.want(("shop", bench.of.uid), 3)
    assert bench.admits("b")


def test_a_workload_scaled_up_misses_those_that_are_not_there_yet():
    bench = Bench()
    bench.run(*"abcd")
    bench.workloads.want(("shop", bench.of.uid), 8)
    assert not bench.admits("a")


def test_a_workload_scaled_to_nothing_lets_all_go():
    bench = Bench()
    bench.run(*"ab", wanted=0)
    bench.leave("a")
    assert bench.admits("b")


def test_a_call_that_failed_for_certain_counts_no_more():
    bench = Bench()
    bench.run(*"abcd")
    bench.leave("a")
    bench.workloads.stay("a")
    assert bench.admits("b")


def test_a_pod_that_stays_without_having_been_asked_for_changes_nothing():
    bench = Bench()
    bench.run(*"abcd")
    bench.workloads.stay("a")
    bench.leave("b")
    assert not bench.admits("a")


def test_a_pod_whose_call_may_have_been_carried_out_is_asked_for_again():
    bench = Bench()
    bench.run(*"abcd")
    bench.leave("a")
    assert bench.admits("a")


def test_asking_twice_for_a_pod_counts_it_once():
    bench = Bench()
    bench.run(*"abcd")
    bench.leave("a")
    bench.leave("a")
    bench.workloads.stay("a")
    assert bench.admits("b")


def test_a_pod_of_nobody_is_not_limited():
    bench = Bench()
    shared = bench.interner.pod_class("shop", {}, Tolerations())
    alone = Pod("alone", "alone", "n1", shared, 0.0, 1, True)
    bench.workloads.seen(alone, None)
    assert bench.workloads.refuse(alone, ONE, 0.0) is None
    bench.workloads.leave(alone)
    bench.workloads.gone(alone, AT_ONCE)


def test_a_pod_of_another_namespace_is_not_the_workloads_whatever_owner_it_names():
    """The API server does not check owners: a tenant's Ready pods would stand in for those that others miss."""
    bench = Bench()
    bench.run(*"abc", wanted=4)
    shared = bench.interner.pod_class("tenant", {}, Tolerations(), owner=bench.of)
    bench.workloads.seen(Pod("forged", "forged", "n1", shared, 0.0, 1, True), None)
    assert not bench.admits("a")


def test_a_pod_of_another_namespace_waits_in_a_line_of_its_own():
    """In the same line it would delay the release of those of the workload whose UID it names."""
    bench = Bench()
    bench.run(*"ab")
    bench.leave("a")
    shared = bench.interner.pod_class("tenant", {}, Tolerations(), owner=bench.of)
    forged = Pod("forged", "forged", "n1", shared, 0.0, 1, True)
    bench.workloads.seen(forged, None)
    refused, own = bench.workloads.refuse(forged, ONE, 0.0), bench.workloads.refuse(bench.pods["b"], ONE, 0.0)
    assert refused.limit == WORKLOAD
    assert refused.key != own.key


def test_workloads_do_not_mind_each_other():
    bench = Bench()
    bench.run(*"ab")
    bench.of = owner("other")
    bench.run(*"cd")
    bench.leave("a")
    assert bench.admits("c")


# -- how many may be ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("percent", "pods", "spared"),
    [(25, 1, 1), (25, 4, 1), (25, 7, 1), (25, 8, 2), (50, 3, 1), (100, 5, 5), (1, 3, 1), (33, 100, 33)],
)
def test_a_percentage_is_rounded_down_and_at_least_one(percent, pods, spared):
    bench = Bench()
    names = [f"p{number}" for number in range(pods)]
    bench.run(*names)
    gone = 0
    for name in names:
        if bench.admits(name, Share(percent=percent)):
            bench.leave(name)
            gone += 1
    assert gone == spared


def test_a_refusal_says_how_many_are_missing():
    bench = Bench()
    bench.run(*"abcd")
    bench.gone("a")
    refused = bench.workloads.refuse(bench.pods["b"], Share(percent=25), 0.0)
    assert refused is not None
    assert (refused.limit, refused.until) == (WORKLOAD, None)
    assert refused.detail == "1 of 4 pods of ReplicaSet web is missing, and at most 1 (25%) may be"


# -- controllers that are not known ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(COUNTED_KINDS))
def test_a_watched_kind_that_is_not_known_holds_its_pods(kind):
    bench = Bench(owner("web", kind))
    bench.pod("a")
    refused = bench.workloads.refuse(bench.pods["a"], ONE, 0.0)
    assert refused is not None
    assert (refused.limit, refused.detail) == (WORKLOAD, f"{kind} web is not known")


def test_a_workload_lets_go_once_it_is_seen():
    bench = Bench()
    bench.pod("a")
    bench.workloads.want(("shop", bench.of.uid), 1)
    assert bench.admits("a")


def test_a_workload_that_is_gone_is_not_known_any_more():
    bench = Bench()
    bench.run(*"ab")
    bench.workloads.want(("shop", bench.of.uid), None)
    assert not bench.admits("a")


def test_a_workload_that_was_never_known_may_go():
    Bench().workloads.want(("shop", "nobody"), None)


def test_what_a_workload_wants_is_remembered_while_it_has_no_pods():
    bench = Bench()
    bench.run(*"a")
    bench.gone("a")
    bench.pod("b")
    assert bench.admits("b")


def test_a_foreign_controller_is_believed_to_want_what_it_has():
    bench = Bench(FOREIGN)
    for name in "abcd":
        bench.pod(name)
    assert bench.admits("a")


def test_a_foreign_controllers_evicted_pod_is_missing_until_another_is_ready():
    bench = Bench(FOREIGN)
    for name in "abcd":
        bench.pod(name)
    bench.leave("a")
    assert not bench.admits("b")
    bench.gone("a")
    assert not bench.admits("b")
    bench.pod("e", ready=False)
    assert not bench.admits("b", Share(number=2)), "a is owed, and e is not Ready"
    bench.turn("e", ready=True)
    assert bench.admits("b")


def test_a_foreign_controllers_pod_that_somebody_else_took_is_not_owed():
    bench = Bench(FOREIGN)
    for name in "abcd":
        bench.pod(name)
    bench.gone("a")
    assert bench.admits("b")


def test_a_foreign_controllers_unready_pods_are_missing():
    bench = Bench(FOREIGN)
    for name in "abcd":
        bench.pod(name)
    bench.turn("d", ready=False)
    assert not bench.admits("a")


def indebted() -> Bench:
    """A foreign controller with three pods left of four, since one was evicted."""
    bench = Bench(FOREIGN)
    for name in "abcd":
        bench.pod(name)
    bench.leave("a")
    bench.gone("a")
    return bench


def test_a_pod_that_is_ready_again_replaces_nobody():
    bench = indebted()
    bench.turn("c", ready=False)
    bench.turn("c", ready=True)
    assert not bench.admits("b")


def test_each_new_pod_replaces_one():
    bench = indebted()
    bench.workloads.leave(bench.pods["b"])
    bench.gone("b")
    bench.pod("e")
    assert not bench.admits("c")
    bench.pod("f")
    assert bench.admits("c")


def test_a_pod_that_nobody_replaces_is_forgiven_after_a_while():
    bench = indebted()
    refused = bench.workloads.refuse(bench.pods["b"], ONE, 0.0)
    assert refused is not None
    assert refused.until == FORGIVEN_SECONDS
    bench.seconds = FORGIVEN_SECONDS
    assert bench.admits("b")


def test_each_is_forgiven_in_its_own_time():
    bench = indebted()
    bench.seconds = 100.0
    bench.leave("b")
    bench.gone("b")
    bench.seconds = FORGIVEN_SECONDS
    assert not bench.admits("c")
    assert bench.admits("c", Share(number=2))


def test_a_watched_controllers_pods_are_never_forgiven():
    bench = Bench()
    bench.run(*"abcd")
    bench.leave("a")
    bench.gone("a")
    bench.seconds = FORGIVEN_SECONDS * 10
    assert not bench.admits("b")


def test_pods_that_are_gone_are_not_remembered_as_having_been_ready():
    bench = indebted()
    assert [name for name in "abcd" if kept(bench.workloads, name)] == ["b", "c", "d"]


def test_a_foreign_workload_is_forgotten_with_its_last_pod_whatever_it_is_owed():
    bench = indebted()
    for name in "bcd":
        bench.leave(name)
        bench.gone(name)
    bench.freed.take()
    assert kept(bench.workloads, FOREIGN.uid) == []


# -- as a limit --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settlement", "missing"), [(Settlement.EVICTED, True), (Settlement.UNKNOWN, True), (Settlement.STAYS, False)]
)
def test_a_reservation_counts_unless_the_pod_stays(settlement, missing):
    bench = Bench()
    bench.run(*"abcd")
    asked = ask(bench.pods["a"], limited(max_unavailable=ONE))
    bench.workloads.reserve(asked)
    bench.workloads.settle("a", settlement, AT_ONCE)
    assert bench.admits("b") != missing


# -- a controller that does not exist --------------------------------------------------------------------------------


def test_a_controller_that_is_never_known_is_waited_for_a_minute_only():
    bench = Bench()
    for name in "abcdefgh":
        bench.pod(name)
    refused = bench.workloads.refuse(bench.pods["a"], ONE, MonotonicTime(0.0))
    assert refused is not None
    assert (refused.limit, refused.until) == (WORKLOAD, UNKNOWN_SECONDS)
    assert bench.workloads.refuse(bench.pods["a"], ONE, refused.until) is None


def test_its_pods_then_count_as_those_of_a_controller_that_is_not_watched():
    bench = Bench()
    for name in "ab":
        bench.pod(name)
    bench.workloads.refuse(bench.pods["a"], ONE, MonotonicTime(0.0))
    bench.leave("a")
    refused = bench.workloads.refuse(bench.pods["b"], ONE, MonotonicTime(UNKNOWN_SECONDS))
    assert refused is not None
    assert refused.limit == WORKLOAD


def test_their_evicted_pods_are_missing_until_others_are_ready():
    bench = Bench()
    for name in "abcd":
        bench.pod(name)
    bench.workloads.refuse(bench.pods["a"], ONE, MonotonicTime(0.0))
    bench.seconds = UNKNOWN_SECONDS
    bench.leave("a")
    bench.gone("a")
    assert not bench.admits("b")
    bench.pod("e")
    assert bench.admits("b")


def test_pods_evicted_while_their_controller_was_known_are_not_missing_when_it_is_gone():
    bench = Bench()
    bench.run(*"abcd")
    bench.leave("a")
    bench.gone("a")
    bench.workloads.want(("shop", bench.of.uid), None)
    bench.workloads.refuse(bench.pods["b"], ONE, MonotonicTime(0.0))
    bench.seconds = UNKNOWN_SECONDS
    assert bench.admits("b")


def test_one_that_is_known_late_is_waited_for_anew_after_its_deletion():
    bench = Bench()
    bench.run(*"ab")
    bench.workloads.want(("shop", bench.of.uid), None)
    refused = bench.workloads.refuse(bench.pods["a"], ONE, MonotonicTime(500.0))
    assert refused is not None
    assert refused.until == 500.0 + UNKNOWN_SECONDS


# -- who is told -------------------------------------------------------------------------------------------------------


def key(bench: Bench) -> str:
    return f"workload/shop/{bench.of.uid}"


@pytest.mark.parametrize(
    "happens",
    [
        lambda bench: bench.turn("d", ready=True),
        lambda bench: bench.pod("e"),
        lambda bench: bench.gone("d"),
        lambda bench: bench.workloads.want(("shop", bench.of.uid), 2),
        lambda bench: bench.workloads.want(("shop", bench.of.uid), None),
        lambda bench: bench.workloads.stay("a"),
    ],
    ids=["ready", "new", "gone", "scaled", "deleted", "stays"],
)
def test_what_may_spare_a_pod_is_told(happens):
    bench = Bench()
    bench.run(*"abcd")
    bench.turn("d", ready=False)
    bench.leave("a")
    bench.freed.take()
    happens(bench)
    assert bench.freed.take() == [key(bench)]


def test_a_pod_seen_again_as_it_was_tells_nobody():
    bench = Bench()
    bench.run(*"ab")
    bench.workloads.seen(bench.pods["a"], bench.pods["a"])
    assert bench.freed.take() == []
    assert bench.workloads._workloads["shop", bench.of.uid].total == 2


# -- what is remembered ------------------------------------------------------------------------------------------------


def test_a_workload_is_forgotten_with_its_last_pod():
    bench = Bench()
    bench.run(*"ab")
    bench.leave("a")
    for name in "ab":
        bench.gone(name)
    bench.workloads.want(("shop", bench.of.uid), None)
    bench.freed.take()
    assert kept(bench.workloads, bench.of.uid) == []

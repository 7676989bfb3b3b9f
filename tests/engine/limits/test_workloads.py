"""Maximum number of missing pods of a workload, whatever removed them."""

import msgspec
import pytest

from engine.kept import kept
from engine.limits.asking import AT_ONCE, ask
from engine.rig import limited, owner
from engine.script import play
from taintwarden.engine.interning import Interner
from taintwarden.engine.limit_settings import PerWorkload
from taintwarden.engine.limits import FreedKeys
from taintwarden.engine.limits.refusal import WORKLOAD
from taintwarden.engine.limits.workloads import MISSING_SECONDS, Workloads
from taintwarden.engine.model import Instant, Owner, Pod, Tolerations

ONE = PerWorkload(1)
FOREIGN = owner("clone", "CloneSet")


class Bench:
    """Workloads with the keys that they have freed, and pods by name."""

    def __init__(self, of: Owner | None = None) -> None:
        self.freed = FreedKeys()
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
        self.workloads.set_wanted(("shop", self.of.uid), len(names) if wanted is None else wanted)
        self.freed.take()

    def turn(self, name: str, *, ready: bool) -> None:
        before = self.pods[name]
        self.pods[name] = msgspec.structs.replace(before, ready=ready)
        self.workloads.seen(self.pods[name], before)

    def leave(self, name: str) -> None:
        self.workloads.leave(self.pods[name])

    def gone(self, name: str) -> None:
        self.workloads.gone(self.pods[name], Instant(self.seconds, self.seconds))

    def admits(self, name: str, share: PerWorkload = ONE) -> bool:
        return self.workloads.refuse(self.pods[name], share, self.seconds) is None

    def starting(self, name: str) -> None:
        self.pod(name, ready=False)

    def becomes_ready(self, name: str) -> None:
        self.turn(name, ready=True)

    def becomes_unready(self, name: str) -> None:
        self.turn(name, ready=False)

    def stay(self, name: str) -> None:
        self.workloads.stay(name)

    def want(self, number: str | int) -> None:
        self.workloads.set_wanted(("shop", self.of.uid), int(number))


# -- what counts as missing -------------------------------------------------------------------------------------------

MISSING = {
    "a whole workload": ("", "a", 1, True),
    "one is on its way out": ("leave a", "b", 1, False),
    "one is gone, whoever took it": ("gone a", "b", 1, False),
    "one that left is not counted twice": ("leave a, gone a", "b", 2, True),
    "one was never there": ("want 5", "a", 1, False),
    "one is not Ready": ("becomes_unready d", "a", 1, False),
    "one that is not Ready is missing already": ("becomes_unready d, gone c", "d", 1, True),
    "one that is not Ready and goes changes nothing": ("becomes_unready d, leave d", "a", 2, True),
    "one turns unready on its way out": ("leave a, becomes_unready a", "b", 2, True),
    "one turns unready and Ready on its way out": ("leave a, becomes_unready a, becomes_ready a", "b", 2, True),
    "a replacement is not Ready": ("gone a, starting e", "b", 1, False),
    "a replacement is Ready": ("gone a, starting e, becomes_ready e", "b", 1, True),
    "more than wanted can be spared": ("pod e, pod f, leave a, leave b", "c", 1, True),
    "and no more than those": ("pod e, pod f, leave a, leave b, leave c", "d", 1, False),
    "scaled down": ("gone a, want 3", "b", 1, True),
    "scaled up": ("want 8", "a", 1, False),
    "scaled to nothing": ("want 0, leave a", "b", 1, True),
    "a call failed for certain": ("leave a, stay a", "b", 1, True),
    "one stays that was not called for": ("stay a, leave b", "a", 1, False),
    "one whose call may have been carried out is called for again": ("leave a", "a", 1, True),
    "called for twice, one counts once": ("leave a, leave a, stay a", "b", 1, True),
}
"""Events of the pods a to d of a workload that wants four; the pod to check, ``most``, and if it is admitted."""


@pytest.mark.parametrize(("happens", "name", "most", "admits"), MISSING.values(), ids=MISSING)
def test_pods_are_missing(happens, name, most, admits):
    bench = Bench()
    bench.run(*"abcd")
    play(bench, happens)
    assert bench.admits(name, PerWorkload(most)) == admits


def test_a_pod_without_a_controller_is_not_limited():
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
    forged, leaves = (Pod(uid, uid, "n1", shared, 0.0, 1, True) for uid in ("forged", "leaves"))
    for pod in (forged, leaves):
        bench.workloads.seen(pod, None)
    bench.workloads.leave(leaves)
    refused, own = bench.workloads.refuse(forged, ONE, 0.0), bench.workloads.refuse(bench.pods["b"], ONE, 0.0)
    assert refused.limit == WORKLOAD
    assert refused.key != own.key


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
        if bench.admits(name, PerWorkload(f"{percent}%")):
            bench.leave(name)
            gone += 1
    assert gone == spared


@pytest.mark.parametrize("limit", [PerWorkload("25%"), PerWorkload()], ids=["given", "default"])
def test_a_refusal_says_how_many_are_missing(limit):
    bench = Bench()
    bench.run(*"abcd")
    bench.gone("a")
    refused = bench.workloads.refuse(bench.pods["b"], limit, 0.0)
    assert (refused.limit, refused.until) == (WORKLOAD, None)
    assert refused.detail == "1 of 4 pods of ReplicaSet web is missing or being evicted, and at most 1 (25%) may be"


# -- controllers that are not known ------------------------------------------------------------------------------------


FOREIGN_MISSING = {
    "it wants what it has": ("", "a", 1, True),
    "one is on its way out": ("leave a", "b", 1, False),
    "one that was evicted is owed": ("leave a, gone a", "b", 1, False),
    "what replaces it is not Ready": ("leave a, gone a, starting e", "b", 2, False),
    "what replaces it is Ready": ("leave a, gone a, starting e, becomes_ready e", "b", 1, True),
    "one that another client took is not owed": ("gone a", "b", 1, True),
    "one is not Ready": ("becomes_unready d", "a", 1, False),
    "one that is Ready again replaces none": ("leave a, gone a, becomes_unready c, becomes_ready c", "b", 1, False),
    "the only one left changes": ("leave a, gone a, gone b, gone c, becomes_unready d, becomes_ready d", "d", 1, False),
    "each new pod replaces one": ("leave a, gone a, leave b, gone b, pod e", "c", 1, False),
    "two new pods replace two": ("leave a, gone a, leave b, gone b, pod e, pod f", "c", 1, True),
}


def test_of_a_controller_that_is_not_known_yet_or_any_more_what_runs_counts():
    bench = Bench()
    for name in "abcd":
        bench.pod(name)
    bench.leave("a")
    assert not bench.admits("b")
    bench.workloads.set_wanted(("shop", bench.of.uid), 8)
    assert not bench.admits("b", PerWorkload(2))
    bench.workloads.set_wanted(("shop", bench.of.uid), None)
    assert bench.admits("b", PerWorkload(2))


def foreign(happens: str = "") -> Bench:
    """Four pods of a controller that is not watched."""
    bench = Bench(FOREIGN)
    play(bench, f"pod a, pod b, pod c, pod d, {happens}")
    return bench


@pytest.mark.parametrize(("happens", "name", "most", "admits"), FOREIGN_MISSING.values(), ids=FOREIGN_MISSING)
def test_pods_of_a_foreign_controller_are_missing(happens, name, most, admits):
    bench = foreign(happens)
    assert bench.admits(name, PerWorkload(most)) == admits


def indebted() -> Bench:
    """A foreign controller with three pods left of four, since one was evicted."""
    return foreign("leave a, gone a")


def test_a_pod_without_a_replacement_counts_as_missing_for_a_limited_time():
    bench = indebted()
    refused = bench.workloads.refuse(bench.pods["b"], ONE, 0.0)
    assert refused.until == MISSING_SECONDS
    assert kept(bench.workloads, "a") == []
    bench.seconds = MISSING_SECONDS
    assert bench.admits("b")


def test_a_refusal_ends_when_the_first_of_several_is_forgiven():
    bench = indebted()
    bench.seconds = 10.0
    play(bench, "leave c, gone c")
    assert bench.workloads.refuse(bench.pods["b"], ONE, 10.0).until == MISSING_SECONDS


# -- as a limit --------------------------------------------------------------------------------------------------------


def test_a_reservation_counts_until_the_pod_stays():
    bench = Bench()
    bench.run(*"abcd")
    asked = ask(bench.pods["a"], limited(per_workload=ONE))
    bench.workloads.reserve(asked)
    assert not bench.admits("b")
    bench.workloads.stay("a")
    assert bench.admits("b")


# -- retries -----------------------------------------------------------------------------------------------------------


def key(bench: Bench) -> str:
    return f"workload/shop/{bench.of.uid}"


@pytest.mark.parametrize(
    "happens",
    [
        lambda bench: bench.turn("d", ready=True),
        lambda bench: bench.pod("e"),
        lambda bench: bench.gone("d"),
        lambda bench: bench.workloads.set_wanted(("shop", bench.of.uid), 2),
        lambda bench: bench.workloads.set_wanted(("shop", bench.of.uid), None),
        lambda bench: bench.workloads.stay("a"),
    ],
    ids=["ready", "new", "gone", "scaled", "deleted", "stays"],
)
def test_an_event_that_may_spare_a_pod_frees_the_workload(happens):
    bench = Bench()
    bench.run(*"abcd")
    bench.turn("d", ready=False)
    bench.leave("a")
    bench.freed.take()
    happens(bench)
    assert bench.freed.take() == [key(bench)]


def test_a_refusal_names_a_pod_that_is_not_ready_for_as_long_as_it_is_there():
    bench = Bench()
    bench.run(*"abcd")
    bench.turn("c", ready=False)
    bench.turn("d", ready=False)
    refused = lambda: bench.workloads.refuse(bench.pods["a"], ONE, 0.0).detail  # noqa: E731
    assert "2 of 4 pods of ReplicaSet web are missing or being evicted (such as c on n1: not Ready)" in refused()
    bench.turn("c", ready=True)
    assert "(such as d on n1: not Ready)" in refused()
    bench.gone("d")
    assert refused().startswith("1 of 4 pods of ReplicaSet web is missing or being evicted, and")


def test_a_pod_that_is_not_ready_is_still_named_after_its_labels_changed():
    bench = Bench()
    bench.run(*"ab")
    bench.turn("b", ready=False)
    before, shared = bench.pods["b"], bench.interner.pod_class("shop", {"new": "1"}, Tolerations(), owner=bench.of)
    bench.pods["b"] = msgspec.structs.replace(before, shared=shared)
    bench.workloads.seen(bench.pods["b"], before)
    assert "(such as b on n1: not Ready)" in bench.workloads.refuse(bench.pods["a"], ONE, 0.0).detail
    bench.gone("b")
    assert "(such as" not in bench.workloads.refuse(bench.pods["a"], ONE, 0.0).detail


def test_a_pod_that_is_on_two_nodes_after_a_restore_of_the_store_is_named_until_it_is_on_none():
    bench = Bench()
    bench.run("a", wanted=2)
    old = bench.pod("b", ready=False)
    new = msgspec.structs.replace(old, node="n2")
    bench.workloads.seen(new, None)
    bench.workloads.gone(old, AT_ONCE)
    assert "(such as b on n2: not Ready)" in bench.workloads.refuse(bench.pods["a"], ONE, 0.0).detail
    bench.workloads.gone(new, AT_ONCE)
    assert "(such as" not in bench.workloads.refuse(bench.pods["a"], ONE, 0.0).detail

"""Pods with one value of a label are one more workload, of which one pod may be missing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kept import kept
from engine.rig import owner
from engine.script import play
from taintwarden.engine.interning import Interner
from taintwarden.engine.limit_settings import PerWorkload
from taintwarden.engine.limits import FreedKeys
from taintwarden.engine.limits.refusal import WORKLOAD
from taintwarden.engine.limits.workloads import MISSING_SECONDS, Workloads
from taintwarden.engine.model import Instant, Owner, Pod, Tolerations

BY_APP = PerWorkload("100%", label="app")
DB = {"app": "db"}


class Bench:
    """Pods by name. Each has a controller of its own, named as the pod without digits."""

    def __init__(self, kind: str = "StatefulSet", labels: tuple[str, ...] = ("app",)) -> None:
        self.freed = FreedKeys()
        self.workloads = Workloads(self.freed)
        self.workloads.count_by(labels, ())
        self.kind = kind
        self.pods: dict[str, Pod] = {}
        self.seconds = 0.0
        self._interner = Interner()

    def make(self, name: str, *, ready: bool = True, namespace: str = "shop", **labels: str) -> Pod:
        of = None if self.kind == "none" else self.owner(name)
        shared = self._interner.pod_class(namespace, labels or DB, Tolerations(), owner=of)
        return Pod(name, name, "n1", shared, 0.0, 1, ready)

    def owner(self, name: str) -> Owner:
        return owner(name.rstrip("0123456789"), self.kind)

    def pod(self, name: str, **more: str | bool) -> None:
        pod = self.make(name, **more)
        self.workloads.seen(pod, self.pods.get(name))
        self.pods[name] = pod

    def want(self, name: str, number: str | int = 1, **labels: str) -> None:
        self.workloads.set_wanted(("shop", self.owner(name).uid), int(number), tuple((labels or DB).items()))

    def lose(self, name: str) -> None:
        self.workloads.set_wanted(("shop", self.owner(name).uid), None)

    def relabel(self, name: str, value: str) -> None:
        self.pod(name, app=value)

    def leave(self, name: str) -> None:
        self.workloads.leave(self.pods[name])

    def stay(self, name: str) -> None:
        self.workloads.stay(name)

    def gone(self, name: str) -> None:
        self.workloads.gone(self.pods.pop(name), Instant(self.seconds, self.seconds))

    def starting(self, name: str) -> None:
        self.pod(name, ready=False)

    def forget(self, name: str) -> None:
        """Its controller never had the label."""
        self.want(name, 1, other="x")

    def admits(self, name: str, limit: PerWorkload = BY_APP) -> bool:
        return self.workloads.refuse(self.pods[name], limit, self.seconds) is None


def database(happens: str = "", kind: str = "StatefulSet") -> Bench:
    """Three StatefulSets of one replica each, with the same label."""
    bench = Bench(kind)
    for name in "abc":
        bench.pod(name)
        if kind == "StatefulSet":
            bench.want(name)
    play(bench, happens)
    return bench


MISSING = {
    "all are Ready": ("", True),
    "one is being evicted": ("leave a", False),
    "one is gone, whoever took it": ("gone a", False),
    "one was evicted and is gone": ("leave a, gone a", False),
    "its replacement is not Ready": ("leave a, gone a, starting a1", False),
    "its replacement is Ready": ("leave a, gone a, pod a1", True),
    "one is not Ready": ("starting a", False),
    "its eviction did not happen": ("leave a, stay a", True),
    "its eviction did not happen, and it is not Ready": ("leave a, starting a, stay a", False),
    "its own is in progress": ("leave b", True),
    "one that never came is missing": ("want d", False),
    "one that is wanted no longer is not": ("want d, want d 0", True),
    "a controller that is gone wants none": ("gone a, lose a", True),
    "a template without the label wants none": ("gone a, forget a", True),
    "a pod with another value is not missing here": ("pod e, relabel e web, leave e", True),
    "a pod that lost the value is": ("relabel a web", False),
    "a pod that got it back is not": ("relabel a web, relabel a db", True),
    "a leaving pod that gets it counts": ("want e, pod e, relabel e web, leave e, relabel e db", False),
    "one without the label in its template was evicted": ("forget a, leave a, gone a", False),
    "more than wanted can be spared": ("want a, pod a1, leave a", True),
    "pods of other controllers do not replace it": ("pod e, pod f, forget e, forget f, leave a, gone a", False),
}
"""Events of the pods a, b and c before the limit checks b."""


@pytest.mark.parametrize(("happens", "admits"), MISSING.values(), ids=MISSING)
def test_one_pod_of_a_value_may_be_missing(happens, admits):
    assert database(happens).admits("b") is admits


UNKNOWN = {
    "what runs is wanted": ("", True),
    "one is being evicted": ("leave a", False),
    "one was evicted": ("leave a, gone a", False),
    "its replacement is not Ready": ("leave a, gone a, starting a1", False),
    "its replacement is Ready": ("leave a, gone a, pod a1", True),
    "one that another client took is not owed": ("gone a", True),
    "one that is Ready again replaces none": ("leave a, gone a, starting c, pod c", False),
}


@pytest.mark.parametrize("kind", ["Cluster.example.com", "StatefulSet of which nothing is known", "none"])
@pytest.mark.parametrize(("happens", "admits"), UNKNOWN.values(), ids=UNKNOWN)
def test_where_the_wanted_number_is_not_known_running_pods_and_evictions_count(happens, admits, kind):
    assert database(happens, kind).admits("b") is admits


def test_an_evicted_pod_of_an_unknown_controller_is_forgiven_after_a_while():
    bench = database("leave a, gone a", "Cluster.example.com")
    refused = bench.workloads.refuse(bench.pods["b"], BY_APP, 0.0)
    assert refused.until == MISSING_SECONDS
    bench.seconds = MISSING_SECONDS
    assert bench.admits("b")


def test_a_pod_that_is_not_ready_is_missing_already():
    assert database("gone a, starting b").admits("b")


def test_another_namespace_is_another_workload():
    bench = database()
    bench.pod("d", namespace="other")
    bench.leave("d")
    assert bench.admits("b")


def test_an_empty_value_is_none():
    bench = Bench()
    for name in "ab":
        bench.pod(name, app="")
    bench.leave("a")
    assert bench.admits("b")


@pytest.mark.parametrize("limit", [PerWorkload("100%"), PerWorkload(1), PerWorkload(label="tier")])
def test_the_label_counts_for_policies_that_name_it_only(limit):
    bench = database("leave a")
    assert bench.admits("b", limit)


def test_the_share_of_the_controller_holds_too():
    bench = Bench()
    bench.pod("a1", app="web")
    bench.pod("a2")
    bench.want("a", 2)
    play(bench, "pod b, leave a1")
    assert not bench.admits("a2", PerWorkload(1))
    assert bench.admits("b", PerWorkload(1))


def test_a_refusal_names_the_label_and_its_value():
    bench = database("leave a")
    refused = bench.workloads.refuse(bench.pods["b"], PerWorkload(2, label="app"), 0.0)
    assert (refused.limit, refused.until) == (WORKLOAD, None)
    assert refused.detail == "1 of 3 pods with label app=db is missing or being evicted, and at most 1 may be"


@pytest.mark.parametrize(
    ("missing", "happens"),
    [
        ("leave a", "gone a, pod a1"),
        ("leave a", "want a 0"),
        ("leave a", "lose a"),
        ("leave a", "stay a"),
        ("leave a", "relabel a web"),
        ("starting d", "want d 0"),
    ],
)
def test_what_may_spare_a_pod_frees_it(missing, happens):
    bench = database(missing)
    refused = bench.workloads.refuse(bench.pods["b"], BY_APP, 0.0)
    bench.freed.take()
    play(bench, happens)
    assert refused.key in bench.freed.take()


def test_pods_known_before_a_policy_named_the_label_count():
    bench = Bench(labels=())
    for name in "abc":
        bench.pod(name)
    bench.leave("a")
    bench.workloads.count_by(("app",), bench.pods.values())
    for name in "abc":
        bench.want(name)
    assert not bench.admits("b")
    bench.stay("a")
    assert bench.admits("b")


def test_a_pod_without_a_controller_that_was_leaving_when_a_policy_named_the_label_counts():
    bench = Bench("none", labels=())
    play(bench, "pod a, pod b, leave a")
    bench.workloads.count_by(("app",), bench.pods.values())
    assert not bench.admits("b")


def test_pods_count_once_when_policies_name_another_label_too():
    bench = database()
    bench.workloads.count_by(("app", "tier"), bench.pods.values())
    play(bench, "want a, want b, want c, leave a")
    assert not bench.admits("b")


def test_what_was_known_of_a_label_does_not_count_when_it_is_named_again():
    bench = database("starting a, want d")
    bench.workloads.count_by((), bench.pods.values())
    bench.gone("a")
    bench.workloads.count_by(("app",), bench.pods.values())
    assert bench.admits("b")


def test_nothing_is_kept_of_a_value_without_pods_and_controllers():
    bench = database("gone a, gone b, gone c, lose a, lose b, lose c")
    bench.freed.take()
    assert kept(bench.workloads, "db") == []


# -- against a model ---------------------------------------------------------------------------------------------------

CONTROLLERS = "abcd"
STEP = st.tuples(
    st.sampled_from(("pod", "starting", "leave", "stay", "gone", "relabel", "want", "want none", "lose", "recount")),
    st.sampled_from(CONTROLLERS),
    st.integers(0, 2),
    st.sampled_from(("db", "web", "")),
)


class Model:
    """The rule in a few lines, for controllers that are known or whose pods no one evicts."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.wanted: dict[str, tuple[int, str]] = {}
        self.leaving: dict[str, None] = {}

    def missing(self, value: str) -> int:
        pods = [pod for pod in self.bench.pods.values() if pod.shared.labels.get("app") == value]
        covered = {name for name, (_, of) in self.wanted.items() if of == value}
        wanted = sum(self.wanted[name][0] for name in covered)
        wanted += sum(pod.name[0] not in covered for pod in pods)
        return wanted - sum(pod.ready and pod.uid not in self.leaving for pod in pods)


@given(st.lists(STEP, max_size=40))
def test_any_history_agrees_with_the_model(steps):
    bench = Bench()
    model = Model(bench)
    for what, controller, number, value in steps:
        name = f"{controller}{number}"
        known = name in bench.pods
        if what in ("pod", "starting"):
            bench.pod(name, ready=what == "pod", app=bench.pods[name].shared.labels["app"] if known else value)
        elif what == "relabel" and known:
            bench.pod(name, ready=bench.pods[name].ready, app=value)
        elif what == "leave" and known and controller in model.wanted:
            bench.leave(name)
            model.leaving[name] = None
        elif what == "stay":
            bench.stay(name)
            model.leaving.pop(name, None)
        elif what == "gone" and known and (name not in model.leaving or is_owed_to_none(model, bench.pods[name])):
            bench.gone(name)
            model.leaving.pop(name, None)
        elif what in ("want", "want none"):
            labels = {"app": value} if what == "want" else {"tier": value}
            bench.want(controller, number, **labels)
            model.wanted[controller] = number, value if what == "want" else ""
        elif what == "lose":
            bench.lose(controller)
            model.wanted.pop(controller, None)
        elif what == "recount":
            wanted = dict(model.wanted)
            bench.workloads.count_by(("app", "other"), bench.pods.values())
            for one, (replicas, of) in wanted.items():
                bench.want(one, replicas, app=of)
        for pod in bench.pods.values():
            value_of = pod.shared.labels["app"]
            free = not value_of or not pod.ready or pod.uid in model.leaving or model.missing(value_of) <= 0
            assert bench.admits(pod.name) is free


def is_owed_to_none(model: Model, pod: Pod) -> bool:
    """True if the controller says how many pods with the value of this one it wants: no eviction is remembered."""
    return model.wanted.get(pod.name[0], (0, ""))[1] == pod.shared.labels["app"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=60))
def test_of_a_database_never_two_are_missing_and_all_leave_in_the_end(turns):
    """Pods are evicted when they may be, and replacements get Ready, in any order."""
    bench = database()
    last = [(name, comes) for comes in (True, False, True) for name in "abc"]
    for name, comes in [*turns, *last * 3]:
        if comes and name not in bench.pods:
            bench.pod(f"{name}1")
        elif not comes and name in bench.pods and bench.admits(name):
            bench.leave(name)
            bench.gone(name)
        assert sum(pod.ready for pod in bench.pods.values()) >= 2
    assert sorted(bench.pods) == ["a1", "b1", "c1"]

"""The judge finds what is wrong, and nothing else: on audit logs that are written by hand."""

import ast
import sys
from pathlib import Path

import pytest

from chaos import judge as package
from chaos.judge.audit import read
from chaos.judge.history import Between
from chaos.judge.judge import Restoration, Tolerance, judged
from chaos.judge.rules import Subject
from chaos.judge.verdict import Verdict
from chaos.written import OPERATOR, POLICY, Log, moment

SUBJECT = Subject(OPERATOR, "taintwarden-system/taintwarden")
TOLERANCE = Tolerance(staleness_seconds=2, in_flight=0)


class Case:
    """A leader, a policy, a node with a good value; then what a test adds."""

    def __init__(self, path: Path) -> None:
        self.log = Log(path)
        self.log.policy(0)
        self.log.value(0, "980")
        for second in range(0, 200, 2):
            self.log.lease(second, "a")

    def played(self, events: str) -> None:
        """Each as the method of the log, the second, and what it takes."""
        for event in events.split("; "):
            method, at, *words = event.split()
            named = dict(word.split("=") for word in words if "=" in word)
            read = {
                name: None if value == "None" else int(value) if value.isdigit() else value
                for name, value in named.items()
            }
            getattr(self.log, method)(float(at), *(word for word in words if "=" not in word), **read)

    def workload(self) -> None:
        """Of ten pods."""
        self.log.replicas(0, "rs", 10)
        for number in range(10):
            self.log.pod(1, f"web-{number}", owner="rs")

    def verdict(
        self, settled: float = 200, terminating: frozenset[str] = frozenset(), tolerance: Tolerance = TOLERANCE
    ) -> Verdict:
        return judged(self.log.path, SUBJECT, [], terminating, moment(0), moment(200), moment(settled), tolerance)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path / "audit.log")


def test_an_eviction_after_the_grace_is_right(case: Case) -> None:
    case.played("pod 1 web; value 10 940; evict 13.5 web")
    verdict = case.verdict()
    assert verdict.breaches() == {}
    assert verdict.evictions == 1
    assert verdict.latest_seconds == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(
    ("events", "found"),
    [
        pytest.param("value 10 940; evict 12.9 web", {"early": 1}, id="before the grace"),
        pytest.param("pod 2 web grace=60; value 10 940; evict 40 web", {"early": 1}, id="of the toleration"),
        pytest.param("value 10 940; value 12 930; evict 13.5 web", {}, id="a further fall starts no grace"),
        pytest.param("value 10 940; value 11 980; value 12 940; evict 13.5 web", {"early": 1}, id="a recovery does"),
        pytest.param("evict 20 web", {"wrong": 1}, id="a pod that may stay"),
        pytest.param("value 10 940; value 20 980; evict 21.5 web", {}, id="within the stated staleness"),
        pytest.param("value 10 940; value 20 980; evict 22.5 web", {"wrong": 1}, id="after the stated staleness"),
        pytest.param("value 10 940 code=None; value 30 940; evict 13.5 web", {}, id="a write never answered counts"),
        pytest.param("value 10 940; policy 12 verb=delete; evict 20 web", {"wrong": 1}, id="without its policy"),
        pytest.param("value 10 940; policy 12 verb=delete; policy 19; evict 20 web", {}, id="policy created again"),
        pytest.param("value 10 940; evict 14 web; evict 15 web", {"doubled": 1}, id="evicted twice"),
        pytest.param("evict 14 web code=429", {}, id="a refused eviction is none"),
        pytest.param("evict 14 web code=None; remove 15 web", {"wrong": 1}, id="unanswered, and the pod has left"),
        pytest.param("evict 14 web code=None", {}, id="unanswered, and the pod is there"),
        pytest.param("lease 200 b; value 10 940; evict 14 web by=b", {"not_leader": 1}, id="by the other replica"),
        pytest.param("lease 200 a-again by=a; value 10 940; evict 14 web by=a", {}, id="killed and started again"),
        pytest.param(f"remove 14 web user={OPERATOR}", {"over": 1}, id="a deletion by the operator"),
    ],
)
def test_one_pod(case: Case, events: str, found: dict[str, int]) -> None:
    case.played(f"pod 1 web; {events}")
    assert case.verdict().breaches() == found


@pytest.mark.parametrize(
    ("events", "found"),
    [
        pytest.param("evict 14 web-0; evict 15 web-1; evict 16 web-2", {"over": 1}, id="more than may be missing"),
        pytest.param("remove 13.5 web-0; remove 13.5 web-1; evict 15 web-2", {}, id="others, within the staleness"),
        pytest.param("remove 12.5 web-0; remove 12.5 web-1; evict 15 web-2", {"over": 1}, id="others, after it"),
        pytest.param(
            "evict 14 web-0; evict 14.1 web-1; evict 14.2 web-2; remove 14.05 web-0", {"over": 1}, id="its own, at once"
        ),
        pytest.param(
            "evict 14 web-0; evict 15 web-1; pod 16 web-10 owner=rs; evict 17 web-2", {}, id="a replacement is ready"
        ),
    ],
)
def test_the_share_of_a_workload(case: Case, events: str, found: dict[str, int]) -> None:
    case.workload()
    case.played(f"value 10 940; {events}")
    assert case.verdict().breaches() == found


@pytest.mark.parametrize(("by", "in_flight", "found"), [("b", 40, {}), ("b", 0, {"over": 1}), ("a", 40, {"over": 1})])
def test_only_a_call_that_was_held_until_another_replica_led_may_exceed_a_share(
    case: Case, by: str, in_flight: int, found: dict[str, int]
) -> None:
    case.workload()
    case.played(f"lease 200 b; value 10 940; evict 14 web-0 by=a; evict 15 web-1 by=a; evict 16 web-2 by={by}")
    breaches = case.verdict(tolerance=Tolerance(staleness_seconds=2, in_flight=in_flight)).breaches()
    assert {name: count for name, count in breaches.items() if name != "not_leader"} == found


@pytest.mark.parametrize(("head", "over"), [(0, True), (9, False)], ids=["all at once", "a burst and the rate"])
def test_the_rate_of_evictions(case: Case, head: int, over: bool) -> None:
    for number in range(30):
        case.log.pod(1, f"web-{number}")
    case.log.value(10, "940")
    for number in range(30):
        case.log.evict(14 + (max(0, number - head) / 10 if head else number / 100), f"web-{number}")
    breaches = case.verdict().breaches()
    assert breaches.get("over", 0) >= 10 if over else breaches == {}


GUARDED = {
    **POLICY,
    "spec": {
        **POLICY["spec"],
        "limits": {"evictionsPerSecond": 10, "burst": 10, "guard": {"maxPods": 5, "windowSeconds": 60}},
    },
}


def test_more_evictions_than_the_guard_allows_are_over_it(case: Case) -> None:
    case.log.policy(0.5, GUARDED, verb="update")
    case.log.value(10, "940")
    for number in range(7):
        case.log.pod(1, f"web-{number}")
        case.log.evict(14 + number * 5, f"web-{number}")
    assert case.verdict().breaches() == {"over": 2}


def test_a_policy_that_is_created_again_has_a_new_guard(case: Case) -> None:
    case.log.policy(0.5, GUARDED, verb="update")
    case.log.value(10, "940")
    for number in range(10):
        case.log.pod(1, f"web-{number}")
    for number in range(5):
        case.log.evict(14, f"web-{number}")
    case.log.policy(15, GUARDED, verb="delete")
    case.log.policy(16, GUARDED)
    for number in range(5, 10):
        case.log.evict(20, f"web-{number}")
    assert case.verdict().breaches() == {}


def test_a_namespace_whose_replica_sets_are_deleted_in_one_is_read(case: Case) -> None:
    case.log.write(5, "deletecollection", "replicasets", "", {"status": "Success"}, namespace="team")
    assert case.verdict().breaches() == {}


def test_after_the_lease_has_run_out_no_replica_leads(tmp_path: Path) -> None:
    case = Case(tmp_path / "audit.log")
    case.log.pod(1, "web")
    case.log.value(10, "940")
    case.log.evict(214.5, "web")
    assert case.verdict().evictions == 0  # after the end
    verdict = judged(case.log.path, SUBJECT, [], frozenset(), moment(0), moment(300), moment(300), TOLERANCE)
    assert verdict.breaches() == {"not_leader": 1}
    assert verdict.leaderless_seconds == pytest.approx(102, abs=0.1)


def test_a_call_after_every_pod_has_left_is_restless(case: Case) -> None:
    case.log.pod(1, "web")
    case.log.value(10, "940")
    case.log.evict(100, "web", code=404)
    assert case.verdict(settled=90).breaches() == {"restless": 1}


def test_half_a_line_of_a_killed_server_is_no_error(case: Case) -> None:
    with case.log.path.open("a") as file:
        file.write('{"auditID": "half')
    assert case.verdict().breaches() == {}


def test_the_judge_shares_no_code_with_the_product_or_with_the_world() -> None:
    folder = Path(package.__file__).parent
    allowed = {*sys.stdlib_module_names, "kubernetes", "chaos.judge"}
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                root = "chaos.judge" if name.startswith("chaos.judge") else name.split(".")[0]
                assert root in allowed, f"{path.name} imports {name}"


# -- a store that goes back to an older revision


def restored(case: Case, revision: int, at: float, value: str, *pods: str) -> Verdict:
    """The verdict when the store has gone back: the node has this value again, and these pods are there."""
    taints = [{"key": "sla", "value": value, "effect": "NoExecute"}]
    node = {"metadata": {"name": "n", "resourceVersion": str(revision)}, "spec": {"taints": taints}}
    known = {record.name: record.answer for record in read(case.log.path) if record.resource == "pods"}
    back = Restoration(revision, Between(moment(at), moment(at + 1)), [node], [known[pod] for pod in pods])
    return judged(case.log.path, SUBJECT, [back], frozenset(), moment(0), moment(200), moment(200), TOLERANCE)


def revision_of(case: Case) -> int:
    return max(record.revision for record in read(case.log.path))


def test_a_pod_that_a_restored_store_brings_back_may_be_evicted_again(case: Case) -> None:
    case.log.pod(1, "web")
    case.log.value(10, "940")
    revision = revision_of(case)
    case.log.evict(14, "web")
    case.log.evict(24, "web")
    assert restored(case, revision, 20, "940", "web").breaches() == {}


@pytest.mark.parametrize(
    ("events", "found"),
    [
        pytest.param("value 10 940; evict 24 web", {"wrong": 1}, id="it does not count any more"),
        pytest.param("value 10 940; evict 21.5 web", {}, id="just afterwards the truth before counts as well"),
        # No client that is disconnected meanwhile can see that it was taken back.
        pytest.param("value 18 940; value 22 940; evict 24.5 web", {}, id="bad again at once, it counts from then"),
        pytest.param("value 18 940; value 30 940; evict 31 web", {"early": 1}, id="bad again later, it counts anew"),
    ],
)
def test_a_value_that_a_restored_store_takes_back(case: Case, events: str, found: dict[str, int]) -> None:
    case.log.pod(1, "web")
    revision = revision_of(case)
    case.played(events)
    assert restored(case, revision, 20, "980", "web").breaches() == found


def test_before_the_restoration_the_pods_of_then_are_counted(case: Case) -> None:
    """They need not be in the store that comes back, nor after it."""
    case.log.replicas(0, "rs", 10)
    for number in range(10):
        case.log.pod(1, f"web-{number}", owner="rs")
    case.log.value(5, "940")
    case.log.evict(9, "web-0")
    for number in (1, 2):
        case.log.remove(12, f"web-{number}")
    revision = revision_of(case)
    assert restored(case, revision, 20, "940", *(f"web-{number}" for number in range(3, 10))).breaches() == {}

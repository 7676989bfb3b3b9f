"""The judge finds what is wrong, and nothing else: on audit logs that are written by hand."""

import ast
import sys
from pathlib import Path

import pytest

from chaos import judge as package
from chaos.judge.audit import read
from chaos.judge.facts import Between, Restoration, Subject
from chaos.judge.judge import Tolerance, judged
from chaos.judge.verdict import Verdict
from chaos.written import OPERATOR, POLICY, Log, moment

SUBJECT = Subject(OPERATOR, "taintwarden-system/taintwarden")


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

    def pods(self, number: int, owner: str = "") -> list[str]:
        """On the node, perhaps of one workload."""
        names = [f"web-{index}" for index in range(number)]
        if owner:
            self.log.replicas(0, owner, number)
        for name in names:
            self.log.pod(1, name, owner=owner)
        return names

    def verdict(self, *backs: Restoration, unwell: float = 300, end: float = 200) -> Verdict:
        """Nothing has to be in time as long as a fault lasts that begins with the log."""
        tolerance = Tolerance(staleness_seconds=2, in_flight=0, unwell=[Between(moment(0), moment(unwell))])
        return judged(read(self.log.path), SUBJECT, backs, moment(0), moment(end), tolerance)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path / "audit.log")


@pytest.mark.parametrize("unwell", [0, 300])
def test_an_eviction_after_the_grace_is_right(case: Case, unwell: float) -> None:
    case.played("pod 1 web; value 10 940; evict 13.5 web")
    verdict = case.verdict(unwell=unwell)
    assert verdict.breaches() == {}
    assert verdict.evictions == 1
    assert verdict.latest_seconds == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(("unwell", "found"), [(0, {"lost": 1}), (100, {"lost": 1}), (300, {})])
def test_a_pod_that_is_never_evicted_is_found_unless_a_fault_lasts(
    case: Case, unwell: float, found: dict[str, int]
) -> None:
    case.played("pod 1 web; value 10 940")
    assert case.verdict(unwell=unwell).breaches() == found


@pytest.mark.parametrize(
    ("events", "found"),
    [
        pytest.param("value 10 940; evict 12.9 web", {"early": 1}, id="before the grace"),
        pytest.param("pod 2 slow grace=60; value 10 940; evict 40 slow", {"early": 1}, id="of the toleration"),
        pytest.param(
            "pod 2 hasty grace=0; value 10 940; evict 10.005 hasty", {}, id="before the writer has its answer"
        ),
        pytest.param("value 10 940; value 12 930; evict 13.5 web", {}, id="a further fall starts no grace"),
        pytest.param("value 10 940; value 11 980; value 12 940; evict 13.5 web", {"early": 1}, id="a recovery does"),
        pytest.param("evict 20 web", {"wrong": 1}, id="a pod that may stay"),
        pytest.param("evict 20 web code=429", {"wrong": 1}, id="a call for it that is refused"),
        pytest.param("evict 20 web code=None", {"wrong": 1}, id="a call for it that is not answered"),
        pytest.param("value 10 940; value 20 980; evict 21.5 web", {}, id="within the stated staleness"),
        pytest.param("value 10 940; value 20 980; evict 22.5 web", {"wrong": 1}, id="after the stated staleness"),
        pytest.param("value 10 940 code=None; value 12 940; evict 13.5 web", {}, id="a write never answered counts"),
        pytest.param("value 10 940; policy 12 verb=delete; evict 20 web", {"wrong": 1}, id="without its policy"),
        pytest.param("value 10 940; policy 12 verb=delete; policy 19; evict 20 web", {}, id="policy created again"),
        pytest.param("value 10 940; evict 14 web; evict 15 web", {"doubled": 1}, id="evicted twice"),
        pytest.param("value 10 940; evict 14 web; evict 99 web code=404", {"doubled": 1}, id="after it has left"),
        pytest.param("lease 200 b; value 10 940; evict 14 web by=b", {"not_leader": 1}, id="by the other replica"),
        pytest.param("lease 200 a-again by=a; value 10 940; evict 14 web by=a", {}, id="killed and started again"),
        pytest.param(f"value 10 940; remove 14 web user={OPERATOR} by=a", {"over": 1}, id="a deletion by the operator"),
    ],
)
def test_verdict_on_evictions_of_one_pod(case: Case, events: str, found: dict[str, int]) -> None:
    case.played(f"pod 1 web; {events}")
    assert case.verdict().breaches() == found


def test_a_dry_run_writes_nothing(case: Case) -> None:
    before = read(case.log.path)
    case.log.write(1, "create", "taintevictionpolicies", "other", POLICY, query="dryRun=All")
    assert read(case.log.path) == before


@pytest.mark.parametrize(("at", "found"), [(22.9, {"early": 1}), (23.1, {})])
def test_a_pod_counts_from_when_the_scheduler_binds_it(case: Case, at: float, found: dict[str, int]) -> None:
    case.played(f"value 10 940; pod 12 web node=; bind 20 web n; evict {at} web")
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
        # The sender of a call that was delayed until another replica led does not know that one's calls.
        pytest.param(
            "lease 200 b; evict 14 web-0; evict 15 web-1; evict 16 web-2 by=b",
            {"not_leader": 1},
            id="a call that was held",
        ),
    ],
)
def test_the_share_of_a_workload(case: Case, events: str, found: dict[str, int]) -> None:
    case.pods(10, "rs")
    case.played(f"value 10 940; {events}")
    assert case.verdict().breaches() == found


@pytest.mark.parametrize(
    ("times", "over"),
    [
        pytest.param([14 + number / 100 for number in range(30)], True, id="all at once"),
        pytest.param([14.0] * 11, True, id="one more than a burst"),
        pytest.param([14 + max(0, number - 9) / 10 for number in range(30)], False, id="a burst and the rate"),
    ],
)
def test_the_rate_of_evictions(case: Case, times: list[float], over: bool) -> None:
    names = case.pods(30)
    case.log.value(10, "940")
    for at, name in zip(times, names, strict=False):
        case.log.evict(at, name)
    assert case.verdict().breaches() == ({"over": 1} if over else {})


@pytest.mark.parametrize(
    ("events", "found"),
    [
        pytest.param("evict 14.1 web-1 code=403; evict 15.5 web-2", {}, id="one that was on its way"),
        pytest.param("evict 14.7 web-1", {"over": 1}, id="one that did not wait"),
    ],
)
def test_a_call_after_one_that_was_denied(case: Case, events: str, found: dict[str, int]) -> None:
    case.pods(3)
    case.played(f"value 10 940; evict 14 web-0 code=403; {events}")
    assert case.verdict().breaches() == found


LIMITS = {"evictionsPerSecond": 10, "burst": 10, "guard": {"maxPods": 5, "windowSeconds": 60}}
GUARDED = {**POLICY, "spec": {**POLICY["spec"], "limits": LIMITS}}


@pytest.mark.parametrize(("number", "found"), [(7, {}), (8, {"over": 1})])
def test_more_evictions_than_the_guard_allows_of_one_namespace_are_over_it(
    case: Case, number: int, found: dict[str, int]
) -> None:
    case.log.policy(0.5, GUARDED, verb="update")
    case.log.value(10, "940")
    for index, name in enumerate(case.pods(number)):
        case.log.evict(14 + index * 5, name)
    assert case.verdict().breaches() == found


@pytest.mark.parametrize(("number", "found"), [(5, {}), (6, {"over": 1})])
def test_while_the_guard_has_to_hold_none_is_evicted(case: Case, number: int, found: dict[str, int]) -> None:
    case.log.policy(0.5, GUARDED, verb="update")
    names = case.pods(number)
    case.log.value(10, "940")
    case.log.evict(15, names[0])
    assert case.verdict(unwell=0, end=16).breaches() == found


def test_a_pod_that_another_policy_may_evict_is_not_counted_by_a_guard(case: Case) -> None:
    spec = {**GUARDED["spec"], "taints": [{"key": "strict"}]}
    case.log.policy(0, {"metadata": {"name": "guarded", "uid": "uid-guarded"}, "spec": spec})
    names = case.pods(6)
    taints = [{"key": key, "value": "940", "effect": "NoExecute"} for key in ("strict", "sla")]
    case.log.write(10, "patch", "nodes", "n", {"spec": {"taints": taints}})
    for number, name in enumerate(names):
        case.log.evict(15 + number, name)
    assert case.verdict(unwell=0, end=22).breaches() == {}


def test_a_policy_that_is_created_again_has_a_new_guard(case: Case) -> None:
    case.log.policy(0.5, GUARDED, verb="update")
    case.log.value(10, "940")
    names = case.pods(10)
    for name in names[:5]:
        case.log.evict(14, name)
    case.log.policy(15, GUARDED, verb="delete")
    case.log.policy(16, {**GUARDED, "metadata": {"name": "values", "uid": "uid-again"}})
    for name in names[5:]:
        case.log.evict(20, name)
    assert case.verdict().breaches() == {}


@pytest.mark.parametrize(("at", "found"), [(19.9, {"early": 1}), (20.005, {})])
def test_what_follows_from_a_deletion_may_arrive_before_its_answer(
    case: Case, at: float, found: dict[str, int]
) -> None:
    """The operator may see it in its stream before the API server ends the request."""
    longer = {**POLICY, "spec": {**POLICY["spec"], "timing": {"violationGraceSeconds": 600}}}
    case.log.policy(
        0.2, {"metadata": {"name": "any", "uid": "u"}, "spec": {**POLICY["spec"], "taints": [{"key": "*"}]}}
    )
    case.log.policy(0.5, longer, verb="update")
    [name] = case.pods(1)
    case.log.value(10, "940")
    case.log.policy(20, longer, verb="delete")
    case.log.evict(at, name)
    assert case.verdict().breaches() == found


def test_a_namespace_whose_replica_sets_are_deleted_in_one_is_read(case: Case) -> None:
    case.log.write(5, "deletecollection", "replicasets", "", {"status": "Success"}, namespace="team")
    assert case.verdict().breaches() == {}


def test_after_the_lease_has_run_out_no_replica_leads(case: Case) -> None:
    case.played("pod 1 web; value 10 940; evict 214.5 web")
    assert case.verdict().evictions == 0  # after the end
    verdict = case.verdict(end=300)
    assert verdict.breaches() == {"not_leader": 1}
    assert verdict.leaderless_seconds == pytest.approx(102, abs=0.1)


def test_half_a_line_of_a_killed_server_is_no_error(case: Case) -> None:
    with case.log.path.open("a") as file:
        file.write('{"auditID": "half')
    assert case.verdict().breaches() == {}


def test_the_judge_shares_no_code_with_the_product_or_with_the_world() -> None:
    world = Path(package.__file__).parents[2] / "simulated"
    judges = [*Path(package.__file__).parent.glob("*.py"), world / "calendar.py"]
    judges += [world / "world" / name for name in ("law.py", "when.py")]
    allowed = {*sys.stdlib_module_names, "kubernetes", "chaos.judge"}
    allowed |= {"simulated.calendar", "simulated.world", "simulated.world.law", "simulated.world.when"}
    for path in judges:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                root = "chaos.judge" if name.startswith("chaos.judge") else name
                root = root if root.startswith(("chaos", "simulated")) else root.split(".")[0]
                assert root in allowed, f"{path.name} imports {name}"


# -- a store that goes back to an older revision


def restored(case: Case, at: float, value: str, *pods: str) -> Verdict:
    """The verdict when the store has gone back: the node has this value again, and these pods are there."""
    taints = [{"key": "sla", "value": value, "effect": "NoExecute"}]
    node = {"metadata": {"name": "n"}, "spec": {"taints": taints}}
    known = {record.name: record.answer for record in read(case.log.path) if record.resource == "pods/status"}
    return case.verdict(Restoration(Between(moment(at), moment(at + 1)), [node], [known[pod] for pod in pods]))


def test_a_pod_that_a_restored_store_brings_back_may_be_evicted_again(case: Case) -> None:
    case.played("pod 1 web; value 10 940; evict 14 web; evict 24 web")
    assert restored(case, 20, "940", "web").breaches() == {}


def test_what_a_restored_store_brings_back_is_missing_no_more(case: Case) -> None:
    names = case.pods(10, "rs")
    case.played("value 5 940; evict 9 web-0; evict 9 web-1; evict 24 web-0; evict 24 web-1")
    assert restored(case, 20, "940", *names).breaches() == {}


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
    case.played(f"pod 1 web; {events}")
    assert restored(case, 20, "980", "web").breaches() == found


def test_before_the_restoration_the_pods_of_then_are_counted(case: Case) -> None:
    """They need not be in the store that comes back, nor after it."""
    names = case.pods(10, "rs")
    case.played("value 5 940; evict 9 web-0; remove 12 web-1; remove 12 web-2")
    assert restored(case, 20, "940", *names[3:]).breaches() == {}

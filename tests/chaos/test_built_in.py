"""The judge by the rules of the built-in controller, on audit logs that are written by hand."""

from pathlib import Path

import pytest

from chaos.__main__ import main
from chaos.controllers import BUILT_IN as CONTROLLER
from chaos.controllers import OPERATOR
from chaos.faults import FAULTS
from chaos.judge import Verdict
from chaos.judge.judge import Tolerance, judged
from chaos.judge.rules import native_demand
from chaos.playing import Run
from chaos.report import load, save, table
from chaos.world import KINDS, MAINTENANCE, SLA, STRICT, Scale, in_spec
from chaos.written import BUILT_IN, Log, moment

ABOVE = {"key": "sla", "operator": "Gt", "value": "950", "effect": "NoExecute"}
LEASE = "kube-system/kube-controller-manager"


def brief(seconds: int) -> dict[str, object]:
    return {"key": "sla", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}


class Case:
    """A leader, a policy as a measure, a node with a good value; then what a test adds."""

    def __init__(self, path: Path) -> None:
        self.log = Log(path)
        self.log.policy(0)
        self.log.value(0, "980")
        for second in range(0, 200, 2):
            self.log.lease(second, "a", name=LEASE)

    def pods(self, number: int, seconds: int = 3) -> None:
        self.log.replicas(0, "rs", number)
        for index in range(number):
            self.log.pod(1, f"web-{index}", owner="rs", native=[ABOVE, brief(seconds)])

    def delete(self, at: float, index: int = 0, by: str = "a", code: int | None = 200) -> None:
        self.log.remove(at, f"web-{index}", user=BUILT_IN, by=by, code=code)

    def verdict(self, settled: float = 200) -> Verdict:
        subject, tolerance = CONTROLLER.subject, Tolerance(staleness_seconds=2, in_flight=0)
        return judged(self.log.path, subject, [], frozenset(), moment(0), moment(200), moment(settled), tolerance)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path / "audit.log")


def test_a_deletion_after_the_seconds_of_the_toleration_is_right(case: Case) -> None:
    case.pods(1, seconds=6)
    case.log.value(10, "940")
    case.delete(16.5)
    verdict = case.verdict()
    assert verdict.breaches() == {}
    assert verdict.evictions == 1
    assert verdict.latest_seconds == pytest.approx(0.5, abs=0.02)


def test_a_deletion_within_the_seconds_is_early_whatever_the_policy_says(case: Case) -> None:
    case.pods(1, seconds=6)
    case.log.value(10, "940")
    case.delete(15.9)
    assert case.verdict().breaches() == {"early": 1}


def test_without_a_toleration_that_fits_a_pod_has_to_leave_at_once(case: Case) -> None:
    case.log.pod(1, "web-0", native=[ABOVE])
    case.log.value(10, "940")
    case.delete(10.1)
    assert case.verdict().breaches() == {}


def test_a_deletion_by_another_client_is_not_judged(case: Case) -> None:
    case.pods(1)
    case.log.remove(20, "web-0")
    assert case.verdict().evictions == 0


def test_a_deletion_by_a_replica_without_the_lease_of_the_controller_manager_is_not_the_leaders(case: Case) -> None:
    case.log.lease(1, "b")
    case.pods(1)
    case.log.value(10, "940")
    case.delete(14, by="b")
    assert case.verdict().breaches() == {"not_leader": 1}


def test_what_is_missing_of_a_workload_and_over_its_budget_is_counted(case: Case) -> None:
    case.pods(10)
    case.log.budget(0, "rs", 8)
    case.log.value(10, "940")
    for index in range(4):
        case.delete(14 + index, index)
    verdict = case.verdict()
    assert verdict.breaches() == {"over": 2}
    assert (verdict.over_budget, verdict.most_missing) == (2, 4)


def test_without_a_budget_no_deletion_is_over_one(case: Case) -> None:
    case.pods(10)
    case.log.budget(0, "another", 8)
    case.log.value(10, "940")
    for index in range(4):
        case.delete(14 + index, index)
    assert case.verdict().over_budget == 0


# -- the same world, in spec.tolerations


@pytest.mark.parametrize(
    ("kind", "key", "value", "seconds"),
    [
        ("patient", SLA, "940", 6),
        ("quick", SLA, "940", 1),
        ("modest", SLA, "940", None),
        ("modest", SLA, "890", 3),
        ("patient", MAINTENANCE, "now", 3),
        ("patient", STRICT, "940", None),
    ],
)
def test_native_tolerations_demand_what_the_annotation_does(
    kind: str, key: str, value: str, seconds: int | None
) -> None:
    native = [{"key": each, "operator": "Exists", "effect": "NoExecute"} for each in (SLA, STRICT)]
    pod = {"metadata": {}, "spec": {"tolerations": in_spec(dict(KINDS)[kind], native)}}
    found = native_demand(pod, {"key": key, "value": value, "effect": "NoExecute"})
    assert found.seconds == (float("inf") if seconds is None else seconds)


# -- what it cannot be given, and its rows


def test_a_fault_of_policies_is_refused_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["chaos", "--controller", "built-in", "--fault", "policies-deleted"])
    assert main() == 2
    assert FAULTS["policies-deleted"].not_built_in in capsys.readouterr().err


def test_nothing_is_required_of_the_built_in_controller() -> None:
    verdict = Verdict(lost=1)
    assert Run("cut", 1, Scale(), verdict, 60, controller=CONTROLLER.name).breaches == {}
    assert Run("cut", 1, Scale(), verdict, 60, controller=OPERATOR.name).breaches == {"lost": 1}


def test_its_rows_have_two_columns_more(tmp_path: Path) -> None:
    path = tmp_path / "runs"
    save(path, Run("cut", 1, Scale(), Verdict(over_budget=3, most_missing=7), 60, controller=CONTROLLER.name))
    head, _, row = ([cell.strip() for cell in line.split("|")] for line in table(load(path)).splitlines())
    assert head[-3:-1] == ["over a budget", "most missing"]
    assert (row[1], row[-3:-1]) == ("`cut`, built-in", ["3", "7"])

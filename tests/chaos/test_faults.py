"""Properties of every fault, without a cluster."""

import json
from pathlib import Path

from chaos.faults import FAULTS, SHORT
from chaos.judge import Verdict
from chaos.judge.audit import audit_policy
from chaos.judge.verdict import COUNTS
from chaos.playing import Run
from chaos.report import load, save, table
from chaos.world import GOOD, Scale


def test_a_fault_says_what_it_does_and_excuses_only_what_is_counted() -> None:
    for fault in FAULTS.values():
        assert fault.__doc__
        assert fault.__doc__.endswith(".")
        assert set(fault.excused) <= set(COUNTS)


def test_the_short_selection_is_one_of_faults() -> None:
    assert set(SHORT) <= FAULTS.keys()


def run(seed: int, **counts: float) -> Run:
    return Run("cut", seed, Scale(), Verdict(**counts), 60)  # type: ignore[arg-type]


def test_counts_are_added_and_times_are_the_longest() -> None:
    lines = table([run(1, evictions=10, lost=1, latest_seconds=0.5), run(2, evictions=5, latest_seconds=0.25)])
    row = [cell.strip() for cell in lines.splitlines()[-1].split("|")]
    assert row[1:5] == ["`cut`", "2", "15", "1"]
    assert "0.5" in row


def test_runs_are_saved_and_loaded(tmp_path: Path) -> None:
    path = tmp_path / "runs"
    save(path, run(1, evictions=3))
    save(path, run(2))
    assert [(one.seed, one.verdict.evictions) for one in load(path)] == [(1, 3), (2, 0)]


def test_an_excused_count_is_no_breach() -> None:
    assert Run("no-lease", 1, Scale(), Verdict(not_leader=3), 60).breaches == {}
    assert Run("cut", 1, Scale(), Verdict(not_leader=3), 60).breaches == {"not_leader": 3}


def test_the_audit_policy_keeps_requests_that_are_never_answered_only_where_they_matter() -> None:
    rules = audit_policy()["rules"]
    kept = [rule["resources"][0]["resources"] for rule in rules if "resources" in rule and "omitStages" not in rule]
    assert kept == [["nodes", "pods/eviction"]]
    assert json.dumps(rules)


def test_the_good_value_is_good_for_every_pod() -> None:
    assert int(GOOD) > 950

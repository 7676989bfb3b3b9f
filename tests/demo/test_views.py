"""Views of the demo: short lines, a picture that fits 100 columns, and a table at the end."""

import io

import pytest
from rich.console import Console

from localcluster import LocalCluster
from taintwarden_demo import phrases
from taintwarden_demo.judge import Check
from taintwarden_demo.observer import Observer
from taintwarden_demo.scenario import Scenario
from taintwarden_demo.screen import LEGEND, Screen, style_of
from taintwarden_demo.summary import report, summary
from taintwarden_demo.timeline import sentence
from taintwarden_demo.views import Line, PodView

BLOCKED = (
    "Not evicted from a1 (a PodDisruptionBudget allows no disruption now): The disruption budget checkout needs 5 "
    "healthy pods and has 4 currently. It is retried."
)
HELD = "Has to leave a1, but PodDisruptionBudget shop/checkout allows no disruption now. It waits until that changes."


@pytest.mark.parametrize(
    ("reason", "note", "text"),
    [
        ("EvictionBlocked", BLOCKED, "blocked: budget checkout needs 5 healthy pods and has 4"),
        ("EvictionBlocked", HELD, "blocked: budget checkout allows no disruption now"),
        ("EvictionBlocked", "A: no. It is retried.", "blocked: no"),
        ("EvictionCancelled", "Stays on b1: ...", "may stay: the eviction is cancelled"),
        ("EvictionScheduled", "Another wording: because", "must leave: because"),
        ("EvictionFailed", "why", "EvictionFailed: why"),
        ("Evicted", "Evicted from a1: ...", ""),
    ],
)
def test_events_in_fewer_words(reason: str, note: str, text: str) -> None:
    assert phrases.short(reason, note) == text


def test_a_line_has_time_node_and_pods() -> None:
    line = Line(7.12, "left", "a1", "evicted", "payments", 2)
    assert sentence(line).plain == "  +7.1 s  a1      2 payments evicted"


@pytest.mark.parametrize(
    ("fields", "style"),
    [
        ({}, "green"),
        ({"replaces": True}, "cyan"),
        ({"due_at": 1.0}, "yellow"),
        ({"due_at": 1.0, "blocked": True}, "magenta"),
        ({"due_at": 1.0, "blocked": True, "leaving": True}, "bright_black"),
    ],
)
def test_a_verdict_has_a_colour(fields: dict[str, object], style: str) -> None:
    assert style_of(PodView("u", "n", "w", **fields)) == style


@pytest.mark.parametrize(("columns", "rows"), [(100, 40), (200, 60), (80, 24)])
def test_the_picture_fits(scenario: Scenario, columns: int, rows: int) -> None:
    drawn = io.StringIO()
    console = Console(file=drawn, force_terminal=True, width=columns, height=rows, color_system=None)
    observer = _observer(scenario)
    with Screen(console, scenario) as screen:
        for number in range(30):
            screen.say(f"line {number}")
        drawn.truncate(0)
        screen.refresh(observer)
        picture = drawn.getvalue().splitlines()
    assert len(picture) <= rows
    assert "line 29" in picture[-1]
    assert "payments●●  checkout●●●  catalog●●  search●●  reports●  agent●" in "".join(picture) or columns < 100


@pytest.mark.parametrize("column", [1, 2])
def test_states_differ_without_colours(column: int) -> None:
    assert len({row[column] for row in LEGEND}) == len(LEGEND)


def test_a_state_has_its_shape_where_no_colours_are_shown(scenario: Scenario) -> None:
    drawn = io.StringIO()
    console = Console(file=drawn, force_terminal=True, width=100, height=40, no_color=True)
    observer = _observer(scenario)
    observer.pods["payments-0"].due_at = 1.0
    observer.pods["payments-1"].leaving = True
    with Screen(console, scenario) as screen:
        screen.refresh(observer)
    assert "payments○◐" in drawn.getvalue()


def _observer(scenario: Scenario) -> Observer:
    cluster = LocalCluster()
    cluster.store.register("taintevictionpolicies", namespaced=False)
    observer = Observer(cluster.store, scenario)
    for workload in scenario.workloads:
        for number, node in enumerate(workload.nodes):
            uid = f"{workload.name}-{number}"
            observer.pods[uid] = PodView(uid, uid, workload.name, node, ready=True)
    return observer


def test_the_summary_says_what_was_wrong() -> None:
    told = report([Check("one", "one", ok=True), Check("two leave", "no pod left", ok=False)], 12.34)
    text = summary(told)
    assert not told.ok
    assert "WRONG │ two leave" in text
    assert "1 of 2 not as expected." in text
    assert max(map(len, text.splitlines())) <= 100


def test_the_summary_fits_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = summary(report([Check("a pod leaves " * 9, "it happened " * 9, ok=True)], 1.0))
    assert max(map(len, text.splitlines())) == 80
    assert text.count("happened") == 9


def test_the_summary_of_a_success() -> None:
    told = report([Check("one", "one", ok=True)], 12.34)
    assert told.ok
    assert "All 1 as expected, in 12 s." in summary(told)

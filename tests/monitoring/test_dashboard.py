"""The dashboard names metrics and labels that exist, and needs nothing but a Prometheus."""

import re

from monitoring.panels import document, filled, panels
from monitoring.rules import TARGET_LABELS, labels, metrics
from monitoring.test_names import EXISTING

PANELS = panels()


def plain(name: str) -> str:
    return re.sub("_bucket$", "", name)


def test_a_metric_in_a_panel_exists():
    for panel in PANELS:
        known = EXISTING.keys() | {"taintwarden_build_info"}
        for expression, _ in panel.queries:
            named = {plain(name) for name in metrics(expression)}
            assert named <= known
            assert named or "ALERTS" in expression or "process_" in expression


def test_a_label_in_a_panel_exists():
    for panel in PANELS:
        for expression, _ in panel.queries:
            for names, label in labels(expression):
                assert label in {one for name in names for one in EXISTING.get(plain(name), ())} | TARGET_LABELS | {
                    "le"
                }


def test_a_legend_names_labels_that_are_left():
    for panel in PANELS:
        for expression, legend in panel.queries:
            grouped = re.search(r"\bby \(([^)]*)\) ", expression)
            left = {one.strip() for one in grouped[1].split(",")} if grouped else TARGET_LABELS
            assert set(re.findall(r"\{\{(\w+)\}\}", legend)) <= left


def test_a_panel_that_counts_policies_is_filtered_by_them():
    for panel in PANELS:
        for expression, _ in panel.queries:
            of_policies = [name for name in metrics(expression) if "policy" in EXISTING.get(name, ())]
            assert ("$policy" in expression) is bool(of_policies)


def test_every_panel_says_what_it_means():
    shown = [one for one in document()["panels"] if one["type"] != "row"]
    assert all(one["description"].endswith(".") for one in shown)
    assert len({one["title"] for one in shown}) == len(shown)


def test_no_two_panels_have_the_same_number():
    numbers = [one["id"] for one in document()["panels"]]
    assert len(set(numbers)) == len(numbers)
    assert 0 not in numbers


def test_the_data_source_is_chosen_in_grafana():
    sources = {one["datasource"]["uid"] for one in document()["panels"] if one["type"] != "row"}
    assert sources == {"${datasource}"}
    assert [one["name"] for one in document()["templating"]["list"]] == ["datasource", "policy"]


def test_values_take_the_place_of_variables():
    assert filled('rate(a{policy=~"$policy"}[$__rate_interval])', "1m", "sla") == 'rate(a{policy=~"sla"}[1m])'


def test_panels_of_states_name_each_value():
    timelines = [panel for panel in PANELS if panel.kind == "state-timeline"]
    assert len(timelines) >= 6
    assert all(panel.states.keys() >= {"0", "1"} for panel in timelines)
    assert not [panel for panel in PANELS if panel.states and panel.kind != "state-timeline"]

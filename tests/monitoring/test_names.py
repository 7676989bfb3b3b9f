"""Every metric and label that alerts name exists, and every alert has its page of the runbook."""

import re

from docs.pages import Page
from monitoring.rules import OF_THE_API_SERVER, RUNBOOKS, TARGET_LABELS, alerts, labels, metrics
from taintwarden.telemetry.metrics import Metrics
from telemetry.declared import declared

ALERTS = alerts()
HEADINGS = ["Meaning", "Impact", "First commands", "Repair", "Undo"]
EXISTING = {one.name: set(one.labels) for one in declared(Metrics())} | OF_THE_API_SERVER


def test_a_metric_in_an_alert_exists():
    for alert in ALERTS:
        assert metrics(alert.expr)
        assert metrics(alert.expr) <= EXISTING.keys()


def test_a_label_in_an_alert_exists():
    for alert in ALERTS:
        for names, label in labels(alert.expr):
            assert label in {one for name in names for one in EXISTING[name]} | TARGET_LABELS


def test_a_label_in_the_text_is_one_of_the_result():
    """A grouped expression keeps only the labels of its grouping; a bare series keeps all."""
    for alert in ALERTS:
        text = " ".join(alert.annotations.values())
        grouped = re.search(r"(?:max|min|sum) by \(([^)]*)\)", alert.expr)
        bare = {one for name in metrics(alert.expr) for one in EXISTING[name]} | TARGET_LABELS
        left = {one.strip() for one in grouped[1].split(",")} if grouped else bare
        assert set(re.findall(r"\$labels\.(\w+)", text)) <= left


def test_an_alert_has_a_page_that_names_it():
    for alert in ALERTS:
        first, _, _ = Page(alert.page).text.partition("\n## ")
        assert f"`{alert.name}`, {alert.labels['severity']}" in first


def test_an_alert_and_its_page_have_the_same_name():
    for alert in ALERTS:
        words = re.findall(r"[A-Z][a-z]+", alert.name.removeprefix("Taintwarden"))
        assert alert.page.stem == "-".join(words).lower()


def test_every_page_is_of_an_alert():
    assert {path for path in RUNBOOKS.glob("*.md") if path.stem != "README"} == {alert.page for alert in ALERTS}


def test_a_page_has_the_same_parts():
    for alert in ALERTS:
        page = Page(alert.page)
        assert [line[3:] for line in page.prose if line.startswith("## ")] == HEADINGS


def test_a_page_states_how_long_it_takes():
    for alert in ALERTS:
        first, _, _ = Page(alert.page).text.partition("\n## ")
        said = {
            0: "",
            60: "a minute",
            120: "2 minutes",
            180: "3 minutes",
            300: "5 minutes",
            900: "15 minutes",
            1800: "30 minutes",
        }[alert.seconds]
        assert said in " ".join(first.split())


def test_a_page_begins_with_three_commands():
    for alert in ALERTS:
        text = Page(alert.page).text.partition("## First commands")[2].partition("## Repair")[0]
        block = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
        assert block
        assert len(block[1].splitlines()) == 3


def test_a_name_that_is_wrong_is_found():
    assert metrics("max(taintwarden_nothing) > 0") - EXISTING.keys() == {"taintwarden_nothing"}
    assert list(labels('max by (zone) (taintwarden_leader{pod="a"})')) == [
        ({"taintwarden_leader"}, "pod"),
        ({"taintwarden_leader"}, "zone"),
    ]


def test_the_index_lists_every_alert():
    rows = Page(RUNBOOKS / "README.md").table("Alerts").rows
    said = {0: "at once"}
    assert [(row[0], row[1], row[2]) for row in rows] == [
        (
            f"[`{alert.name}`]({alert.page.name})",
            alert.labels["severity"],
            said.get(alert.seconds, f"{alert.seconds // 60} min"),
        )
        for alert in ALERTS
    ]
    assert [row[3] for row in rows] == [Page(alert.page).text.splitlines()[0][2:] for alert in ALERTS]

"""Alerts and dashboard as the chart and kustomize ship them: one source, changed by the values."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.rendering import BASE, Json, RenderingError, by_key, chart, key, kustomize
from monitoring.promtool import promtool
from monitoring.rules import SOURCES, alerts, spec

COMPONENTS = BASE.parent / "components"
RULE, DASHBOARD = ("PrometheusRule", "taintwarden"), ("ConfigMap", "taintwarden-dashboard")
OF_EXTENDER = ("PrometheusRule", "taintwarden-scheduler-extender")
OF_PUBLISHER = ("PrometheusRule", "taintwarden-publisher")


def objects(**values: Any) -> list[Json]:
    """The PrometheusRules of a release with everything that alerts are about."""
    parts = {"schedulerExtender.enabled": True, "publisher.enabled": True}
    found = by_key(chart({"prometheusRule": {"enabled": True, **values}, **parts}))
    return [found[RULE], found[OF_EXTENDER], found[OF_PUBLISHER]]


def groups(**values: Any) -> list[Json]:
    return [group for one in objects(**values) for group in one["spec"]["groups"]]


def rules(found: list[Json]) -> dict[str, Json]:
    return {one["alert"]: one for group in found for one in group["rules"]}


def component(folder: Path, name: str) -> list[Json]:
    """The base with this component, as an overlay of a user's."""
    overlay = folder / "overlay"
    overlay.mkdir()
    where = {"resources": [BASE], "components": [COMPONENTS / name]}
    links = {kind: [f"../{path.name}" for path in paths] for kind, paths in where.items()}
    for path in (BASE, COMPONENTS / name, BASE.parents[1] / "crds"):
        (folder / path.name).symlink_to(path)
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(links))
    return kustomize(overlay)


def test_alerts_and_dashboard_are_rendered_only_if_enabled():
    plain = by_key(chart()).keys()
    assert not {RULE, DASHBOARD} & plain
    given = {"prometheusRule": {"enabled": True}, "dashboard": {"enabled": True}}
    assert by_key(chart(given)).keys() == plain | {RULE, DASHBOARD}


def test_the_chart_has_the_rules_of_the_component():
    assert groups() == spec()["groups"]


def test_a_prometheus_selects_the_object_by_the_labels_that_were_given():
    for rendered in objects(labels={"release": "prometheus"}, annotations={"note": "a"}):
        assert rendered["metadata"]["labels"]["release"] == "prometheus"
        assert rendered["metadata"]["annotations"] == {"note": "a"}


@pytest.mark.parametrize("base", ["https://git.example.com/wiki", "https://git.example.com/wiki/"])
def test_pages_are_where_the_user_publishes_them(base):
    for name, one in rules(groups(runbooks=base)).items():
        page = next(alert.page.name for alert in alerts() if alert.name == name)
        assert one["annotations"]["runbook_url"] == f"https://git.example.com/wiki/{page}"


@pytest.mark.parametrize("nothing", [None, ""])
def test_without_published_pages_no_alert_names_one(nothing):
    assert not [one for one in rules(groups(runbooks=nothing)).values() if "runbook_url" in one["annotations"]]


def test_labels_of_alerts_are_added_and_may_replace_the_severity():
    for one in rules(groups(alertLabels={"team": "platform", "severity": "page"})).values():
        assert one["labels"] == {"team": "platform", "severity": "page"}


def test_an_alert_may_be_left_out():
    names = {alert.name for alert in alerts()}
    assert rules(groups(disabled=["TaintwardenZoneFull"])).keys() == names - {"TaintwardenZoneFull"}


def test_a_name_that_is_no_alert_is_refused():
    with pytest.raises(RenderingError, match="disabled"):
        groups(disabled=["ZoneFull"])


def test_without_webhooks_no_alert_is_about_them():
    rendered = by_key(chart({"prometheusRule.enabled": True, "webhooks.enabled": False}))[RULE]
    absent = {"taintwarden.webhook", "taintwarden.scheduler-extender", "taintwarden.publisher"}
    others = {alert.name for alert in alerts() if alert.group not in absent}
    assert rules(rendered["spec"]["groups"]).keys() == others


def test_without_the_extender_no_alert_is_about_it():
    assert not {OF_EXTENDER, OF_PUBLISHER} & by_key(chart({"prometheusRule.enabled": True})).keys()


def test_prometheus_accepts_the_rendered_rules(tmp_path):
    path = tmp_path / "rules.yaml"
    rendered = groups(alertLabels={"team": "platform"}, runbooks="https://a.example.com")
    path.write_text(yaml.safe_dump({"groups": rendered}))
    done = promtool("check", "rules", path)
    assert f"{len(alerts())} rules found" in done.stdout, done.stderr


def test_the_dashboard_has_the_label_that_the_sidecar_of_grafana_selects():
    rendered = by_key(chart({"dashboard": {"enabled": True, "annotations": {"folder": "nodes"}}}))[DASHBOARD]
    assert rendered["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert rendered["metadata"]["annotations"] == {"folder": "nodes"}
    [text] = rendered["data"].values()
    assert json.loads(text) == json.loads((COMPONENTS / "dashboard" / "taintwarden.json").read_text())


@pytest.mark.parametrize(
    ("source", "added"), [(SOURCES[0], RULE), (SOURCES[1], OF_EXTENDER), (SOURCES[2], OF_PUBLISHER)]
)
def test_kustomize_adds_the_same_rules(tmp_path, source, added):
    found = by_key(component(tmp_path, source.parent.name))
    assert found.keys() - by_key(kustomize(BASE)).keys() == {added}
    assert found[added] == yaml.safe_load(source.read_text())


def test_kustomize_adds_the_same_dashboard(tmp_path):
    [added] = [one for one in component(tmp_path, "dashboard") if key(one) == DASHBOARD]
    rendered = by_key(chart({"dashboard": {"enabled": True}}))[DASHBOARD]
    assert {name: json.loads(text) for name, text in added["data"].items()} == {
        name: json.loads(text) for name, text in rendered["data"].items()
    }
    assert added["metadata"]["labels"].items() <= rendered["metadata"]["labels"].items()
    assert added["metadata"]["namespace"] == rendered["metadata"]["namespace"]

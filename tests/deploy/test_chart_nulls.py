"""Every value may be null: what it asks for is then off, empty or Kubernetes' own, or the chart says what it needs."""

import json

import pytest

from deploy.chart_values import paths
from deploy.rendering import CHART, Json, RenderingError, by_key, chart, run, tool
from deploy.test_chart_values import deployment

EVERYTHING: Json = {
    "resourceQuota": {"enabled": True},
    "networkPolicy": {"enabled": True},
    "metrics": {"protected": True, "certificateSecret": "metrics"},
    "serviceMonitor": {"enabled": True},
    "prometheusRule": {"enabled": True},
    "dashboard": {"enabled": True},
    "webhooks": {"callers": {"configMap": "api-servers"}},
}
NEEDED = {
    "image": "image.repository",
    "image.repository": "image.repository",
    "serviceAccount": "serviceAccount.name",
    "serviceAccount.name": "serviceAccount.name",
    "webhooks.serviceAccountName": "webhooks.serviceAccountName",
    "webhooks.callers.key": "webhooks.callers.key",
    "podDisruptionBudget.maxUnavailable": "podDisruptionBudget.maxUnavailable",
    "resourceQuota.pods": "resourceQuota.pods",
    "networkPolicy.apiServerPorts": "networkPolicy.apiServerPorts",
}
"""Values that the chart requires, each with the value that its error names."""


@pytest.mark.parametrize("path", NEEDED)
def test_what_the_chart_needs_is_asked_for(path):
    with pytest.raises(RenderingError, match=f"{NEEDED[path]} is needed"):
        chart(EVERYTHING | {path: None})


def test_all_may_be_null_at_once():
    nulls: Json = {path: None for path, _, inner in paths() if path not in NEEDED and "properties" not in inner}
    assert chart({**nulls, "webhooks.enabled": True})


def test_the_schema_takes_every_null():
    for path, _, inner in paths():
        kinds = [one.get("type", []) for one in inner.get("anyOf", [inner])]
        assert "null" in [kind for one in kinds for kind in one] or None in inner.get("enum", []), path


def test_nulls_of_a_chart_that_depends_on_this_one_are_taken(tmp_path):
    """Helm drops a null where this chart has a default, but not each that comes from the values of another chart."""
    nulls = {"settings": {"logLevel": None}, "webhooks": {"env": None, "tolerations": None}, "image": {"tag": None}}
    (tmp_path / "Chart.yaml").write_text("{apiVersion: v2, name: parent, version: 0.0.1}")
    (tmp_path / "values.yaml").write_text(json.dumps({"taintwarden": nulls}))
    (tmp_path / "charts").mkdir()
    run(tool("helm"), "package", CHART, "--destination", tmp_path / "charts")
    assert chart(chart=tmp_path)


def test_null_replicas_are_left_to_whatever_scales():
    objects = by_key(chart({"replicas": None, "webhooks.replicas": None}))
    found = [one["spec"].keys() for (kind, _), one in objects.items() if kind == "Deployment"]
    assert len(found) == 2
    assert not [keys for keys in found if "replicas" in keys]
    assert deployment(replicas=0)["spec"]["replicas"] == 0

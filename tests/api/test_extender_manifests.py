"""The manifests of the scheduler extender are consistent, and its configuration never stops a scheduler."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from taintwarden_placement.serving.extender_requests import VERBS
from taintwarden_placement.settings import ExtenderSettings

FOLDER = Path(__file__).parents[2] / "deploy" / "components" / "scheduler-extender"
SERVICE, SECRET = yaml.safe_load_all((FOLDER / "service.yaml").read_text())
DEPLOYMENT, BUDGET = yaml.safe_load_all((FOLDER / "deployment.yaml").read_text())
CONFIGURATION = yaml.safe_load((FOLDER / "kube-scheduler.yaml").read_text())
(EXTENDER,) = CONFIGURATION["extenders"]
POD = DEPLOYMENT["spec"]["template"]
NAME = ExtenderSettings().webhook_service


def named(documents: Any) -> list[tuple[str, str]]:
    return [(one["metadata"]["name"], one["metadata"]["namespace"]) for one in documents]


def test_all_objects_have_one_name():
    assert set(named([SERVICE, SECRET, DEPLOYMENT, BUDGET])) == {(NAME, "taintwarden-system")}
    for one in (SERVICE["spec"]["selector"], BUDGET["spec"]["selector"]["matchLabels"]):
        assert one.items() <= POD["metadata"]["labels"].items()


def test_the_service_leads_to_the_port_that_is_served():
    (container,) = POD["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports[SERVICE["spec"]["ports"][0]["targetPort"]] == ExtenderSettings().webhook_port
    assert container["args"] == ["scheduler-extender"]


def test_the_configuration_calls_the_service():
    assert EXTENDER["urlPrefix"] == f"https://{NAME}.taintwarden-system.svc:{SERVICE['spec']['ports'][0]['port']}"
    assert EXTENDER["tlsConfig"]["serverName"] == f"{NAME}.taintwarden-system.svc"
    assert EXTENDER["enableHTTPS"]


@pytest.mark.parametrize("verb", VERBS)
def test_the_configuration_names_every_verb(verb):
    field = {"filter": "filterVerb", "prioritize": "prioritizeVerb", "preempt": "preemptVerb"}[verb]
    assert EXTENDER[field] == verb


def test_a_scheduler_ignores_an_extender_that_fails():
    assert EXTENDER["ignorable"]
    assert EXTENDER["nodeCacheCapable"]
    assert EXTENDER["httpTimeout"] == "2s"


def test_every_node_is_scored_in_a_large_cluster():
    """The scheduler applies the percentage before it calls extenders."""
    assert CONFIGURATION["percentageOfNodesToScore"] == 100


def test_no_replica_is_missing_in_an_upgrade():
    assert DEPLOYMENT["spec"]["replicas"] == 2
    assert DEPLOYMENT["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0

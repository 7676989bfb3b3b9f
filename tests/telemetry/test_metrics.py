"""Names, help texts and labels of metrics, whose values are bounded."""

import re

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from taintwarden.telemetry.metrics import Metrics, Process
from telemetry.declared import declared


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def own_families(metrics: Metrics) -> list[Metric]:
    return [one for one in metrics.registry.collect() if one.name.startswith("taintwarden")]


def names(metrics: Metrics) -> set[str]:
    return {one.name for one in own_families(metrics)}


def test_no_metric_is_labelled_by_pod_or_node(metrics):
    """Budgets and zones are few compared with pods, and those that hold no pod are left out."""
    labels = {label for one in declared(metrics) for label in one.labels}
    of_enums = {"outcome", "reason", "result", "side", "resource", "limit", "accepted", "mode"}
    of_enums |= {"webhook", "configuration", "verb", "state", "change"}
    assert labels <= of_enums | {"policy", "publisher", "zone", "budget"}


def test_no_label_has_a_name_that_prometheus_gives_to_targets(metrics):
    """Prometheus would rename it to exported_NAME, and an alert would name the operator's own namespace or pod."""
    labels = {label for one in declared(metrics) for label in one.labels}
    assert labels & {"namespace", "pod", "container", "node", "service", "endpoint", "job", "instance"} == set()


def test_each_process_exposes_only_its_own_metrics():
    of = {process: names(Metrics(process)) for process in Process}
    assert "taintwarden_leader" not in of[Process.WEBHOOK]
    assert "taintwarden_admission_requests" not in of[Process.OPERATOR] | of[Process.EXTENDER]
    assert "taintwarden_extender_requests" in of[Process.EXTENDER] - of[Process.WEBHOOK] - of[Process.OPERATOR]
    both = {"taintwarden_build", "taintwarden_watch_restarts", "taintwarden_undecodable_objects"}
    assert of[Process.WEBHOOK] & of[Process.OPERATOR] == both
    assert set.union(*of.values()) == names(Metrics())


def test_every_gauge_of_a_policy_is_cleared_with_the_others(metrics):
    """A gauge that is not cleared would report a deleted policy indefinitely."""
    by_policy = {one.collector for one in declared(metrics) if one.kind == "gauge" and "policy" in one.labels}
    assert set(metrics.policy_gauges) == by_policy


def test_names_and_help_follow_the_rules_of_prometheus(metrics):
    for one in own_families(metrics):
        assert re.fullmatch(r"taintwarden_[a-z_]+", one.name)
        assert one.documentation.endswith(".")


def test_the_exposition_can_be_parsed(metrics):
    families = {family.name for family in text_string_to_metric_families(metrics.exposition().decode())}
    assert {"taintwarden_build_info", "process_cpu_seconds", "python_gc_collections"} <= families | {
        "process_cpu_seconds"  # not on every system
    }


def test_two_instances_of_metrics_share_no_series():
    first, second = Metrics(), Metrics()
    first.nodes.set(3)
    assert second.registry.get_sample_value("taintwarden_nodes") == 0

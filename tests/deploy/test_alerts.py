"""The alerts in Prometheus' own engine: each fires in time and names what it is about, and an ordinary hour has none.

A series is written as promtool has it: `0x5 1x10` is 0 at minutes 0 to 5, then 1 at minutes 6 to 16.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from monitoring.promtool import promtool, rule_faults, silent_group, written_rules
from monitoring.rules import SOURCES, alerts

DAY = 86_400
UNANSWERED = 'apiserver_admission_webhook_fail_open_count{instance="k", name="%s", type="admit"}'
POLICY = '{instance="%s", policy="sla"}'
ORDINARY: Mapping[str, str] = {
    # A rollout: the leader ends at minute 20, the other takes over, the new one starts without a complete view.
    'taintwarden_leader{instance="a"}': "1x19 0x60",
    'taintwarden_leader{instance="b"}': "0x19 1x60",
    'taintwarden_stale_view{instance="a"}': "0x20 1x1 0x60",
    'taintwarden_stale_view{instance="b"}': "0x80",
    'taintwarden_policy_mode{instance="a", policy="sla", mode="Enforce"}': "1x80",
    'taintwarden_policy_mode{instance="a", policy="tried", mode="Enforce"}': "0x80",
    'taintwarden_policy_mode{instance="a", policy="tried", mode="DryRun"}': "1x80",
    'taintwarden_policy_accepted{instance="a", policy="sla"}': "1x80",
    # The connection to the API server is lost for some minutes.
    'taintwarden_devices_known{instance="a", policy="sla"}': "1x20 0x9 1x50",
    'taintwarden_guard_tripped{instance="a", policy="sla"}': "0x80",
    # A guard that would trip in a dry run is no reason for an alert.
    'taintwarden_guard_tripped{instance="a", policy="tried"}': "0x10 1x70",
    'taintwarden_all_nodes_unhealthy{instance="a", policy="sla"}': "0x80",
    'taintwarden_all_nodes_unhealthy{instance="a", policy="tried"}': "0x10 1x70",
    'taintwarden_limited_evictions{instance="a", policy="sla", limit="zone"}': "_x10 12x5 3x5 stale",
    'taintwarden_limited_evictions{instance="a", policy="tried", limit="zone"}': "12x80",
    # A zone is drained within minutes, a budget allows in the end, and a rollout refuses once.
    'taintwarden_zone_state{instance="a", policy="sla", zone="zone-a"}': "0x10 1x2 2x3 0x65",
    'taintwarden_zone_state{instance="a", policy="sla", zone="zone-b"}': "0x80",
    'taintwarden_budget_blocked_evictions{instance="a", policy="sla", budget="shop/web"}': "_x10 1x20 _x50",
    'taintwarden_blocked_evictions{instance="a", policy="sla", reason="blocked"}': "_x10 1x20 stale",
    'taintwarden_blocked_evictions{instance="a", policy="sla", reason="refused"}': "_x30 2x2 stale",
    'taintwarden_blocked_evictions{instance="a", policy="sla", reason="postponed"}': "_x9 2x25 stale",
    'taintwarden_evictions_total{instance="a", policy="sla", outcome="evicted"}': "0x10 0+1x12 12x60",
    'taintwarden_missed_deadlines_total{instance="a", policy="sla", reason="not-evicted"}': "4x80",
    'taintwarden_missed_deadlines_total{instance="a", policy="tried", reason="not-evicted"}': "0+1x80",
    'taintwarden_bouncing_workloads{instance="a", policy="sla"}': "0x80",
    'taintwarden_invalid_taints{instance="a", policy="sla"}': "0x40 3x1 0x40",
    'taintwarden_profiles{instance="a", accepted="true"}': "2x80",
    'taintwarden_profiles{instance="a", accepted="false"}': "0x80",
    # The webhook renews its certificate with 30 of 90 days left, and one call in a rollout had no answer.
    'taintwarden_admission_requests_total{instance="w", webhook="mutate", result="patched"}': "0+7x80",
    'taintwarden_webhook_configured{instance="w", configuration="mutating"}': "1x80",
    # An installation: the Job is a moment later than the replica.
    'taintwarden_webhook_trusted{instance="w", configuration="mutating"}': "0x2 1x80",
    'taintwarden_webhook_certificate_expiry_timestamp_seconds{instance="w"}': f"{30 * DAY}x40 {90 * DAY}x40",
    UNANSWERED % "pods.mutate.taintwarden.io": "3x80",
    UNANSWERED % "other.example.com": "0+9x80",
    'taintwarden_extender_requests_total{instance="x", verb="filter", result="answered"}': "0+7x80",
    'taintwarden_extender_certificate_expiry_timestamp_seconds{instance="x"}': f"{3650 * DAY}x80",
    # Prometheus restarts, and the publisher waits for it.
    'taintwarden_publisher_stuck{instance="p", publisher="sla"}': "0x20 1x3 0x60",
    'taintwarden_publisher_stuck{instance="p", publisher="tried"}': "0x80",
    'taintwarden_publisher_objects{instance="p"}': "0x9 2x70",
}
"""An hour in which replicas, policies, webhooks and extender do what they should, and one policy is in a dry run."""


@dataclass(frozen=True)
class Case:
    """Series that differ from the ordinary, by default from minute 10 on, and the alert that they cause."""

    alert: str
    series: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of the alert in addition to its severity."""
    began: int = 10
    """Minute of the first sample for which the expression holds, or a little before."""
    without: str = ""
    """Ordinary series that begin so are not there."""


CASES = [
    Case("TaintwardenDown", {}, without="taintwarden_leader", began=0),
    Case(
        "TaintwardenNoLeader",
        {'taintwarden_leader{instance="a"}': "1x9 0x60", 'taintwarden_leader{instance="b"}': "0x80"},
    ),
    Case(
        "TaintwardenTwoLeaders",
        {'taintwarden_leader{instance="a"}': "1x80", 'taintwarden_leader{instance="b"}': "0x9 1x60"},
    ),
    Case("TaintwardenStaleView", {'taintwarden_stale_view{instance="a"}': "0x9 1x60"}, {"instance": "a"}),
    Case("TaintwardenGuardTripped", {f"taintwarden_guard_tripped{POLICY % 'a'}": "0x9 1x60"}, {"policy": "sla"}),
    Case(
        "TaintwardenGuardPaces",
        {
            f"taintwarden_guard_tripped{POLICY % 'a'}": "0x9 1x60",
            f"taintwarden_guard_paced_pods{POLICY % 'a'}": "_x9 80x60",
        },
        {"policy": "sla"},
    ),
    Case(
        "TaintwardenAllNodesUnhealthy",
        {
            f"taintwarden_all_nodes_unhealthy{POLICY % 'a'}": "0x9 1x60",
            'taintwarden_limited_evictions{instance="a", policy="sla", limit="zone"}': "_x9 4x60",
        },
        {"policy": "sla"},
    ),
    Case(
        "TaintwardenZoneFull",
        {'taintwarden_zone_state{instance="a", policy="sla", zone="zone-b"}': "0x9 2x60"},
        {"policy": "sla", "zone": "zone-b"},
    ),
    Case(
        "TaintwardenDeadlineMissed",
        {'taintwarden_missed_deadlines_total{instance="a", policy="sla", reason="grace-cut"}': "0x9 2+1x60"},
        {"policy": "sla", "reason": "grace-cut"},
    ),
    Case(
        "TaintwardenBudgetBlocked",
        {'taintwarden_budget_blocked_evictions{instance="a", policy="sla", budget="shop/db"}': "_x9 2x60"},
        {"policy": "sla", "budget": "shop/db"},
    ),
    Case(
        "TaintwardenEvictionsRefused",
        {'taintwarden_blocked_evictions{instance="a", policy="sla", reason="misconfigured"}': "_x9 2x60"},
        {"policy": "sla", "reason": "misconfigured"},
    ),
    Case("TaintwardenPodsStuck", {f"taintwarden_stuck_pods{POLICY % 'a'}": "0x9 1x60"}, {"policy": "sla"}),
    Case(
        "TaintwardenWorkloadBounces", {f"taintwarden_bouncing_workloads{POLICY % 'a'}": "0x9 1x60"}, {"policy": "sla"}
    ),
    Case("TaintwardenInvalidTaintValue", {f"taintwarden_invalid_taints{POLICY % 'a'}": "0x9 5x60"}, {"policy": "sla"}),
    Case(
        "TaintwardenPolicyNotAccepted",
        {'taintwarden_policy_accepted{instance="a", policy="tried"}': "1x9 0x60"},
        {"policy": "tried"},
    ),
    Case("TaintwardenDevicesNotKnown", {f"taintwarden_devices_known{POLICY % 'a'}": "1x9 0x60"}, {"policy": "sla"}),
    Case("TaintwardenProfileNotAccepted", {'taintwarden_profiles{instance="a", accepted="false"}': "0x9 1x60"}),
    Case("TaintwardenWebhookDown", {}, without="taintwarden_admission_requests_total", began=0),
    Case(
        "TaintwardenWebhookNotConfigured",
        {'taintwarden_webhook_configured{instance="w", configuration="validating"}': "1x9 0x60"},
        {"configuration": "validating"},
    ),
    Case(
        "TaintwardenWebhookUntrusted",
        {'taintwarden_webhook_trusted{instance="w", configuration="validating"}': "1x9 0x60"},
        {"configuration": "validating"},
    ),
    Case(
        "TaintwardenWebhookUnreachable",
        {UNANSWERED % "pods.mutate.taintwarden.io": "3x9 4+1x60"},
        {"name": "pods.mutate.taintwarden.io"},
    ),
    Case(
        "TaintwardenWebhookCertificateExpires",
        {'taintwarden_webhook_certificate_expiry_timestamp_seconds{instance="w"}': f"{30 * DAY}x9 {20 * DAY}x60"},
    ),
    Case("TaintwardenSchedulerExtenderDown", {}, without="taintwarden_extender_requests_total", began=0),
    Case(
        "TaintwardenSchedulerExtenderCertificateExpires",
        {'taintwarden_extender_certificate_expiry_timestamp_seconds{instance="x"}': f"{3650 * DAY}x9 0x60"},
    ),
    Case("TaintwardenPublisherDown", {}, without="taintwarden_publisher_", began=0),
    Case(
        "TaintwardenPublisherStuck",
        {'taintwarden_publisher_stuck{instance="p", publisher="sla"}': "0x9 1x60"},
        {"publisher": "sla"},
    ),
]
FOR = {alert.name: alert.seconds // 60 for alert in alerts()}
SEVERITY = {alert.name: alert.labels["severity"] for alert in alerts()}
LATEST = 1
"""Minutes: series are a minute apart."""


def firing(alert: str, labels: Mapping[str, str] | None = None) -> str:
    """The series that Prometheus itself keeps of an alert."""
    given = {"alertname": alert, "alertstate": "firing", **(labels or {})}
    return "ALERTS{" + ", ".join(f"{name}={json.dumps(value)}" for name, value in given.items()) + "}"


def expected(case: Case) -> dict[str, object]:
    return {"labels": firing(case.alert, {"severity": SEVERITY[case.alert], **case.labels}), "value": 1}


def group(case: Case) -> dict[str, object]:
    """One test of promtool: not before its time, then it and no other."""
    ordinary = {
        name: values for name, values in ORDINARY.items() if not case.without or not name.startswith(case.without)
    }
    last = case.began - 1 + FOR[case.alert]
    every = 'ALERTS{alertstate="firing"}'
    tests = [
        {"expr": every, "eval_time": f"{last + LATEST}m", "exp_samples": [expected(case)]},
        {"expr": every, "eval_time": f"{last + LATEST + 10}m", "exp_samples": [expected(case)]},
    ]
    if last > 0:
        tests.insert(0, {"expr": every, "eval_time": f"{last - 1}m", "exp_samples": []})
    series = [{"series": name, "values": values} for name, values in {**ordinary, **case.series}.items()]
    return {"name": case.alert, "interval": "1m", "input_series": series, "promql_expr_test": tests}


POSTPONED = Case(
    "TaintwardenEvictionsRefused",
    {'taintwarden_blocked_evictions{instance="a", policy="sla", reason="postponed"}': "_x9 2x60"},
    {"policy": "sla", "reason": "postponed"},
    began=40,
)


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Faults that promtool found, by the name of the test; one run for all."""
    groups = [silent_group("ordinary", ORDINARY), *map(group, CASES), group(POSTPONED) | {"name": "postponed"}]
    return rule_faults(groups, tmp_path_factory.mktemp("alerts"))


def test_promtool_finds_nothing_to_correct(tmp_path):
    done = promtool("check", "rules", "--lint=all", "--lint-fatal", written_rules(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tried():
    assert [case.alert for case in CASES] == list(FOR)


def test_an_ordinary_hour_has_no_alert(faults):
    assert faults["ordinary"] == ""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.alert)
def test_an_alert_fires_in_time_and_alone(faults, case):
    assert faults[case.alert] == ""


def test_evictions_that_a_webhook_wants_later_fire_one_after_half_an_hour(faults):
    assert faults["postponed"] == ""


def test_each_source_is_one_object():
    assert [path.read_text().count("kind: PrometheusRule") for path in SOURCES] == [1, 1, 1]

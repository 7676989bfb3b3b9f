import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from api.policy_cases import BAD, BAD_FOR_US, GOOD, policy
from limits_off import LIMITS_OFF
from taintwarden.api.policies import parse_policy
from taintwarden.engine.limit_settings import (
    ALL_PODS,
    NO_BACKOFF,
    BounceSettings,
    GuardAction,
    GuardSettings,
    Limits,
    PerNode,
    PerWorkload,
    RateLimit,
    UnhealthyTaint,
    ZoneHealth,
)
from taintwarden.engine.model import Effect
from taintwarden.engine.policy import (
    EvictionSettings,
    Exclude,
    Method,
    Mode,
    OrderBy,
    Policy,
    TaintSelector,
    Timing,
    ValueType,
    Window,
)
from taintwarden.engine.selectors import LabelSelector, Requirement, SelectorOperator
from taintwarden.fields.field_errors import FieldError, InvalidObject
from taintwarden.fields.spec import MAX_RATE

SLA = [{"key": "sla"}]
UNAVAILABLE = "spec.limits.perWorkload.maxUnavailable"
OFF = Limits(
    evictions_per_second=MAX_RATE, per_workload=ALL_PODS, zone_health=None, guard=GuardSettings(100), bounce=NO_BACKOFF
)


def errors_of(obj: object) -> list[FieldError]:
    with pytest.raises(InvalidObject) as caught:
        parse_policy(obj)  # type: ignore[arg-type]
    return list(caught.value.errors)


def messages(**spec: object) -> list[str]:
    return [str(error) for error in errors_of(policy({"taints": SLA, **spec}))]


@pytest.mark.parametrize("name", GOOD)
def test_good_policy_is_accepted(name):
    assert parse_policy(policy(GOOD[name])).name == "case"


@pytest.mark.parametrize("bad", (BAD | BAD_FOR_US).values(), ids=BAD | BAD_FOR_US)
def test_bad_policy_is_refused_at_its_field(bad):
    assert {error.path for error in errors_of(policy(bad.spec))} == {bad.path}


def test_least_policy_has_the_engines_defaults():
    assert parse_policy(policy({"taints": SLA})) == Policy(name="case", taints=(TaintSelector("sla"),))


def test_every_field_arrives():
    obj = policy(
        {
            "mode": "DryRun",
            "taints": [{"key": "a/*", "effects": ["NoSchedule"], "valueType": "Version"}],
            "nodeSelector": {"matchLabels": {"b": "2", "a": "1"}},
            "podSelector": {"matchExpressions": [{"key": "c", "operator": "NotIn", "values": ["x", "y"]}]},
            "namespaceSelector": {"matchExpressions": [{"key": "d", "operator": "Exists"}]},
            "exclude": {
                "namespaces": ["n"],
                "priorityAtLeast": 7,
                "daemonSets": False,
                "respectDoNotDisrupt": False,
                "respectDoNotEvict": False,
                "bare": True,
                "localStorage": True,
            },
            "timing": {"violationGraceSeconds": 1, "stabilizationWindowSeconds": 2},
            "eviction": {
                "method": "Delete",
                "pdbTimeoutSeconds": 3,
                "gracePeriodSeconds": 4,
                "order": ["TopologySpread", "Priority"],
            },
            "limits": {
                "evictionsPerSecond": 0.5,
                "burst": 6,
                "concurrentNodes": 3,
                "perNode": {"maxConcurrent": 7},
                "perNamespace": {"evictionsPerSecond": 0.8},
                "perZone": {"evictionsPerSecond": 0.9},
                "perWorkload": {"maxUnavailable": 10},
                "zoneHealth": {
                    "unhealthy": [{"key": "sla", "operator": "Lt", "value": "950"}],
                    "threshold": 0.11,
                    "evictionsPerSecond": 0.13,
                },
                "guard": {
                    "maxPercent": 16,
                    "minPods": 17,
                    "maxPods": 18,
                    "windowSeconds": 180,
                    "settleSeconds": 19,
                    "action": "Report",
                },
                "bounce": {"maxBackoffSeconds": 22},
            },
            "windows": [{"schedule": "0 2 * * *", "duration": "1h30m", "timeZone": "Europe/Berlin"}],
        }
    )
    obj["metadata"] |= {"uid": "u", "generation": 3, "creationTimestamp": "1970-01-01T00:01:40Z", "labels": {"x": "y"}}
    obj["status"] = {"pending": 1}
    assert parse_policy(obj) == Policy(
        name="case",
        uid="u",
        generation=3,
        created_at=100.0,
        mode=Mode.DRY_RUN,
        taints=(TaintSelector("a/*", (Effect.NO_SCHEDULE,), ValueType.VERSION),),
        node_selector=LabelSelector(
            (Requirement("a", SelectorOperator.IN, ("1",)), Requirement("b", SelectorOperator.IN, ("2",)))
        ),
        pod_selector=LabelSelector((Requirement("c", SelectorOperator.NOT_IN, ("x", "y")),)),
        namespace_selector=LabelSelector((Requirement("d", SelectorOperator.EXISTS),)),
        exclude=Exclude(("n",), 7, False, False, False, bare=True, local_storage=True),
        timing=Timing(1, 2),
        eviction=EvictionSettings(Method.DELETE, 3, 4, (OrderBy.TOPOLOGY_SPREAD, OrderBy.PRIORITY)),
        limits=Limits(
            evictions_per_second=0.5,
            burst=6,
            concurrent_nodes=3,
            per_node=PerNode(7),
            per_namespace=RateLimit(0.8),
            per_zone=RateLimit(0.9),
            per_workload=PerWorkload(10),
            zone_health=ZoneHealth((UnhealthyTaint("sla", "Lt", "950"),), 0.11, 0.13),
            guard=GuardSettings(16, 17, 18, 180, 19, GuardAction.REPORT),
            bounce=BounceSettings(22),
        ),
        windows=(Window("0 2 * * *", 5400, "Europe/Berlin"),),
        rehearses=True,
    )


def quarantine(**spec: object) -> Policy:
    return parse_policy(policy({"taints": SLA, "quarantine": True} | spec))


def test_a_quarantine_ignores_all_settings_of_pod_owners():
    found = quarantine(
        exclude={"namespaces": ["infra"], "priorityAtLeast": 7},
        limits={"perWorkload": {"maxUnavailable": 1}, "bounce": {}, "evictionsPerSecond": 3},
    )
    assert found.quarantine
    assert found.exclude == Exclude(
        ("infra",), None, daemon_sets=False, respect_do_not_disrupt=False, respect_do_not_evict=False
    )
    assert found.limits == Limits(3.0, 20, per_workload=ALL_PODS, bounce=NO_BACKOFF, guard=GuardSettings())


@pytest.mark.parametrize(
    ("spec", "seconds"),
    [
        ({}, 30),
        ({"eviction": {"gracePeriodSeconds": 0}}, 0),
        ({"eviction": {"gracePeriodSeconds": 600}}, 600),
        ({"reclaim": {"deadlineSeconds": 10}}, 10),
    ],
)
def test_in_a_quarantine_the_policy_sets_the_grace_period(spec, seconds):
    assert quarantine(**spec).eviction.grace_period_seconds == seconds


def test_in_a_quarantine_budgets_are_a_choice():
    assert quarantine().eviction.method is Method.EVICT
    assert quarantine(eviction={"method": "EvictThenDelete"}).eviction.method is Method.EVICT_THEN_DELETE


@pytest.mark.parametrize(
    ("written", "limits"),
    [
        ({}, Limits(10.0, 20)),
        ({"evictionsPerSecond": 1}, Limits(1.0, 20)),
        ({"burst": 1}, Limits(10.0, 1)),
        ({"perWorkload": {}, "guard": {}, "bounce": {}}, Limits()),
        ({"perWorkload": {"maxUnavailable": 3}}, Limits(per_workload=PerWorkload(3))),
        ({"perWorkload": {"label": "app"}}, Limits(per_workload=PerWorkload(label="app"))),
        ({"perWorkload": {"maxUnavailable": "100%"}}, Limits(per_workload=ALL_PODS)),
        ({"zoneHealth": {"unhealthy": [{"key": "sla"}]}}, Limits(zone_health=ZoneHealth((UnhealthyTaint("sla"),)))),
        ({"guard": {"minPods": 9}}, Limits(guard=GuardSettings(min_pods=9))),
        ({"bounce": {"maxBackoffSeconds": 9}}, Limits(bounce=BounceSettings(9))),
        (LIMITS_OFF, OFF),
        ({**LIMITS_OFF, "evictionsPerSecond": 1}, replace(OFF, evictions_per_second=1.0)),
        ({**LIMITS_OFF, "perWorkload": {}}, replace(OFF, per_workload=PerWorkload())),
        ({**LIMITS_OFF, "perWorkload": {"maxUnavailable": "30%"}}, replace(OFF, per_workload=PerWorkload("30%"))),
        ({**LIMITS_OFF, "guard": {"maxPercent": 5}}, replace(OFF, guard=GuardSettings(max_percent=5))),
        ({**LIMITS_OFF, "bounce": {}}, replace(OFF, bounce=BounceSettings())),
    ],
)
def test_limits_are_switched_off_by_their_own_values(written, limits):
    assert parse_policy(policy({"taints": SLA, "limits": written})).limits == limits


@given(st.text(alphabet="0123456789%.+- ", max_size=5) | st.integers(-5, 2_000_000) | st.floats())
def test_a_share_is_understood_or_refused(value):
    limits, refused = None, set()
    try:
        limits = parse_policy(policy({"taints": SLA, "limits": {"perWorkload": {"maxUnavailable": value}}})).limits
    except InvalidObject as error:
        refused = {one.path for one in error.errors}
    if limits:
        assert str(limits.per_workload) == str(value)
    else:
        assert refused == {UNAVAILABLE}


def test_null_priority_is_no_bound():
    assert parse_policy(policy({"taints": SLA, "exclude": {"priorityAtLeast": None}})).exclude.priority_at_least is None


def test_yaml_times_are_understood():
    obj = policy({"taints": SLA})
    obj["metadata"]["creationTimestamp"] = datetime.datetime(1970, 1, 1, 0, 0, 5)  # noqa: DTZ001 - as PyYAML gives it
    assert parse_policy(obj).created_at == 5.0


def test_impossible_time_is_refused():
    obj = policy({"taints": SLA})
    obj["metadata"]["creationTimestamp"] = "yesterday"
    assert [error.path for error in errors_of(obj)] == ["metadata.creationTimestamp"]


def test_all_errors_are_reported_at_once():
    obj = policy(
        {
            "mode": "On",
            "taints": [{"key": "sla=950"}, {"effects": ["None"]}],
            "limits": {"burst": 0},
            "exclude": {"namespaces": ["*"]},
            "windows": [{"schedule": "0 2 * *", "duration": "1d", "timeZone": "Berlin"}],
            "window": [],
        }
    )
    obj["metadata"]["name"] = "Sla"
    assert [error.path for error in errors_of(obj)] == [
        "metadata.name",
        "spec.taints[0].key",
        "spec.taints[1].key",
        "spec.taints[1].effects[0]",
        "spec.mode",
        "spec.exclude.namespaces[0]",
        "spec.limits.burst",
        "spec.windows[0].schedule",
        "spec.windows[0].duration",
        "spec.windows[0].timeZone",
        "spec.window",
    ]


def share(value: object) -> dict[str, object]:
    return {"limits": {"perWorkload": {"maxUnavailable": value}}}


def label(key: object) -> dict[str, object]:
    return {"limits": {"perWorkload": {"label": key}}}


LABEL = "limits.perWorkload.label"
NAMES = "no more than 63 alphanumeric characters, '-', '_' or '.', optionally after a DNS prefix and '/'"
SPOT = {"reclaim": {"deadlineSeconds": 30}}
MOST = UNAVAILABLE.removeprefix("spec.")
OF_NODES = (
    "may not be specified together with devices or versionLabels, which announce no removal of a node; "
    "select these in another policy"
)
MESSAGES: list[tuple[dict[str, Any], str, str, str]] = [
    ({"taints": [{"key": "s=9"}]}, "taints[0].key", '"s=9"', "must be a key without value and effect; write s"),
    ({"taint": []}, "taint", "[]", "unknown field; did you mean taints?"),
    ({"limits": {"burst": "20"}}, "limits.burst", '"20"', "must be a whole number; write 20, without quotes"),
    ({"limits": {"burst": 0}}, "limits.burst", "0", "must be between 1 and 1000000, inclusive"),
    ({"taints": [{"key": 950}]}, "taints[0].key", "950", "must be a string; put it in quotes"),
    (share(0), MOST, "0", 'must be between 1 and 1000000, inclusive; write for example 2 or "25%"'),
    (share(0.5), MOST, "0.5", 'must be a whole number; write for example 2 or "25%"'),
    (share("25"), MOST, '"25"', 'must be a percentage; write 25, without quotes, or "25%" for a share'),
    (share("100"), MOST, '"100"', 'must be a percentage; write 100, without quotes, or "100%" for a share'),
    (share("200"), MOST, '"200"', "must be a percentage; write 200, without quotes"),
    (share("25.5%"), MOST, '"25.5%"', 'must be a whole percentage; write "25%"'),
    (share("101%"), MOST, '"101%"', 'must be a percentage between 1% and 100%, inclusive; write for example "25%"'),
    (label("app=db"), LABEL, '"app=db"', f"must be the key of a label: {NAMES}; write app"),
    (
        label("a/b/c"),
        LABEL,
        '"a/b/c"',
        f"must be the key of a label: {NAMES}; write for example app.kubernetes.io/instance",
    ),
    (
        {"limits": {"zoneHealth": {"unhealthy": [{"key": "sla"}], "threshold": 55}}},
        "limits.zoneHealth.threshold",
        "55",
        "must be between 0.00001 and 1, inclusive",
    ),
    (
        SPOT | {"eviction": {"gracePeriodSeconds": 60}},
        "eviction.gracePeriodSeconds",
        "60",
        "must be less than or equal to reclaim.deadlineSeconds (30)",
    ),
    (
        {"limits": {"evictionsPerSecond": float("nan")}},
        "limits.evictionsPerSecond",
        "null",
        "must be between 0.00001 and 10000, inclusive",
    ),
]


@pytest.mark.parametrize(("spec", "path", "value", "why"), MESSAGES)
def test_message_names_field_value_reason_and_remedy(spec, path, value, why):
    assert messages(**spec) == [f"spec.{path}: Invalid value: {value}: {why}"]


WINDOWS = {"windows": [{"schedule": "0 2 * * *", "duration": "4h"}]}
TYPED = [
    ({"taints": None}, "taints: Required value: must specify taints, devices or versionLabels"),
    (
        {"mode": "enforce"},
        'mode: Unsupported value: "enforce": supported values: "Enforce", "DryRun"; write Enforce',
    ),
    (
        {"eviction": {"order": ["Small"]}},
        'eviction.order[0]: Unsupported value: "Small": supported values: "Priority", "TopologySpread"',
    ),
    (
        {"eviction": {"order": ["Priority", "Priority"]}},
        'eviction.order[1]: Duplicate value: "Priority": is listed in [0]; remove it',
    ),
    (
        {"taints": [{"key": "sla"}] * 2},
        'taints: Duplicate value: "sla:NoExecute": is listed in [0] and [1]; select each key and effect once',
    ),
    (
        SPOT | WINDOWS,
        "windows: Forbidden: may not be specified together with reclaim; remove one of the two",
    ),
    (SPOT | {"devices": [{"key": "gpu.example.com/health"}]}, f"reclaim: Forbidden: {OF_NODES}"),
    ({"versionLabels": [f"a{n}" for n in range(17)]}, "versionLabels: Too many: 17: must have at most 16 items"),
    (
        {"devices": [{"key": "a", "driver": "b" * 64}]},
        "devices[0].driver: Too long: may not be more than 63 characters",
    ),
]


@pytest.mark.parametrize(("spec", "message"), TYPED)
def test_a_fault_has_the_type_and_text_of_apimachinery(spec, message):
    assert messages(**spec) == [f"spec.{message}"]


def test_long_values_are_cut():
    (message,) = messages(mode="x" * 10_000)
    assert len(message) < 250


def test_report_names_kind_and_object():
    with pytest.raises(InvalidObject) as caught:
        parse_policy(policy({"taints": [], "mode": "On"}))
    assert str(caught.value) == (
        'TaintEvictionPolicy "case" is invalid:\n'
        "* spec.taints: Invalid value: []: must have at least 1 item\n"
        '* spec.mode: Unsupported value: "On": supported values: "Enforce", "DryRun"'
    )


@pytest.mark.parametrize("obj", [None, [], "text", {}, {"metadata": None}, {"metadata": {"name": 1}}, {"spec": 1}])
def test_a_value_that_is_no_policy_is_refused(obj):
    assert errors_of(obj)


def test_another_kind_is_refused():
    assert [error.path for error in errors_of(policy({"taints": SLA}) | {"kind": "Policy"})] == ["kind"]


def test_another_version_is_refused():
    obj = policy({"taints": SLA}) | {"apiVersion": "taintwarden.io/v1"}
    assert [error.path for error in errors_of(obj)] == ["apiVersion"]


@pytest.mark.parametrize(("mode", "places"), [("Enforce", True), ("DryRun", False)])
def test_a_pause_places_pods_as_before(mode: str, places: bool) -> None:
    assert parse_policy(policy({"taints": SLA, "mode": mode, "paused": True})).rehearses is not places

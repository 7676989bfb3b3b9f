import datetime

import pytest

from api.policy_cases import BAD, GOOD, policy
from taintwarden.api import FieldError, InvalidObject, parse_policy
from taintwarden.engine.model import (
    Effect,
    EvictionSettings,
    Exclude,
    Limits,
    Method,
    Mode,
    Policy,
    TaintSelector,
    Timing,
    ValueType,
)
from taintwarden.engine.selectors import EVERYTHING, LabelSelector, Requirement, SelectorOperator

SLA = [{"key": "sla"}]


def errors_of(obj: object) -> list[FieldError]:
    with pytest.raises(InvalidObject) as caught:
        parse_policy(obj)  # type: ignore[arg-type]
    return list(caught.value.errors)


def messages(**spec: object) -> list[str]:
    return [str(error) for error in errors_of(policy({"taints": SLA, **spec}))]


@pytest.mark.parametrize("name", GOOD)
def test_good_policy_is_accepted(name):
    assert parse_policy(policy(GOOD[name])).name == "case"


@pytest.mark.parametrize("name", BAD)
def test_bad_policy_is_refused_at_its_field(name):
    assert {error.path for error in errors_of(policy(BAD[name].spec))} == {BAD[name].path}


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
            "exclude": {"namespaces": ["n"], "priorityAtLeast": 7, "daemonSets": False, "respectDoNotDisrupt": False},
            "timing": {"violationGraceSeconds": 1, "stabilizationWindowSeconds": 2},
            "eviction": {"method": "Delete", "pdbTimeoutSeconds": 3, "gracePeriodSeconds": 4},
            "limits": {"evictionsPerSecond": 0.5, "burst": 6},
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
        exclude=Exclude(("n",), 7, daemon_sets=False, respect_do_not_disrupt=False),
        timing=Timing(1, 2),
        eviction=EvictionSettings(Method.DELETE, 3, 4),
        limits=Limits(0.5, 6),
    )


@pytest.mark.parametrize(
    ("given", "limits"),
    [
        ({}, Limits(10.0, 20)),
        ({"evictionsPerSecond": 1}, Limits(1.0, 20)),
        ({"burst": 1}, Limits(10.0, 1)),
        ({"base": "None"}, Limits(None, 20)),
        ({"base": "None", "evictionsPerSecond": 1}, Limits(1.0, 20)),
    ],
)
def test_limits_not_given_follow_the_base(given, limits):
    assert parse_policy(policy({"taints": SLA, "limits": given})).limits == limits


def test_null_priority_is_no_bound():
    assert parse_policy(policy({"taints": SLA, "exclude": {"priorityAtLeast": None}})).exclude.priority_at_least is None


def test_empty_selector_selects_everything():
    assert parse_policy(policy({"taints": SLA, "podSelector": {}})).pod_selector == EVERYTHING


def test_yaml_times_are_understood():
    obj = policy({"taints": SLA})
    obj["metadata"]["creationTimestamp"] = datetime.datetime(1970, 1, 1, 0, 0, 5)  # noqa: DTZ001 - as PyYAML gives it
    assert parse_policy(obj).created_at == 5.0


def test_impossible_time_is_refused():
    obj = policy({"taints": SLA})
    obj["metadata"]["creationTimestamp"] = "yesterday"
    assert [error.path for error in errors_of(obj)] == ["metadata.creationTimestamp"]


def test_all_errors_come_at_once():
    obj = policy(
        {
            "mode": "On",
            "taints": [{"key": "sla=950"}, {"effects": []}],
            "limits": {"burst": 0},
            "exclude": {"namespaces": ["*"]},
            "windows": [],
        }
    )
    obj["metadata"]["name"] = "Sla"
    assert [error.path for error in errors_of(obj)] == [
        "metadata.name",
        "spec.taints[0].key",
        "spec.taints[1].key",
        "spec.taints[1].effects",
        "spec.mode",
        "spec.exclude.namespaces[0]",
        "spec.limits.burst",
        "spec.windows",
    ]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"taints": [{"key": "sla=950"}]},
            'spec.taints[0].key: Invalid value: "sla=950": must be a key without value and effect; write sla',
        ),
        ({"taints": None}, "spec.taints: Required value: must be given"),
        ({"taint": []}, "spec.taint: Invalid value: []: unknown field; did you mean taints?"),
        (
            {"mode": "enforce"},
            'spec.mode: Invalid value: "enforce": must be one of Enforce, DryRun, Paused; write Enforce',
        ),
        (
            {"limits": {"burst": "20"}},
            'spec.limits.burst: Invalid value: "20": must be a whole number; write 20, without quotes',
        ),
        ({"limits": {"burst": 0}}, "spec.limits.burst: Invalid value: 0: must be from 1 to 1000000"),
        (
            {"taints": [{"key": 950}]},
            'spec.taints[0].key: Invalid value: 950: must be a string; write "950", in quotes',
        ),
        (
            {"limits": {"evictionsPerSecond": float("nan")}},
            "spec.limits.evictionsPerSecond: Invalid value: null: must be from 0.000010 to 10000",
        ),
    ],
)
def test_message_names_field_value_reason_and_remedy(spec, message):
    assert messages(**spec) == [message]


def test_long_values_are_cut():
    (message,) = messages(mode="x" * 10_000)
    assert len(message) < 250


def test_report_names_kind_and_object():
    with pytest.raises(InvalidObject) as caught:
        parse_policy(policy({"taints": [], "mode": "On"}))
    assert str(caught.value) == (
        'TaintEvictionPolicy "case" is invalid:\n'
        "* spec.taints: Invalid value: []: must have at least 1 items\n"
        '* spec.mode: Invalid value: "On": must be one of Enforce, DryRun, Paused'
    )


@pytest.mark.parametrize("obj", [None, [], "text", {}, {"metadata": None}, {"metadata": {"name": 1}}, {"spec": 1}])
def test_what_is_no_policy_is_refused(obj):
    assert errors_of(obj)


def test_another_kind_is_refused():
    assert [error.path for error in errors_of(policy({"taints": SLA}) | {"kind": "Policy"})] == ["kind"]


def test_another_version_is_refused():
    obj = policy({"taints": SLA}) | {"apiVersion": "taintwarden.io/v1"}
    assert [error.path for error in errors_of(obj)] == ["apiVersion"]

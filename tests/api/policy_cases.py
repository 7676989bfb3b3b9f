"""Good and bad policies: one table for the package here and, in tests/e2e, for the real API server."""

from collections.abc import Mapping
from typing import Any, NamedTuple

Json = dict[str, Any]


class Bad(NamedTuple):
    """A spec that must be refused, and the field that the refusal must name."""

    path: str
    spec: Json


def policy(spec: Mapping[str, Any], name: str = "case") -> Json:
    return {
        "apiVersion": "taintwarden.io/v1alpha1",
        "kind": "TaintEvictionPolicy",
        "metadata": {"name": name},
        "spec": dict(spec),
    }


def _with(**fields: Any) -> Json:
    return {"taints": [{"key": "sla"}], **fields}


def _key(key: Any) -> Json:
    return {"taints": [{"key": key}]}


def _expression(**fields: Any) -> Json:
    return _with(podSelector={"matchExpressions": [{"key": "app", **fields}]})


GOOD: dict[str, Json] = {
    "least": _with(),
    "all_keys": _key("*"),
    "prefix": _key("example.com/*"),
    "qualified_key": _key("example.com/Sla_1.x"),
    "longest_name": _key("a" * 63),
    "longest_prefix": _key(f"{'a' * 253}/b"),
    "all_effects": {"taints": [{"key": "sla", "effects": ["NoSchedule", "PreferNoSchedule", "NoExecute"]}]},
    "one_key_twice": {"taints": [{"key": "sla"}, {"key": "sla", "effects": ["NoSchedule"], "valueType": "Integer"}]},
    "most_taints": {"taints": [{"key": f"k{number}"} for number in range(64)]},
    "modes": _with(mode="Paused"),
    "labels": _with(nodeSelector={"matchLabels": {"example.com/a": "", "b": "C.d_e-f"}}),
    "in": _expression(operator="In", values=["a", ""]),
    "exists": _expression(operator="Exists"),
    "exists_empty": _expression(operator="Exists", values=[]),
    "no_bound": _with(exclude={"priorityAtLeast": None}),
    "negative_bound": _with(exclude={"priorityAtLeast": -(2**31)}),
    "no_namespaces": _with(exclude={"namespaces": [], "daemonSets": False, "respectDoNotDisrupt": False}),
    "timing": _with(timing={"violationGraceSeconds": 0, "stabilizationWindowSeconds": 2**31 - 1}),
    "timing_modes": _with(timing={"tolerationSecondsMode": "Kubernetes", "onInvalidValue": "Evict"}),
    "eviction": _with(eviction={"method": "EvictThenDelete", "pdbTimeoutSeconds": 0, "gracePeriodSeconds": 0}),
    "fraction": _with(limits={"evictionsPerSecond": 0.5, "burst": 1}),
    "slowest": _with(limits={"evictionsPerSecond": 0.00001}),
    "fastest": _with(limits={"evictionsPerSecond": 10_000, "burst": 1_000_000}),
    "unlimited": _with(limits={"base": "None"}),
    "base_none_rate": _with(limits={"base": "None", "evictionsPerSecond": 5, "burst": 7}),
    "whole_float": _with(limits={"burst": 20.0}),
    "null_is_absent": _with(mode=None, timing=None, nodeSelector={"matchLabels": None}, limits={"burst": None}),
    "null_value_type": {"taints": [{"key": "sla", "effects": None, "valueType": None}]},
}

BAD: dict[str, Bad] = {
    "no_taints": Bad("spec.taints", {}),
    "null_taints": Bad("spec.taints", {"taints": None}),
    "empty_taints": Bad("spec.taints", {"taints": []}),
    "too_many_taints": Bad("spec.taints", {"taints": [{"key": f"k{number}"} for number in range(65)]}),
    "taints_no_list": Bad("spec.taints", {"taints": "sla"}),
    "taint_no_object": Bad("spec.taints[0]", {"taints": ["sla"]}),
    "taint_null": Bad("spec.taints[1]", {"taints": [{"key": "sla"}, None]}),
    "no_key": Bad("spec.taints[0].key", {"taints": [{"effects": ["NoExecute"]}]}),
    "empty_key": Bad("spec.taints[0].key", _key("")),
    "number_as_key": Bad("spec.taints[0].key", _key(950)),
    "key_with_value": Bad("spec.taints[0].key", _key("sla=950")),
    "key_with_effect": Bad("spec.taints[0].key", _key("sla:NoExecute")),
    "key_final_newline": Bad("spec.taints[0].key", _key("sla\n")),
    "key_space": Bad("spec.taints[0].key", _key(" sla")),
    "key_non_ascii": Bad("spec.taints[0].key", _key("slä")),
    "key_two_slashes": Bad("spec.taints[0].key", _key("a/b/c")),
    "key_upper_prefix": Bad("spec.taints[0].key", _key("Example.com/sla")),
    "key_empty_prefix": Bad("spec.taints[0].key", _key("/sla")),
    "key_empty_name": Bad("spec.taints[0].key", _key("example.com/")),
    "key_final_dash": Bad("spec.taints[0].key", _key("sla-")),
    "key_long_name": Bad("spec.taints[0].key", _key("a" * 64)),
    "key_long_prefix": Bad("spec.taints[0].key", _key(f"{'a' * 254}/b")),
    "key_too_long": Bad("spec.taints[0].key", _key("a" * 318)),
    "star_without_slash": Bad("spec.taints[0].key", _key("example*")),
    "star_in_prefix": Bad("spec.taints[0].key", _key("*.example.com/sla")),
    "star_and_more": Bad("spec.taints[0].key", _key("example.com/s*")),
    "second_key": Bad("spec.taints[1].key", {"taints": [{"key": "a"}, {"key": "b="}]}),
    "unknown_effect": Bad("spec.taints[0].effects[0]", {"taints": [{"key": "a", "effects": ["Noexecute"]}]}),
    "no_effects": Bad("spec.taints[0].effects", {"taints": [{"key": "a", "effects": []}]}),
    "effect_no_list": Bad("spec.taints[0].effects", {"taints": [{"key": "a", "effects": "NoExecute"}]}),
    "effect_twice": Bad("spec.taints[0].effects[1]", {"taints": [{"key": "a", "effects": ["NoExecute"] * 2}]}),
    "value_type": Bad("spec.taints[0].valueType", {"taints": [{"key": "a", "valueType": "Int"}]}),
    "taint_twice": Bad("spec.taints", {"taints": [{"key": "a"}, {"key": "a"}]}),
    "taint_overlap": Bad(
        "spec.taints", {"taints": [{"key": "a", "effects": ["NoSchedule", "NoExecute"]}, {"key": "a"}]}
    ),
    "mode": Bad("spec.mode", _with(mode="enforce")),
    "mode_no_string": Bad("spec.mode", _with(mode=True)),
    "selector_no_object": Bad("spec.nodeSelector", _with(nodeSelector="a=b")),
    "labels_no_object": Bad("spec.nodeSelector.matchLabels", _with(nodeSelector={"matchLabels": "a=b"})),
    "label_key": Bad("spec.nodeSelector.matchLabels", _with(nodeSelector={"matchLabels": {"a!": "b"}})),
    "label_value": Bad("spec.podSelector.matchLabels[a]", _with(podSelector={"matchLabels": {"a": "b c"}})),
    "label_value_long": Bad("spec.podSelector.matchLabels[a]", _with(podSelector={"matchLabels": {"a": "b" * 64}})),
    "label_value_number": Bad("spec.podSelector.matchLabels[a]", _with(podSelector={"matchLabels": {"a": 1}})),
    "too_many_labels": Bad(
        "spec.podSelector.matchLabels", _with(podSelector={"matchLabels": {f"k{number}": "" for number in range(33)}})
    ),
    "expression_no_key": Bad(
        "spec.namespaceSelector.matchExpressions[0].key",
        _with(namespaceSelector={"matchExpressions": [{"operator": "Exists"}]}),
    ),
    "expression_key": Bad(
        "spec.namespaceSelector.matchExpressions[0].key",
        _with(namespaceSelector={"matchExpressions": [{"key": "a b", "operator": "Exists"}]}),
    ),
    "no_operator": Bad("spec.podSelector.matchExpressions[0].operator", _expression()),
    "operator": Bad("spec.podSelector.matchExpressions[0].operator", _expression(operator="Equals", values=["a"])),
    "in_nothing": Bad("spec.podSelector.matchExpressions[0].values", _expression(operator="In")),
    "not_in_nothing": Bad("spec.podSelector.matchExpressions[0].values", _expression(operator="NotIn", values=[])),
    "exists_value": Bad("spec.podSelector.matchExpressions[0].values", _expression(operator="Exists", values=["a"])),
    "absent_value": Bad(
        "spec.podSelector.matchExpressions[0].values", _expression(operator="DoesNotExist", values=["a"])
    ),
    "in_value": Bad("spec.podSelector.matchExpressions[0].values[0]", _expression(operator="In", values=["a/b"])),
    "in_too_many": Bad("spec.podSelector.matchExpressions[0].values", _expression(operator="In", values=["a"] * 65)),
    "namespace_star": Bad("spec.exclude.namespaces[0]", _with(exclude={"namespaces": ["kube-*"]})),
    "namespace_upper": Bad("spec.exclude.namespaces[0]", _with(exclude={"namespaces": ["Default"]})),
    "namespace_empty": Bad("spec.exclude.namespaces[0]", _with(exclude={"namespaces": [""]})),
    "namespace_newline": Bad("spec.exclude.namespaces[0]", _with(exclude={"namespaces": ["a\n"]})),
    "namespace_twice": Bad("spec.exclude.namespaces[1]", _with(exclude={"namespaces": ["a", "a"]})),
    "priority_text": Bad("spec.exclude.priorityAtLeast", _with(exclude={"priorityAtLeast": "1000"})),
    "priority_fraction": Bad("spec.exclude.priorityAtLeast", _with(exclude={"priorityAtLeast": 0.5})),
    "priority_beyond_int32": Bad("spec.exclude.priorityAtLeast", _with(exclude={"priorityAtLeast": 2**31})),
    "daemon_sets": Bad("spec.exclude.daemonSets", _with(exclude={"daemonSets": "no"})),
    "do_not_disrupt": Bad("spec.exclude.respectDoNotDisrupt", _with(exclude={"respectDoNotDisrupt": 0})),
    "grace_negative": Bad("spec.timing.violationGraceSeconds", _with(timing={"violationGraceSeconds": -1})),
    "grace_text": Bad("spec.timing.violationGraceSeconds", _with(timing={"violationGraceSeconds": "30s"})),
    "grace_boolean": Bad("spec.timing.violationGraceSeconds", _with(timing={"violationGraceSeconds": True})),
    "grace_huge": Bad("spec.timing.violationGraceSeconds", _with(timing={"violationGraceSeconds": 2**31})),
    "window_negative": Bad("spec.timing.stabilizationWindowSeconds", _with(timing={"stabilizationWindowSeconds": -1})),
    "seconds_mode": Bad("spec.timing.tolerationSecondsMode", _with(timing={"tolerationSecondsMode": "After"})),
    "on_invalid": Bad("spec.timing.onInvalidValue", _with(timing={"onInvalidValue": "Ignore"})),
    "method": Bad("spec.eviction.method", _with(eviction={"method": "Drain"})),
    "pdb_timeout": Bad("spec.eviction.pdbTimeoutSeconds", _with(eviction={"pdbTimeoutSeconds": -5})),
    "pod_grace": Bad("spec.eviction.gracePeriodSeconds", _with(eviction={"gracePeriodSeconds": -1})),
    "base": Bad("spec.limits.base", _with(limits={"base": "none"})),
    "rate_zero": Bad("spec.limits.evictionsPerSecond", _with(limits={"evictionsPerSecond": 0})),
    "rate_negative": Bad("spec.limits.evictionsPerSecond", _with(limits={"evictionsPerSecond": -1})),
    "rate_too_slow": Bad("spec.limits.evictionsPerSecond", _with(limits={"evictionsPerSecond": 1e-6})),
    "rate_too_fast": Bad("spec.limits.evictionsPerSecond", _with(limits={"evictionsPerSecond": 10_001})),
    "rate_text": Bad("spec.limits.evictionsPerSecond", _with(limits={"evictionsPerSecond": "10"})),
    "burst_zero": Bad("spec.limits.burst", _with(limits={"burst": 0})),
    "burst_fraction": Bad("spec.limits.burst", _with(limits={"burst": 1.5})),
    "burst_alone": Bad("spec.limits.burst", _with(limits={"base": "None", "burst": 5})),
    "unknown_in_spec": Bad("spec.windows", _with(windows=[])),
    "unknown_in_taint": Bad("spec.taints[0].effect", {"taints": [{"key": "sla", "effect": "NoExecute"}]}),
    "unknown_in_limits": Bad("spec.limits.perNode", _with(limits={"perNode": {"maxConcurrent": 1}})),
}

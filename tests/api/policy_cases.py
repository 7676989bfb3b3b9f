"""Good and bad policies: one table for the package here and, in tests/e2e, for the real API server."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from limits_off import LIMITS_OFF

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


def _from(source: Any, **fields: Any) -> Json:
    return {"taints": [{"key": "sla", "from": source, **fields}]}


def _order(*order: str) -> Json:
    return _with(eviction={"order": list(order)})


def _unavailable(value: Any) -> Json:
    return _with(limits={"perWorkload": {"maxUnavailable": value}})


def _label(key: Any) -> Json:
    return _with(limits={"perWorkload": {"label": key}})


def _zones(**fields: Any) -> Json:
    return _with(limits={"zoneHealth": {"unhealthy": [{"key": "sla"}], **fields}})


def _unhealthy(**taint: Any) -> Json:
    return _zones(unhealthy=[{"key": "sla", **taint}])


def _guard(**fields: Any) -> Json:
    return _with(limits={"guard": fields})


def _bounce(**fields: Any) -> Json:
    return _with(limits={"bounce": fields})


def _window(**fields: Any) -> Json:
    return _with(windows=[{"schedule": "0 2 * * *", "duration": "4h", **fields}])


def _reclaim(seconds: Any = 120, **fields: Any) -> Json:
    return _with(reclaim={"deadlineSeconds": seconds}, **fields)


def _expression(**fields: Any) -> Json:
    return _with(podSelector={"matchExpressions": [{"key": "app", **fields}]})


SOURCES_OF_ONE_KEY = (("a", "NoSchedule"), ("b", "NoExecute"))
GOOD: dict[str, Json] = {
    "least": _with(),
    "all_keys": _key("*"),
    "prefix": _key("example.com/*"),
    "qualified_key": _key("example.com/Sla_1.x"),
    "longest_name": _key("a" * 63),
    "longest_prefix": _key(f"{'a' * 253}/b"),
    "all_effects": {"taints": [{"key": "sla", "effects": ["NoSchedule", "PreferNoSchedule", "NoExecute"]}]},
    "one_key_twice": {"taints": [{"key": "sla"}, {"key": "sla", "effects": ["NoSchedule"], "valueType": "Integer"}]},
    "from_node_info": _from({"nodeInfo": "kubeletVersion"}, valueType="Version", placement=True),
    "from_a_condition": _from({"condition": "GPUHealthy"}, effects=["NoSchedule"]),
    "from_a_label": _from({"label": "example.com/rack"}),
    "from_an_annotation": _from({"annotation": "example.com/team"}),
    "from_once_and_selected_twice": {
        "taints": [{"key": "sla", "from": {"label": "a"}}, {"key": "sla", "effects": ["NoSchedule"]}]
    },
    "from_one_source_twice": {
        "taints": [{"key": "k", "from": {"label": "a"}, "effects": [effect]} for effect in ("NoSchedule", "NoExecute")]
    },
    "quarantine": _with(quarantine=True),
    "quarantine_of_namespaces": _with(
        quarantine=True,
        namespaceSelector={"matchLabels": {"team": "a"}},
        podSelector={"matchLabels": {}, "matchExpressions": []},
    ),
    "pods_without_quarantine": _with(quarantine=False, podSelector={"matchLabels": {"app": "web"}}),
    "placement": {"taints": [{"key": "sla", "placement": True}]},
    "placement_that_evicts_nobody": {"taints": [{"key": "sla", "effects": [], "placement": True}]},
    "version_labels": {"taints": [{"key": "sla"}], "versionLabels": ["driver", "example.com/kubelet"]},
    "version_labels_alone": {"versionLabels": ["driver"]},
    "longest_prefix_of_a_version_label": {"versionLabels": [f"{'a' * 223}/b"]},
    "no_placement": {"taints": [{"key": "example.com/*", "placement": False}]},
    "longest_placed_prefix": {"taints": [{"key": f"{'a' * 223}/b", "placement": True}]},
    "most_taints": {"taints": [{"key": f"k{number}"} for number in range(64)]},
    "modes": _with(mode="DryRun", paused=True),
    "labels": _with(nodeSelector={"matchLabels": {"example.com/a": "", "b": "C.d_e-f"}}),
    "in": _expression(operator="In", values=["a", ""]),
    "exists": _expression(operator="Exists"),
    "exists_empty": _expression(operator="Exists", values=[]),
    "no_bound": _with(exclude={"priorityAtLeast": None}),
    "negative_bound": _with(exclude={"priorityAtLeast": -(2**31)}),
    "keeps_data": _with(exclude={"bare": True, "localStorage": True}),
    "no_namespaces": _with(exclude={"namespaces": [], "daemonSets": False, "respectDoNotDisrupt": False}),
    "timing": _with(timing={"violationGraceSeconds": 0, "stabilizationWindowSeconds": 2**31 - 1}),
    "timing_modes": _with(timing={"tolerationSecondsMode": "Kubernetes", "onInvalidValue": "Evict"}),
    "eviction": _with(eviction={"method": "EvictThenDelete", "pdbTimeoutSeconds": 0, "gracePeriodSeconds": 0}),
    "replace_first": _with(eviction={"replaceFirst": {}}),
    "replace_first_within_the_window": _with(
        eviction={"replaceFirst": {"timeoutSeconds": 60}}, limits={"guard": {"windowSeconds": 60}}
    ),
    "fraction": _with(limits={"evictionsPerSecond": 0.5, "burst": 1}),
    "slowest": _with(limits={"evictionsPerSecond": 0.00001}),
    "fastest": _with(limits={"evictionsPerSecond": 10_000, "burst": 1_000_000}),
    "unlimited": _with(limits=LIMITS_OFF),
    "only_a_rate": _with(limits={**LIMITS_OFF, "evictionsPerSecond": 5, "burst": 7}),
    "order": _order("TopologySpread", "Priority"),
    "no_order": _order(),
    "per_node": _with(limits={"perNode": {"maxConcurrent": 1}}),
    "most_per_node": _with(limits={"perNode": {"maxConcurrent": 10_000}}),
    **{f"nodes_{value}": _with(limits={"concurrentNodes": value}) for value in (1, 500, "1%", "30%", "100%")},
    "per_namespace": _with(limits={"perNamespace": {"evictionsPerSecond": 0.00001}}),
    "per_zone": _with(limits={"perZone": {"evictionsPerSecond": 10_000}}),
    "empty_sections": _with(
        limits={
            "perNode": {},
            "perNamespace": {},
            "perZone": {},
            "perWorkload": {},
            "guard": {},
            "bounce": {},
        }
    ),
    "sections_of_none": _with(limits={**LIMITS_OFF, "guard": {}, "bounce": {}}),
    "bounce_off": _bounce(maxBackoffSeconds=0),
    "bounce_most": _bounce(maxBackoffSeconds=86_400),
    "unavailable_number": _unavailable(1),
    "unavailable_most": _unavailable(1_000_000),
    "unavailable_least_share": _unavailable("1%"),
    "unavailable_share": _unavailable("25%"),
    "unavailable_all": _unavailable("100%"),
    "label": _label("app.kubernetes.io/instance"),
    "label_without_prefix": _label("app"),
    "label_longest": _label(f"{'a' * 253}/{'b' * 63}"),
    "unavailable_null": _unavailable(None),
    "zones": _zones(threshold=1, evictionsPerSecond=10_000),
    "unhealthy_exists": _unhealthy(operator="Exists"),
    "unhealthy_equal": _unhealthy(operator="Equal", value="bad"),
    "unhealthy_empty": _unhealthy(operator="Equal", value=""),
    "unhealthy_below": _unhealthy(operator="Lt", value="950"),
    "unhealthy_of_a_domain": _zones(unhealthy=[{"key": "node.kubernetes.io/unreachable"}, {"key": "sla"}]),
    "lowest_threshold": _zones(threshold=0.00001),
    "guard": _guard(maxPercent=100, minPods=0, windowSeconds=60, settleSeconds=0, action="Report"),
    "guard_pace": _guard(action="Pace"),
    "guard_ceiling": _guard(minPods=10, maxPods=10),
    "guard_ceiling_alone": _guard(maxPods=10),
    "guard_most": _guard(maxPercent=1, minPods=2**31 - 1, windowSeconds=86_400, settleSeconds=300),
    "window": _window(),
    "windows": _with(
        windows=[
            {"schedule": "*/15 0-5,22 1 JAN-MAR,DEC mon-FRI", "duration": "10m", "timeZone": "Europe/Berlin"},
            {"schedule": " 0  2 * * 7 ", "duration": "1h30m15s", "timeZone": "America/Argentina/Buenos_Aires"},
            {"schedule": "0 2 LW * *", "duration": "0h90m", "timeZone": "Etc/GMT+1"},
            {"schedule": "0 2 * * MON#1", "duration": "744h", "timeZone": "EST5EDT"},
        ]
    ),
    "same_times_elsewhere": _with(
        windows=[{"schedule": "0 2 * * *", "duration": "4h", "timeZone": zone} for zone in ("UTC", "Asia/Tokyo")]
    ),
    "no_windows": _with(windows=[]),
    "most_windows": _with(windows=[{"schedule": f"{minute} 2 * * *", "duration": "30s"} for minute in range(32)]),
    "reclaim": _reclaim(),
    "reclaim_shortest": _reclaim(1),
    "reclaim_longest": _reclaim(86_400),
    "reclaim_with_nulls": _reclaim(eviction=None, windows=None, limits=None),
    "reclaim_limited": _reclaim(limits={"evictionsPerSecond": 1}, windows=[]),
    "reclaim_with_all_the_grace": _reclaim(30, eviction={"gracePeriodSeconds": 30}),
    "whole_float": _with(limits={"burst": 20.0}),
    "null_is_absent": _with(mode=None, timing=None, nodeSelector={"matchLabels": None}, limits={"burst": None}),
    "null_value_type": {"taints": [{"key": "sla", "effects": None, "valueType": None}]},
}

BAD: dict[str, Bad] = {
    "no_taints": Bad("spec.taints", {}),
    "null_taints": Bad("spec.taints", {"taints": None}),
    "empty_taints": Bad("spec.taints", {"taints": []}),
    "no_version_labels": Bad("spec.taints", {"versionLabels": []}),
    "version_label_no_key": Bad("spec.versionLabels[0]", {"versionLabels": ["a=b"]}),
    "version_label_with_a_long_prefix": Bad("spec.versionLabels[0]", {"versionLabels": [f"{'a' * 224}/b"]}),
    "version_label_twice": Bad("spec.versionLabels[1]", {"versionLabels": ["a", "a"]}),
    "too_many_version_labels": Bad("spec.versionLabels", {"versionLabels": [f"k{number}" for number in range(17)]}),
    "too_many_taints": Bad("spec.taints", {"taints": [{"key": f"k{number}"} for number in range(65)]}),
    "taint_null": Bad("spec.taints[1]", {"taints": [{"key": "sla"}, None]}),
    "no_key": Bad("spec.taints[0].key", {"taints": [{"effects": ["NoExecute"]}]}),
    "empty_key": Bad("spec.taints[0].key", _key("")),
    "from_nothing": Bad("spec.taints[0].from", _from({})),
    "from_two_sources": Bad("spec.taints[0].from", _from({"nodeInfo": "kubeletVersion", "label": "a"})),
    "from_no_field": Bad("spec.taints[0].from.nodeInfo", _from({"nodeInfo": "kubletVersion"})),
    "from_the_identity_of_a_node": Bad("spec.taints[0].from.nodeInfo", _from({"nodeInfo": "machineID"})),
    "from_a_condition_that_is_no_name": Bad("spec.taints[0].from.condition", _from({"condition": "GPU healthy"})),
    "from_a_label_that_is_none": Bad("spec.taints[0].from.label", _from({"label": "-a"})),
    "from_an_annotation_that_is_none": Bad("spec.taints[0].from.annotation", _from({"annotation": ""})),
    "from_a_label_of_ours": Bad("spec.taints[0].from.label", _from({"label": "value.taintwarden.io/sla"})),
    "from_an_annotation_of_ours": Bad(
        "spec.taints[0].from.annotation", _from({"annotation": "taintwarden.io/taint-history"})
    ),
    "from_something_else": Bad("spec.taints[0].from.metric", _from({"metric": "sla"})),
    "from_for_all_keys": Bad("spec.taints[0].key", {"taints": [{"key": "*", "from": {"label": "a"}}]}),
    "from_for_a_prefix": Bad("spec.taints[0].key", {"taints": [{"key": "a.io/*", "from": {"label": "a"}}]}),
    "from_for_a_key_of_kubernetes": Bad(
        "spec.taints[0].key", {"taints": [{"key": "node.kubernetes.io/not-ready", "from": {"label": "a"}}]}
    ),
    "from_without_effect": Bad("spec.taints[0].effects", _from({"label": "a"}, effects=[], placement=True)),
    "from_other_sources": Bad(
        "spec.taints",
        {"taints": [{"key": "k", "from": {"label": one}, "effects": [two]} for one, two in SOURCES_OF_ONE_KEY]},
    ),
    "from_in_a_quarantine": Bad("spec.quarantine", _from({"label": "a"}) | {"quarantine": True}),
    "placement_of_all_keys": Bad("spec.taints[0].placement", {"taints": [{"key": "*", "placement": True}]}),
    "placement_of_a_prefix": Bad("spec.taints[0].placement", {"taints": [{"key": "a.io/*", "placement": True}]}),
    "placement_of_a_long_prefix": Bad(
        "spec.taints[0].placement", {"taints": [{"key": f"{'a' * 224}/b", "placement": True}]}
    ),
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
    "effect_twice": Bad("spec.taints[0].effects[1]", {"taints": [{"key": "a", "effects": ["NoExecute"] * 2}]}),
    "value_type": Bad("spec.taints[0].valueType", {"taints": [{"key": "a", "valueType": "Int"}]}),
    "taint_twice": Bad("spec.taints", {"taints": [{"key": "a"}, {"key": "a"}]}),
    "taint_overlap": Bad(
        "spec.taints", {"taints": [{"key": "a", "effects": ["NoSchedule", "NoExecute"]}, {"key": "a"}]}
    ),
    "mode": Bad("spec.mode", _with(mode="enforce")),
    "label_key": Bad("spec.nodeSelector.matchLabels", _with(nodeSelector={"matchLabels": {"a!": "b"}})),
    "label_value": Bad("spec.podSelector.matchLabels[a]", _with(podSelector={"matchLabels": {"a": "b c"}})),
    "label_value_long": Bad("spec.podSelector.matchLabels[a]", _with(podSelector={"matchLabels": {"a": "b" * 64}})),
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
    "priority_beyond_int32": Bad("spec.exclude.priorityAtLeast", _with(exclude={"priorityAtLeast": 2**31})),
    "do_not_disrupt": Bad("spec.exclude.respectDoNotDisrupt", _with(exclude={"respectDoNotDisrupt": 0})),
    "grace_negative": Bad("spec.timing.violationGraceSeconds", _with(timing={"violationGraceSeconds": -1})),
    "grace_huge": Bad("spec.timing.violationGraceSeconds", _with(timing={"violationGraceSeconds": 2**31})),
    "window_negative": Bad("spec.timing.stabilizationWindowSeconds", _with(timing={"stabilizationWindowSeconds": -1})),
    "seconds_mode": Bad("spec.timing.tolerationSecondsMode", _with(timing={"tolerationSecondsMode": "After"})),
    "on_invalid": Bad("spec.timing.onInvalidValue", _with(timing={"onInvalidValue": "Ignore"})),
    "quarantine_of_pods": Bad("spec.podSelector", _with(quarantine=True, podSelector={"matchLabels": {"app": "web"}})),
    "quarantine_of_expressions": Bad(
        "spec.podSelector",
        _with(quarantine=True, podSelector={"matchExpressions": [{"key": "app", "operator": "Exists"}]}),
    ),
    "method": Bad("spec.eviction.method", _with(eviction={"method": "Drain"})),
    "pdb_timeout": Bad("spec.eviction.pdbTimeoutSeconds", _with(eviction={"pdbTimeoutSeconds": -5})),
    "pod_grace": Bad("spec.eviction.gracePeriodSeconds", _with(eviction={"gracePeriodSeconds": -1})),
    "replace_first_never": Bad(
        "spec.eviction.replaceFirst.timeoutSeconds", _with(eviction={"replaceFirst": {"timeoutSeconds": 0}})
    ),
    "replace_first_beyond_the_window": Bad(
        "spec.eviction.replaceFirst.timeoutSeconds",
        _with(eviction={"replaceFirst": {"timeoutSeconds": 61}}, limits={"guard": {"windowSeconds": 60}}),
    ),
    "replace_first_beyond_the_default_window": Bad(
        "spec.eviction.replaceFirst.timeoutSeconds", _with(eviction={"replaceFirst": {"timeoutSeconds": 601}})
    ),
    "base": Bad("spec.limits.base", _with(limits={"base": "None"})),
    "rate_zero": Bad("spec.limits.evictionsPerSecond", _with(limits={"evictionsPerSecond": 0})),
    "rate_negative": Bad("spec.limits.evictionsPerSecond", _with(limits={"evictionsPerSecond": -1})),
    "rate_too_slow": Bad("spec.limits.evictionsPerSecond", _with(limits={"evictionsPerSecond": 1e-6})),
    "rate_too_fast": Bad("spec.limits.evictionsPerSecond", _with(limits={"evictionsPerSecond": 10_001})),
    "burst_zero": Bad("spec.limits.burst", _with(limits={"burst": 0})),
    "burst_fraction": Bad("spec.limits.burst", _with(limits={"burst": 1.5})),
    "order_unknown": Bad("spec.eviction.order[0]", _order("priority")),
    "order_twice": Bad("spec.eviction.order[1]", _order("Priority", "Priority")),
    "order_by_grace": Bad("spec.eviction.order[0]", _order("ShortestGrace")),
    "per_node_zero": Bad("spec.limits.perNode.maxConcurrent", _with(limits={"perNode": {"maxConcurrent": 0}})),
    "per_node_many": Bad("spec.limits.perNode.maxConcurrent", _with(limits={"perNode": {"maxConcurrent": 10_001}})),
    **{
        f"{section}_{name}": Bad(
            f"spec.limits.{section}.evictionsPerSecond", _with(limits={section: {"evictionsPerSecond": rate}})
        )
        for section in ("perNamespace", "perZone")
        for name, rate in {"zero": 0, "too_slow": 1e-6, "too_fast": 10_001}.items()
    },
    **{
        f"label_{name}": Bad("spec.limits.perWorkload.label", _label(value))
        for name, value in {
            "empty": "",
            "with_value": "app=db",
            "long_name": "a" * 64,
            "long_prefix": f"{'a' * 254}/b",
            "upper_prefix": "Example.com/app",
            "star": "app/*",
            "number": 7,
        }.items()
    },
    **{
        f"nodes_{name}": Bad("spec.limits.concurrentNodes", _with(limits={"concurrentNodes": value}))
        for name, value in {
            "zero": 0,
            "too_many": 501,
            "fraction": 1.5,
            "share_zero": "0%",
            "share_over": "101%",
            "share_fraction": "2.5%",
            "text": "2",
        }.items()
    },
    **{
        f"unavailable_{name}": Bad("spec.limits.perWorkload.maxUnavailable", _unavailable(value))
        for name, value in {
            "zero": 0,
            "negative": -1,
            "too_many": 1_000_001,
            "fraction": 0.5,
            "whole_float": 2.0,
            "boolean": True,
            "list": [1],
            "share_zero": "0%",
            "share_over": "101%",
            "share_negative": "-5%",
            "share_fraction": "25.5%",
            "share_leading_zero": "025%",
            "share_space": "25 %",
            "share_newline": "25%\n",
            "text_number": "25",
            "text_empty": "",
            "text_long": "9" * 1000,
        }.items()
    },
    "threshold_zero": Bad("spec.limits.zoneHealth.threshold", _zones(threshold=0)),
    "threshold_negative": Bad("spec.limits.zoneHealth.threshold", _zones(threshold=-0.5)),
    "threshold_percent": Bad("spec.limits.zoneHealth.threshold", _zones(threshold=55)),
    "threshold_over": Bad("spec.limits.zoneHealth.threshold", _zones(threshold=1.01)),
    "zone_rate_zero": Bad("spec.limits.zoneHealth.evictionsPerSecond", _zones(evictionsPerSecond=0)),
    "zone_rate_too_fast": Bad("spec.limits.zoneHealth.evictionsPerSecond", _zones(evictionsPerSecond=10_001)),
    "nothing_unhealthy": Bad("spec.limits.zoneHealth.unhealthy", _zones(unhealthy=[])),
    "unhealthy_key": Bad("spec.limits.zoneHealth.unhealthy[0].key", _unhealthy(key="s la")),
    "unhealthy_operator": Bad("spec.limits.zoneHealth.unhealthy[0].operator", _unhealthy(operator="In", value="a")),
    "unhealthy_exists_value": Bad("spec.limits.zoneHealth.unhealthy[0].value", _unhealthy(value="950")),
    "unhealthy_no_number": Bad("spec.limits.zoneHealth.unhealthy[0].value", _unhealthy(operator="Lt", value="95.5")),
    "unhealthy_zeros": Bad("spec.limits.zoneHealth.unhealthy[0].value", _unhealthy(operator="Lt", value="0950")),
    "unhealthy_without_value": Bad("spec.limits.zoneHealth.unhealthy[0].value", _unhealthy(operator="Gt")),
    "guard_percent_zero": Bad("spec.limits.guard.maxPercent", _guard(maxPercent=0)),
    "guard_percent_over": Bad("spec.limits.guard.maxPercent", _guard(maxPercent=101)),
    "guard_pods": Bad("spec.limits.guard.minPods", _guard(minPods=-1)),
    "guard_ceiling_below_floor": Bad("spec.limits.guard.maxPods", _guard(minPods=11, maxPods=10)),
    "guard_ceiling_zero": Bad("spec.limits.guard.maxPods", _guard(maxPods=0)),
    "guard_window_short": Bad("spec.limits.guard.windowSeconds", _guard(windowSeconds=59)),
    "guard_window_long": Bad("spec.limits.guard.windowSeconds", _guard(windowSeconds=86_401)),
    "guard_settle_negative": Bad("spec.limits.guard.settleSeconds", _guard(settleSeconds=-1)),
    "guard_settle_long": Bad("spec.limits.guard.settleSeconds", _guard(settleSeconds=301)),
    "guard_action": Bad("spec.limits.guard.action", _guard(action="halt")),
    "bounce_backoff_negative": Bad("spec.limits.bounce.maxBackoffSeconds", _bounce(maxBackoffSeconds=-1)),
    "bounce_backoff_long": Bad("spec.limits.bounce.maxBackoffSeconds", _bounce(maxBackoffSeconds=86_401)),
    "too_many_windows": Bad(
        "spec.windows", _with(windows=[{"schedule": f"{minute} 2 * * *", "duration": "30s"} for minute in range(33)])
    ),
    "no_schedule": Bad("spec.windows[0].schedule", _with(windows=[{"duration": "4h"}])),
    "no_duration": Bad("spec.windows[0].duration", _with(windows=[{"schedule": "0 2 * * *"}])),
    **{
        f"schedule_{name}": Bad("spec.windows[0].schedule", _window(schedule=text))
        for name, text in {
            "empty": "",
            "words": "every night",
            "four_fields": "0 2 * *",
            "six_fields": "0 0 2 * * *",
            "name": "@daily",
            "zone": "TZ=UTC 0 2 * * *",
            "signs": "0 2 * * ?",
            "too_long": f"{'0,' * 150}0 2 * * *",
        }.items()
    },
    **{
        f"duration_{name}": Bad("spec.windows[0].duration", _window(duration=text))
        for name, text in {
            "empty": "",
            "zero": "0h",
            "negative": "-4h",
            "number": "4",
            "days": "1d",
            "fraction": "1.5h",
            "order": "30m1h",
            "words": "4 hours",
            "newline": "4h\n",
            "month": "745h",
            "huge": "9999999h",
        }.items()
    },
    "zone_empty": Bad("spec.windows[0].timeZone", _window(timeZone="")),
    "zone_offset": Bad("spec.windows[0].timeZone", _window(timeZone="+01:00")),
    "zone_space": Bad("spec.windows[0].timeZone", _window(timeZone="New York")),
    "zone_path": Bad("spec.windows[0].timeZone", _window(timeZone="../UTC")),
    "reclaim_zero": Bad("spec.reclaim.deadlineSeconds", _reclaim(0)),
    "reclaim_long": Bad("spec.reclaim.deadlineSeconds", _reclaim(86_401)),
    "reclaim_empty": Bad("spec.reclaim.deadlineSeconds", _with(reclaim={})),
    "reclaim_windows": Bad("spec.windows", _reclaim() | {"windows": _window()["windows"]}),
    "reclaim_devices": Bad("spec.reclaim", _reclaim() | {"devices": [{"key": "gpu.example.com/health"}]}),
    "reclaim_version_labels": Bad("spec.reclaim", _reclaim() | {"versionLabels": ["driver"]}),
    "reclaim_grace": Bad("spec.eviction.gracePeriodSeconds", _reclaim(30, eviction={"gracePeriodSeconds": 31})),
    "unknown_in_spec": Bad("spec.window", _with(window=[])),
    "unknown_in_taint": Bad("spec.taints[0].effect", {"taints": [{"key": "sla", "effect": "NoExecute"}]}),
    "unknown_in_guard": Bad("spec.limits.guard.enabled", _guard(enabled=False)),
}

# What no rule of a schema can know. The operator refuses these in the status, `validate` before they are stored.
BAD_FOR_US: dict[str, Bad] = {
    "hour_of_the_day": Bad("spec.windows[0].schedule", _window(schedule="0 24 * * *")),
    "no_such_date": Bad("spec.windows[0].schedule", _window(schedule="0 2 30 2 *")),
    "no_such_zone": Bad("spec.windows[0].timeZone", _window(timeZone="Europe/Berlln")),
    "local_zone": Bad("spec.windows[0].timeZone", _window(timeZone="Local")),
}

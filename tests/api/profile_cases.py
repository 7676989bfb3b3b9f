"""Good and bad profiles: one table for the package here and, in tests/e2e, for the real API server."""

from collections.abc import Mapping
from typing import Any

from api.policy_cases import Bad, Json

AFFINITY = "spec.nodeAffinity"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TERMS = f"{AFFINITY}.{REQUIRED}.nodeSelectorTerms"
EXPRESSION = f"{TERMS}[0].matchExpressions[0]"
GT = {"key": "sla", "operator": "Gt", "value": "950"}


def profile(spec: Mapping[str, Any], name: str = "case", namespace: str = "default") -> Json:
    return {
        "apiVersion": "taintwarden.io/v1alpha1",
        "kind": "TolerationProfile",
        "metadata": {"name": name, "namespace": namespace},
        "spec": dict(spec),
    }


def _of(*tolerations: Any) -> Json:
    return {"tolerations": list(tolerations)}


def _value(operator: str, value: Any) -> Json:
    return _of({"key": "k", "operator": operator, "value": value})


def _term(**requirement: Any) -> Json:
    return {"matchExpressions": [{"key": "kubelet"} | requirement]}


def _required(**requirement: Any) -> Json:
    """A profile with a node affinity alone."""
    selector = {"nodeSelectorTerms": [_term(**requirement)]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}


def _preferred(weight: Any, **requirement: Any) -> Json:
    preference = {"weight": weight, "preference": _term(**requirement)}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preference]}}


def _selecting(**selector: Any) -> Json:
    return _of(GT) | {"podSelector": selector}


GOOD: dict[str, Json] = {
    "least": _of({"key": "sla"}),
    "every_field": _of(GT | {"effect": "NoExecute", "tolerationSeconds": 30, "violationGraceSeconds": 60}),
    "values": _of({"key": "a", "operator": "In", "values": ["b", "", "C.d"], "violationGraceSeconds": 5}),
    "most_values": _of({"key": "a", "operator": "NotIn", "values": list(map(str, range(32)))}),
    "exists_empty_values": _of({"key": "a", "operator": "Exists", "values": []}),
    "every_key": _of({"operator": "Exists"}),
    "exists_empty_value": _of({"key": "a", "operator": "Exists", "value": ""}),
    "equal_empty_value": _of({"key": "a", "operator": "Equal", "value": ""}),
    "equal": _of({"key": "example.com/pool", "value": "Gold_1.x-y"}),
    "longest_key": _of({"key": f"{'a' * 253}/{'b' * 63}", "operator": "Exists"}),
    "longest_text": _of({"key": "a", "value": "b" * 63}),
    "seconds_negative": _of(GT | {"tolerationSeconds": -1}),
    "seconds_huge": _of(GT | {"tolerationSeconds": 2**63 - 1}),
    "grace_zero": _of(GT | {"violationGraceSeconds": 0}),
    "seconds_of_no_schedule": _of(GT | {"effect": "NoSchedule", "tolerationSeconds": 30}),
    "one_key_often": _of(GT, GT | {"operator": "Lt"}, GT | {"effect": "NoExecute"}, GT | {"value": "951"}),
    "most": _of(*(GT | {"value": str(number)} for number in range(64))),
    "all_pods": _of(GT) | {"podSelector": {}},
    "all_pods_spelt_out": _selecting(matchLabels={}, matchExpressions=[]),
    "labels": _selecting(matchLabels={"example.com/a": "", "b": "C.d_e-f"}),
    "affinity_alone": _required(operator="SemverGt", values=["v1.31.99"]),
    "affinity_empty": _of(GT) | {"nodeAffinity": {}},
    "affinity_preferred": _preferred(100, operator="Exists"),
    "affinity_most_values": _required(operator="In", values=[str(number) for number in range(32)]),
    "affinity_integer": _required(operator="Lt", values=["-5"]),
    "affinity_not_in": _required(operator="NotIn", values=["", "a"]),
    "expression": _selecting(matchExpressions=[{"key": "app", "operator": "In", "values": ["a", ""]}]),
    **{
        f"integer_{name}": _value("Gt", text)
        for name, text in {
            "zero": "0",
            "negative": "-5",
            "most": str(2**63 - 1),
            "least": str(-(2**63)),
            "nineteen_digits": "1" * 19,
            "eighteen_digits": "-" + "9" * 18,
        }.items()
    },
    **{
        f"version_{name}": _value("SemverGt", text)
        for name, text in {
            "major": "1",
            "minor": "v1.28",
            "full": "1.2.3-rc.1+5",
            "leading_zeros": "01.002.0003",
            "white_space": " v1.2.3\t",
            "wide_space": "\u3000v1.2.3\u00a0",
            "no_patch": "1.2.-rc",
            "hyphens": "1.2.3---a",
            "largest": f"{2**64 - 1}.0.0-{2**64 - 1}",
        }.items()
    },
    **{
        f"natural_{name}": _value(operator, text)
        for operator, name, text in [
            ("VersionGt", "kernel", "5.15.0-1053-aws"),
            ("VersionLt", "build", "v1.31.2+k3s1"),
            ("VersionEq", "scheme", "containerd://1.7.13"),
            ("VersionGt", "named", "Ubuntu 22.04.5 LTS"),
            ("VersionGt", "tilde", "1.7.12-0ubuntu2~22.04.1"),
        ]
    },
}

BAD: dict[str, Bad] = {
    "no_tolerations": Bad("spec.tolerations", {}),
    "empty": Bad("spec.tolerations", _of()),
    "json_text": Bad("spec.tolerations", {"tolerations": '[{"key": "sla", "operator": "Exists"}]'}),
    "one_too_many": Bad("spec.tolerations", _of(*(GT | {"value": str(number)} for number in range(65)))),
    "three_hundred": Bad("spec.tolerations", _of(*(GT | {"value": str(number)} for number in range(300)))),
    "twice": Bad("spec.tolerations", _of(GT, {"key": "a"}, GT)),
    "twice_by_default": Bad(
        "spec.tolerations", _of({"key": "a", "value": "b"}, {"key": "a", "operator": "Equal", "value": "b"})
    ),
    "nothing": Bad("spec.tolerations[0].key", _of({})),
    "no_key": Bad("spec.tolerations[0].key", _of({"operator": "Gt", "value": "950"})),
    "key_empty": Bad("spec.tolerations[0].key", _of(GT | {"key": ""})),
    "key_space": Bad("spec.tolerations[0].key", _of(GT | {"key": "a b"})),
    "key_prefix": Bad("spec.tolerations[0].key", _of(GT | {"key": "example.com/*"})),
    "key_long": Bad("spec.tolerations[0].key", _of(GT | {"key": "a" * 318})),
    "operator_case": Bad("spec.tolerations[0].operator", _of(GT | {"operator": "gt"})),
    "operator_empty": Bad("spec.tolerations[0].operator", _of(GT | {"operator": ""})),
    "operator_sign": Bad("spec.tolerations[0].operator", _of(GT | {"operator": ">"})),
    "value_boolean": Bad("spec.tolerations[0].value", _of(GT | {"value": True})),
    "value_long": Bad("spec.tolerations[0].value", _value("SemverGt", "1.2.3-" + "a" * 256)),
    "effect": Bad("spec.tolerations[0].effect", _of(GT | {"effect": "Noexecute"})),
    "effect_empty": Bad("spec.tolerations[0].effect", _of(GT | {"effect": ""})),
    "seconds_boolean": Bad("spec.tolerations[0].tolerationSeconds", _of(GT | {"tolerationSeconds": True})),
    "grace_negative": Bad("spec.tolerations[0].violationGraceSeconds", _of(GT | {"violationGraceSeconds": -1})),
    "grace_of_exists": Bad(
        "spec.tolerations[0].violationGraceSeconds",
        _of({"key": "a", "operator": "Exists", "violationGraceSeconds": 1}),
    ),
    "grace_of_equal": Bad("spec.tolerations[0].violationGraceSeconds", _of({"key": "a", "violationGraceSeconds": 1})),
    "exists_value": Bad("spec.tolerations[0].value", _value("Exists", "a")),
    "equal_value": Bad("spec.tolerations[0].value", _value("Equal", "b c")),
    "equal_long": Bad("spec.tolerations[0].value", _value("Equal", "b" * 64)),
    "no_value": Bad("spec.tolerations[0].value", _of({"key": "a", "operator": "Gt"})),
    "no_values": Bad("spec.tolerations[0].values", _of({"key": "a", "operator": "In"})),
    "empty_values": Bad("spec.tolerations[0].values", _of({"key": "a", "operator": "NotIn", "values": []})),
    "value_beside_values": Bad(
        "spec.tolerations[0].value", _of({"key": "a", "operator": "In", "value": "b", "values": ["b"]})
    ),
    "values_of_gt": Bad(
        "spec.tolerations[0].values", _of({"key": "a", "operator": "Gt", "value": "5", "values": ["5"]})
    ),
    "no_taint_value": Bad("spec.tolerations[0].values[1]", _of({"key": "a", "operator": "In", "values": ["b", "-"]})),
    "too_many_values": Bad(
        "spec.tolerations[0].values", _of({"key": "a", "operator": "In", "values": list(map(str, range(33)))})
    ),
    "no_version": Bad("spec.tolerations[0].value", _of({"key": "a", "operator": "SemverEq"})),
    "second_one": Bad("spec.tolerations[1].value", _of(GT, GT | {"value": "x"})),
    **{
        f"Gt_{name}": Bad("spec.tolerations[0].value", _value("Gt", text))
        for name, text in {
            "empty": "",
            "word": "high",
            "leading_zero": "0950",
            "minus_zero": "-0",
            "plus": "+950",
            "space": " 950",
            "newline": "950\n",
            "point": "99.5",
            "exponent": "1e3",
            "underscore": "1_000",
            "other_digits": "\u0661\u0662",
            "beyond": str(2**63),
            "below": str(-(2**63) - 1),
            "far_beyond": "9" * 40,
        }.items()
    },
    **{
        f"VersionGt_{name}": Bad("spec.tolerations[0].value", _value("VersionGt", text))
        for name, text in {
            "empty": "",
            "word": "newest",
            "white_space": " 1.2",
            "line": "1.2\n",
            "hyphen": "-1",
            "other_digits": "1.\u0662",
        }.items()
    },
    **{
        f"{operator}_word": Bad("spec.tolerations[0].value", _value(operator, "high"))
        for operator in ("Lt", "VersionLt", "VersionEq", "SemverLt", "SemverEq")
    },
    "natural_absent": Bad("spec.tolerations[0].value", _of({"key": "a", "operator": "VersionEq"})),
    **{
        f"SemverGt_{name}": Bad("spec.tolerations[0].value", _value("SemverGt", text))
        for name, text in {
            "empty": "",
            "word": "newest",
            "upper_v": "V1.28",
            "four_parts": "1.2.3.4",
            "short_prerelease": "1.28-rc.1",
            "short_build": "1+5",
            "scheme": "containerd://2.1.4",
            "range": ">=1.28",
            "negative": "-1.2.3",
            "point_at_the_end": "1.2.",
            "prerelease_zero": "1.2.3-01",
            "prerelease_empty": "1.2.3-",
            "prerelease_part_empty": "1.2.3-a..b",
            "build_empty": "1.2.3+",
            "two_builds": "1.2.3+a+b",
            "underscore": "1.2.3-a_b",
            "other_digits": "\u0661.2.3",
            "huge": "9" * 40,
        }.items()
    },
    "selector_label_key": Bad("spec.podSelector.matchLabels", _selecting(matchLabels={"a!": "b"})),
    "selector_label_value": Bad("spec.podSelector.matchLabels[a]", _selecting(matchLabels={"a": "b c"})),
    "selector_operator": Bad(
        "spec.podSelector.matchExpressions[0].operator",
        _selecting(matchExpressions=[{"key": "app", "operator": "Gt", "values": ["1"]}]),
    ),
    "selector_in_nothing": Bad(
        "spec.podSelector.matchExpressions[0].values", _selecting(matchExpressions=[{"key": "app", "operator": "In"}])
    ),
    "affinity_no_terms": Bad(
        f"{AFFINITY}.{REQUIRED}.nodeSelectorTerms", {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}
    ),
    "affinity_many_terms": Bad(
        f"{AFFINITY}.{REQUIRED}.nodeSelectorTerms",
        {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [_term(operator="Exists")] * 17}}},
    ),
    "affinity_empty_term": Bad(
        f"{TERMS}[0].matchExpressions",
        {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": []}]}}},
    ),
    "affinity_operator": Bad(f"{EXPRESSION}.operator", _required(operator="SemverGe", values=["1.0.0"])),
    "affinity_key": Bad(f"{EXPRESSION}.key", _required(key="a b", operator="Exists")),
    "affinity_no_values": Bad(f"{EXPRESSION}.values", _required(operator="SemverGt")),
    "affinity_two_versions": Bad(f"{EXPRESSION}.values", _required(operator="SemverGt", values=["1.0.0", "2.0.0"])),
    "affinity_no_version": Bad(f"{EXPRESSION}.values", _required(operator="SemverEq", values=["newest"])),
    "affinity_no_integer": Bad(f"{EXPRESSION}.values", _required(operator="Gt", values=["0950"])),
    "affinity_no_label_value": Bad(f"{EXPRESSION}.values", _required(operator="In", values=["a", "b c"])),
    "affinity_exists_value": Bad(f"{EXPRESSION}.values", _required(operator="Exists", values=["a"])),
    "affinity_weight": Bad(f"{AFFINITY}.{PREFERRED}[0].weight", _preferred(101, operator="Exists")),
    "unknown_in_spec": Bad("spec.selector", _of(GT) | {"selector": {}}),
    "namespace_selector": Bad("spec.namespaceSelector", _of(GT) | {"namespaceSelector": {}}),
    "unknown_in_toleration": Bad("spec.tolerations[0].seconds", _of(GT | {"seconds": 30})),
}

# What no rule of a schema tells without an expression of a thousand characters.
BAD_FOR_US: dict[str, Bad] = {
    "affinity_beyond_64_bits": Bad(f"{EXPRESSION}.values", _required(operator="Gt", values=[str(2**63)])),
    "version_beyond_64_bits": Bad("spec.tolerations[0].value", _value("SemverGt", f"1.{2**64}.3")),
    "prerelease_beyond_64_bits": Bad("spec.tolerations[0].value", _value("SemverGt", f"1.2.3-{2**64}")),
}

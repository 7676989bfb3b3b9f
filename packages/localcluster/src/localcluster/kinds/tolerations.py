"""The syntax of taints and tolerations, as the API server validates it.

Rules and wording: `ValidateTolerations` and `validateNodeTaints` of `kubernetes/pkg/apis/core/validation`.
Forbidden here: the operators of this project's own engine.
"""

import re
from collections.abc import Sequence
from typing import Any

from localcluster.errors import Cause, duplicate, required, unsupported, wrong
from localcluster.kinds.names import check_key, value_problems

Object = dict[str, Any]

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_INTEGER = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
_COMPARISONS = ("Gt", "Lt")


def check_tolerations(tolerations: Sequence[Object], path: str, *, comparison_operators: bool) -> list[Cause]:
    """Return all violations in a pod's tolerations. `Gt` and `Lt` are refused unless their feature gate is on."""
    causes = []
    for index, toleration in enumerate(tolerations):
        causes += _check_toleration(toleration, f"{path}[{index}]", comparison_operators=comparison_operators)
    return causes


def _check_toleration(toleration: Object, path: str, *, comparison_operators: bool) -> list[Cause]:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    effect = toleration.get("effect", "")
    causes = check_key(key, f"{path}.key") if key else []
    if not key and operator != "Exists":
        text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        causes.append(wrong(f"{path}.operator", operator, text))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        causes.append(wrong(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
    causes += _check_operator(operator, toleration.get("value", ""), path, comparison_operators)
    if effect:
        causes += _check_effect(effect, f"{path}.effect")
    return causes


def _check_operator(operator: str, value: str, path: str, comparison_operators: bool) -> list[Cause]:  # noqa: FBT001
    field = f"{path}.operator"
    if operator in {"", "Equal"}:
        problems = value_problems(value)
        return [wrong(field, value, ";".join(problems))] if problems else []
    if operator == "Exists":
        return [wrong(field, value, "value must be empty when `operator` is 'Exists'")] if value else []
    if operator not in _COMPARISONS:
        return [unsupported(field, operator, ("Equal", "Exists"))]
    if not comparison_operators:
        return [unsupported(field, operator, ("Equal", "Exists", "Lt", "Gt"))]
    return _check_integer(value, f"{path}.value")


def _check_integer(value: str, field: str) -> list[Cause]:
    causes = []
    canonical = _INTEGER.fullmatch(value)
    if not canonical:
        causes.append(wrong(field, value, "must be a valid decimal integer in canonical form"))
    quoted = f'strconv.ParseInt: parsing "{value}"'
    if not re.fullmatch(r"[+-]?[0-9]+", value, re.ASCII):
        causes.append(wrong(field, value, f"{quoted}: invalid syntax"))
    elif not -(2**63) <= int(value) < 2**63:
        causes.append(wrong(field, value, f"{quoted}: value out of range"))
    return causes


def _check_effect(effect: str, field: str) -> list[Cause]:
    return [] if effect in _EFFECTS else [unsupported(field, effect, _EFFECTS)]


def check_taints(taints: Sequence[Object], path: str) -> list[Cause]:
    """Return all violations in a node's taints."""
    causes: list[Cause] = []
    seen = set()
    for index, taint in enumerate(taints):
        at = f"{path}[{index}]"
        key, effect = taint.get("key", ""), taint.get("effect", "")
        causes += check_key(key, f"{at}.key")
        problems = value_problems(taint.get("value", ""))
        causes += [wrong(f"{at}.value", taint.get("value", ""), ";".join(problems))] if problems else []
        causes += _check_effect(effect, f"{at}.effect") if effect else [required(f"{at}.effect")]
        if (key, effect) in seen:
            causes.append(duplicate(at, _go_syntax(taint), "taints must be unique by key and effect pair"))
        seen.add((key, effect))
    return causes


def _go_syntax(taint: Object) -> str:
    pairs = (("Key", "key"), ("Value", "value"), ("Effect", "effect"))
    return "{" + ", ".join(f'{name}:"{taint.get(field, "")}"' for name, field in pairs) + ", TimeAdded:<nil>}"


_DEFAULTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def add_defaults(spec: Object) -> None:
    """Add the tolerations of the admission plugin DefaultTolerationSeconds: 300 s for not-ready and unreachable."""
    tolerations = spec.get("tolerations") or []
    for key in _DEFAULTS:
        covered = any(
            one.get("key", "") in {"", key} and one.get("effect", "") in {"", "NoExecute"} for one in tolerations
        )
        if not covered:
            default = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            tolerations = [*tolerations, default]
    if tolerations:
        spec["tolerations"] = tolerations

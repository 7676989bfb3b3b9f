"""A second opinion on deadlines: slow, exact, remembering everything, sharing no code with the engine.

For one taint key with NoExecute; times in seconds since the start.
"""

import re
from dataclasses import dataclass, field
from typing import Any

COMPARISONS = {"Gt": lambda taint, wanted: taint > wanted, "Lt": lambda taint, wanted: taint < wanted}

Json = dict[str, Any]


def integer(text: str) -> int | None:
    return int(text) if re.fullmatch("0|-?[1-9][0-9]*", text) else None


def holds(toleration: Json, key: str, value: str) -> bool | None:
    """None: a comparison that cannot be made."""
    if toleration["key"] != key:
        return False
    operator = toleration["operator"]
    if operator in COMPARISONS:
        number = integer(value)
        return None if number is None else COMPARISONS[operator](number, int(toleration["value"]))
    return operator == "Exists" or toleration["value"] == value


@dataclass
class Presence:
    """One taint from being put to being taken away: (when, value), all of them."""

    key: str
    values: list[tuple[float, str]] = field(default_factory=list)

    @property
    def added_at(self) -> float:
        return self.values[0][0]


def due(presence: Presence, tolerations: list[Json], bound_at: float, timing: Json) -> float | None:
    """When a pod must leave because of this taint, by the sentences of the semantics."""
    after_violation = timing["tolerationSecondsMode"] == "AfterViolation"
    hold = timing["onInvalidValue"] == "Hold"

    def judged(value: str) -> tuple[str, Json | None]:
        invalid = False
        for toleration in tolerations:
            answer = holds(toleration, presence.key, value)
            if answer:
                return "tolerated", toleration
            invalid |= answer is None
        return ("invalid" if invalid else "violated"), None

    steps = [(at, *judged(value)) for at, value in presence.values]
    if hold:  # an invalid value counts as what was there before it; before all, as tolerated for ever
        known: list[tuple[float, str, Json | None]] = []
        for at, kind, used in steps:
            if kind == "invalid":
                known.append((at, known[-1][1], known[-1][2]) if known else (at, "tolerated", None))
            else:
                known.append((at, kind, used))
        steps = known
    _, kind, used = steps[-1]
    if kind == "tolerated":
        if used is None or "tolerationSeconds" not in used or (after_violation and used["operator"] in COMPARISONS):
            return None
        return max(presence.added_at, bound_at) + max(0, used["tolerationSeconds"])
    since = next(
        (steps[i + 1][0] for i in range(len(steps) - 2, -1, -1) if steps[i][1] == "tolerated"), presence.added_at
    )
    comparing = [t for t in tolerations if t["key"] == presence.key and t["operator"] in COMPARISONS]
    grace = timing["violationGraceSeconds"]
    if comparing:
        first = comparing[0]
        own = first.get("violationGraceSeconds", first.get("tolerationSeconds") if after_violation else None)
        grace = grace if own is None else max(0, own)
    return max(since, bound_at) + max(grace, timing["stabilizationWindowSeconds"])

"""When a pod has to leave, by the documents: the judge's own reading of them, for the forms that the world uses."""

import json
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

ANNOTATION = "taintwarden.io/tolerations"
FOREVER = float("inf")


@dataclass(frozen=True, slots=True)
class Subject:
    """Whose evictions are judged."""

    user: str
    lease: str
    """Namespace and name of the Lease that its leader holds."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a taint demands of a pod: to leave so many seconds after `of`."""

    tolerated: bool
    seconds: float
    """Tolerated: from the taint's addition. Not tolerated: from the moment since when it is not."""


def demand(pod: Json, taint: Json, policy_grace: float) -> Demand:
    """What a taint that a policy selects demands of a pod."""
    written = json.loads((pod["metadata"].get("annotations") or {}).get(ANNOTATION, "[]"))
    extended = [one for one in written if one.get("key") == taint["key"]]
    tolerations = extended or pod["spec"].get("tolerations") or []
    fitting = [one for one in tolerations if _names(one, taint)]
    for one in fitting:
        if _holds(one, taint.get("value", "")):
            seconds = one.get("tolerationSeconds")
            limited = seconds is not None and one.get("operator") not in ("Gt", "Lt")
            return Demand(tolerated=True, seconds=float(max(seconds, 0)) if limited else FOREVER)
    compared = [one for one in fitting if one.get("operator") in ("Gt", "Lt")]
    for one in compared[:1]:
        grace = one.get("violationGraceSeconds", one.get("tolerationSeconds"))
        return Demand(tolerated=False, seconds=float(policy_grace if grace is None else grace))
    return Demand(tolerated=False, seconds=float(policy_grace))


def _names(toleration: Json, taint: Json) -> bool:
    same_effect = toleration.get("effect", "") in ("", taint["effect"])
    return same_effect and toleration.get("key", "") in ("", taint["key"])


def _holds(toleration: Json, value: str) -> bool:
    operator, wanted = toleration.get("operator") or "Equal", toleration.get("value", "")
    if operator == "Exists":
        return True
    if operator == "Equal":
        return value == wanted
    return int(value) > int(wanted) if operator == "Gt" else int(value) < int(wanted)

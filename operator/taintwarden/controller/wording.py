"""The sentences people read in Events, logs, status and ``explain``: which taint, why, until when."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache

from msgspec.structs import replace

from taintwarden.engine.evaluate import Kind, TaintVerdict
from taintwarden.engine.matching.tolerations import Match, match
from taintwarden.engine.model import Gates, Taint, Toleration, Tolerations

END_OF_TIME = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
"""Stands for everything later: no calendar goes further, and a huge ``tolerationSeconds`` means "very late"."""


def at(moment: float) -> str:
    """A time as RFC 3339 in UTC, to the second."""
    known = END_OF_TIME if moment >= END_OF_TIME.timestamp() else datetime.fromtimestamp(math.floor(moment), UTC)
    return known.strftime("%Y-%m-%dT%H:%M:%SZ")


@lru_cache(maxsize=4_096)
def why(tolerations: Tolerations, verdict: TaintVerdict, gates: Gates | None = None) -> str:
    """Why a verdict is what it is, in one clause."""
    taint = verdict.taint
    judged = f", judged by its last valid value {verdict.judged_value}" if verdict.judged_value is not None else ""
    match verdict.kind:
        case Kind.HELD:
            return f"taint {taint} cannot be compared and never could, so it evicts nobody"
        case Kind.TOLERATED:
            return f"taint {taint}{judged} is tolerated by {verdict.toleration}"
        case Kind.TOLERATED_FOR:
            return f"taint {taint}{judged} is tolerated by {verdict.toleration} only"
        case Kind.VIOLATED:
            seen = taint if verdict.judged_value is None else Taint(taint.key, verdict.judged_value, taint.effect)
            reasons = refusals(tolerations.relevant_to(taint.key), seen, gates or Gates())
            # Without its seconds, which are told as the grace: "for 30s does not hold" reads as if it held again then.
            told = "; ".join(
                f"{replace(toleration, toleration_seconds=None)} {answer}" for toleration, answer in reasons
            )
            grace = f", {verdict.seconds} s of grace" if verdict.seconds else ""
            return f"taint {taint}{judged} is not tolerated ({told or 'no toleration for it'}){grace}"


def refusals(tolerations: Sequence[Toleration], taint: Taint, gates: Gates) -> list[tuple[Toleration, Match]]:
    """The tolerations that speak of this taint and do not hold, each with the reason."""
    answers = [(toleration, match(toleration, taint, gates)) for toleration in tolerations]
    return [
        (toleration, answer)
        for toleration, answer in answers
        if answer not in (Match.OTHER_KEY, Match.OTHER_EFFECT, Match.HOLDS)
    ]

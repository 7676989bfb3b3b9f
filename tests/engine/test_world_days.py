"""Hours in which every name changes: what is gone is held nowhere but where a time or a number ends it.

``python -m simulated.world days 8 1`` plays eight days, and counts what is held.
"""

from functools import cache

from simulated.world import days

ENDS = (
    "Limiter > Rates",  # full buckets are dropped when there are many
    "Limiter > Bounces",  # rounds are dropped when they are over
    "Verdicts > Evaluator",  # what is remembered is dropped when there is much
    "Verdicts > Profiles > WeakValueDictionary",
    "Verdicts > defaultdict",  # goes with the classes of pods, which this world holds
    "Decoder > Interner > WeakValueDictionary",
    "PartedRates > tuple > EvictionRequest",  # the last one
)


@cache
def played() -> days.Held:
    return days.play(hours=3, seed=1, every_seconds=30.0)


def test_what_is_gone_is_not_held():
    assert [one for one in played().of_the_past if not any(room in one for room in ENDS)] == []


def test_no_rule_is_broken():
    assert played().breaches == []


def test_pods_are_evicted_meanwhile():
    assert played().hours[-1].evictions > 100

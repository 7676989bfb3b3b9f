"""Counts of what comes and goes."""

from taintwarden.engine.tally import Tally


def test_what_is_left_is_counted():
    tally = Tally("aab")
    tally.take("a")
    assert (tally["a"], tally["b"], tally["c"]) == (1, 1, 0)


def test_what_none_is_left_of_is_forgotten():
    tally = Tally("aab")
    tally.take("a", "b", "a")
    assert list(tally) == []

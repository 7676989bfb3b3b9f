"""Evictions that were made, by slot, and for whom they count."""

from taintwarden.engine.guard.spent import FOR_ALL, Peak, Spent

OWN = ("shop", "n1")


def spent(*noted: tuple[float, tuple[str, str]]) -> Spent:
    found = Spent()
    for ends_at, share in noted:
        found.note(ends_at, share)
    return found


def test_a_namespace_counts_its_own_and_those_of_all():
    assert list(spent((10.0, FOR_ALL), (10.0, OWN)).of("shop")) == [(10.0, 2)]


def test_own_evictions_do_not_count_for_others():
    found = spent((10.0, FOR_ALL), (10.0, OWN))
    assert list(found.of()) == [(10.0, 1)]
    assert list(found.of("bank")) == [(10.0, 1)]


def test_own_evictions_from_one_node_can_be_left_out():
    assert list(spent((10.0, OWN), (10.0, ("shop", "n2"))).of("shop", besides="n2")) == [(10.0, 1)]


def test_an_eviction_is_taken_back_from_its_slot():
    found = spent((10.0, FOR_ALL), (20.0, FOR_ALL), (20.0, FOR_ALL))
    found.take_back(20.0, FOR_ALL)
    assert list(found.of()) == [(10.0, 1), (20.0, 1)]


def test_an_eviction_of_a_slot_that_is_over_is_not_taken_from_another():
    found = spent((20.0, FOR_ALL))
    found.take_back(10.0, FOR_ALL)
    assert list(found.of()) == [(20.0, 1)]


def test_nothing_is_taken_back_from_the_share_of_another():
    found = spent((10.0, FOR_ALL))
    found.take_back(10.0, OWN)
    assert list(found.of("shop")) == [(10.0, 1)]


def test_a_peak_is_the_greatest_number_of_the_window():
    peak = Peak()
    for ends_at, number in [(30.0, 60), (30.0, 50), (60.0, 20), (90.0, 40)]:
        peak.note(ends_at, number)
    assert peak.greatest() == 60
    peak.let_time_pass(630.0, 600.0)
    assert peak.greatest() == 40
    peak.let_time_pass(690.0, 600.0)
    assert peak.greatest() == 0

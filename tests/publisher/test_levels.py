"""Values become levels, quantized down or rounded, which do not change while a value only jitters."""

import math
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from publisher.scene import STEPS, spec
from taintwarden_publisher.levels import kept_interval, level, level_interval, next_level

VALUES = st.floats(min_value=0, max_value=2000)
HYSTERESES = st.floats(min_value=0.5, max_value=9)
SPECS = st.builds(
    lambda steps, number, hysteresis: (
        spec(steps=list(steps), hysteresis=hysteresis)
        if steps
        else spec(steps=None, round=number, hysteresis=hysteresis)
    ),
    st.just(()) | st.just(STEPS),
    st.integers(20, 100),
    HYSTERESES,
)


@pytest.mark.parametrize(
    ("value", "wanted"), [(0, 0), (899.9, 0), (900, 900), (939.6, 900), (940, 940), (979.99, 960), (5000, 980)]
)
def test_a_value_becomes_the_largest_step_that_is_not_above_it(value, wanted):
    assert level(spec(), value) == wanted


@pytest.mark.parametrize(("value", "wanted"), [(0, 0), (4.9, 0), (5, 10), (939.6, 940), (945, 950), (944.9, 940)])
def test_a_value_becomes_the_nearest_multiple(value, wanted):
    assert level(spec(steps=None, round=10), value) == wanted


@given(SPECS, VALUES)
def test_a_value_is_among_those_of_its_level(of, value):
    low, high = level_interval(of, level(of, value))
    assert low <= value < high


@pytest.mark.parametrize(
    ("of", "number", "values"),
    [
        (spec(), 960, (960, 980)),
        (spec(), 980, (980, math.inf)),
        (spec(steps=None, round=10), 940, (935, 945)),
    ],
)
def test_a_level_has_the_values_to_the_next_one(of, number, values):
    assert level_interval(of, number) == values


def test_a_node_without_taint_gets_the_level_of_its_value():
    assert next_level(spec(steps=None, round=10, hysteresis=2), None, 939.6) == 940


def test_a_number_that_is_no_level_has_no_values():
    assert level_interval(spec(), 941) is None
    assert level_interval(spec(steps=None, round=10), 941) is None


def test_a_taint_with_another_number_gets_the_level_of_the_value():
    assert next_level(spec(hysteresis=2), 941, 939) == 900


@pytest.mark.parametrize(("value", "wanted"), [(938, 940), (937.9, 900), (961.9, 940), (962, 960), (979, 960)])
def test_a_taint_keeps_its_number_within_the_hysteresis(value, wanted):
    assert next_level(spec(hysteresis=2), 940, value) == wanted


@given(SPECS, st.floats(min_value=50, max_value=1500), st.lists(st.floats(-0.999, 0.999), min_size=2, max_size=40))
def test_a_value_that_jitters_by_less_than_the_hysteresis_changes_at_most_once(of, middle, jitter):
    values = [middle + one * of.hysteresis for one in jitter]
    numbers = [level(of, values[0])]
    for value in values[1:]:
        numbers.append(next_level(of, numbers[-1], value))
    assert sum(before != after for before, after in pairwise(numbers)) <= 1


@given(SPECS, VALUES, VALUES)
def test_a_value_that_stays_ends_at_a_number_that_keeps_it(of, first, value):
    number = next_level(of, level(of, first), value)
    low, high = kept_interval(of, number)
    assert low <= value < high
    assert next_level(of, number, value) == number


@given(SPECS, VALUES, VALUES)
def test_a_large_step_ends_at_the_level_of_the_value(of, first, value):
    low, high = level_interval(of, level(of, first))
    assume(value < low - of.hysteresis or value >= high + of.hysteresis)
    assert next_level(of, level(of, first), value) == level(of, value)

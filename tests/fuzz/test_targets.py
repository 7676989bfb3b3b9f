"""The targets stand their seeds and what is near them; ``make fuzz`` searches for more, with coverage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.mutation import mutate
from fuzz.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_raises_nothing_for_its_seeds(name):
    for seed in TARGETS[name].seeds:
        TARGETS[name].run(seed)


@pytest.mark.parametrize("name", TARGETS)
@given(data=st.data())
def test_a_target_raises_nothing_for_mutations_of_its_seeds(name, data):
    target = TARGETS[name]
    seed, number = data.draw(st.sampled_from(target.seeds)), data.draw(st.integers(0, 2**32))
    target.run(mutate(seed, 2**16, number, lambda found, _: found[: number % (len(found) + 1)]))

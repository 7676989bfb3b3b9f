"""Which of some objects count: as a model says that looks at all of them at every change."""

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from taintwarden.controller.stores.oldest import Oldest

LIMIT = 10
KEYS = st.sampled_from("abcdefgh")
SIZES = st.integers(1, 5)


class Changes(RuleBasedStateMachine):
    """Objects come, go and have other sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: dict[str, int] = {}
        self.ages: dict[str, str] = {}
        self.oldest = Oldest(LIMIT, lambda key: self.sizes[key])
        self.counting: set[str] = set()

    @rule(key=KEYS, size=SIZES, created=st.sampled_from("123"))
    def put(self, key: str, size: int, created: str) -> None:
        is_new = key not in self.sizes
        self.sizes[key] = size
        if is_new:
            self.ages[key] = created
            self.oldest.add((created, key))
        else:
            self.oldest.changed(key)
        self.settle(key)

    @rule(key=KEYS)
    def remove(self, key: str) -> None:
        if self.sizes.pop(key, None) is not None:
            self.oldest.remove((self.ages.pop(key), key))
            self.settle(key)

    def settle(self, touched: str) -> None:
        """Those that it yields, and the one that was changed, are all that may be other than before."""
        told = {touched, *self.oldest.settle()}
        counting = {key for key in self.sizes if key in self.oldest}
        assert counting ^ self.counting <= told
        self.counting = counting

    @invariant()
    def the_oldest_count(self) -> None:
        counting, used = [], 0
        order = sorted(self.sizes, key=lambda key: (self.ages[key], key))
        for key in order:
            used += self.sizes[key]
            if used > LIMIT:
                break
            counting.append(key)
        assert self.counting == set(counting)
        assert self.oldest.first_waiting == next(iter(order[len(counting) :]), None)
        assert list(self.oldest.youngest_first()) == order[: len(counting) - 1 : -1] if counting else True


TestChanges = Changes.TestCase
TestChanges.settings = settings(max_examples=20, stateful_step_count=30)


@given(st.lists(SIZES, max_size=30))
def test_no_more_are_looked_at_than_count_and_one(sizes):
    asked: list[str] = []

    def size_of(key: str) -> int:
        asked.append(key)
        return sizes[int(key)]

    oldest = Oldest(LIMIT, size_of)
    for number in range(len(sizes)):
        oldest.add((f"{number:03}", str(number)))
    counting = list(oldest.settle())
    assert len(asked) <= len(counting) + 1

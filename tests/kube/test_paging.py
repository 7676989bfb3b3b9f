"""Number of objects of a page of a list: bounded for all sizes of objects."""

from hypothesis import given
from hypothesis import strategies as st

from taintwarden.kube.http.messages import MAX_ANSWER_BYTES
from taintwarden.kube.watch.paging import GROWTH, LARGEST_LIMIT, MAX_OBJECT_BYTES, PAGE_BYTES, PageLimit

LIMITS = st.integers(1, LARGEST_LIMIT)


@given(LIMITS, st.integers(0, 2**31))
def test_a_page_is_bounded_in_bytes_if_its_objects_are_as_large_as_the_last(limit, size):
    following = PageLimit(limit)
    following.adapt(size)
    assert 1 <= following.objects <= min(LARGEST_LIMIT, limit * GROWTH)
    assert following.objects == 1 or following.objects * size / limit <= PAGE_BYTES


@given(LIMITS)
def test_a_page_that_is_too_long_is_shorter_the_next_time(limit):
    following = PageLimit(limit)
    assert following.shrink() is (limit > 1)
    assert following.objects < limit or limit == 1


def test_an_answer_may_contain_the_largest_object_of_etcd():
    """Each of its bytes may be six in JSON."""
    assert MAX_ANSWER_BYTES >= 6 * 3 * 2**19


def test_the_smallest_page_has_one_object_which_may_be_larger_than_a_page():
    assert (PageLimit(2).max_bytes, PageLimit(1).max_bytes) == (MAX_ANSWER_BYTES, MAX_OBJECT_BYTES)

"""The names of the labels that mirror a taint."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taintwarden.fields.names import KEY, MAX_PLACED_PREFIX_LENGTH, MAX_PREFIX_LENGTH
from taintwarden_placement.node_labels.names import (
    Domain,
    LabelSubject,
    is_placement_label,
    label_version_label,
    labels_about,
    subjects_of,
    taint_labels,
    value_label,
)

NAMES = st.text("aZ0-_.", max_size=61).map("a{}b".format)
PARTS = st.text("a0-", max_size=8).map("a{}b".format)
PREFIXES = st.lists(PARTS | st.sampled_from(Domain), min_size=1, max_size=8).map(".".join)
KEYS = NAMES | st.builds("{}/{}".format, PREFIXES.filter(lambda prefix: len(prefix) <= 223), NAMES)
"""Keys, some of which look like placement labels."""


def all_labels(key):
    found = taint_labels(key)
    return {None} if found is None else {found.value, found.version, found.low_version, found.effect}


def test_a_key_without_prefix_has_labels_in_each_domain():
    assert value_label("sla") == "value.taintwarden.io/sla"
    assert taint_labels("sla").version == "version.taintwarden.io/sla"
    assert taint_labels("sla").effect == "effect.taintwarden.io/sla"


def test_a_key_with_a_prefix_has_it_before_the_domain():
    assert value_label("example.com/sla") == "example.com.value.taintwarden.io/sla"
    assert taint_labels("example.com/sla").version == "example.com.version.taintwarden.io/sla"


def test_the_longest_prefix_fits_with_the_longest_domain():
    assert MAX_PLACED_PREFIX_LENGTH + 1 + max(map(len, Domain)) == MAX_PREFIX_LENGTH


def test_a_prefix_that_does_not_fit_has_no_labels():
    longest = "a" * 223
    assert len(taint_labels(f"{longest}/k").low_version.partition("/")[0]) == 253
    assert all_labels(f"{longest}a/k") == {None}


@given(KEYS)
def test_labels_are_valid_keys_and_recognized_as_placement_labels(key):
    for label in all_labels(key):
        assert re.fullmatch(KEY, label)
        assert label.find("/") <= 253
        assert is_placement_label(label)


@given(KEYS, KEYS)
def test_two_keys_never_share_a_label(one, other):
    labels = all_labels(one) & all_labels(other)
    assert bool(labels) == (one == other)


def test_a_key_that_is_a_placement_label_gets_another():
    assert value_label("value.taintwarden.io/sla") == "value.taintwarden.io.value.taintwarden.io/sla"


@pytest.mark.parametrize(
    "label", ["sla", "taintwarden.io/sla", "value.taintwarden.io", "evalue.taintwarden.io/sla", "value.example.com/sla"]
)
def test_other_labels_are_no_placement_labels(label):
    assert not is_placement_label(label)


@given(KEYS)
def test_each_label_leads_to_its_key(key):
    assert all_labels(key) <= {*labels_about(key)}
    assert subjects_of(labels_about(key)) == [LabelSubject(key)]
    assert subjects_of([label_version_label(key)]) == [LabelSubject(key, of_label=True)]


def test_a_key_that_is_too_long_has_no_labels():
    assert labels_about(f"{'a' * 224}/k") == ()

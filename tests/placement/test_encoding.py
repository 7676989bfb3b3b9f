"""Versions are encoded as integers of the same order."""

import json
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from semver import Version

from taintwarden.engine.versions import parse_version
from taintwarden_placement.node_labels import encode_version
from taintwarden_placement.node_labels.encoding import is_misread

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "semver.json").read_text())


def encoded(text):
    return encode_version(parse_version(text))


@pytest.mark.parametrize(
    ("version", "number"),
    [
        ("0.0.0-0", 0),
        ("0.0.0", 1),
        ("1.28.3", 1_0028_00000003_1),
        ("v1.28.3-gke.100", 1_0028_00000003_0),
        ("1.28.3+k3s1", 1_0028_00000003_1),
        ("20", 20_0000_00000000_1),
        ("1.27.20240131", 1_0027_20240131_1),
        ("99999.9999.99999999", 99999_9999_99999999_1),
    ],
)
def test_a_version_is_encoded_as_a_readable_number(version, number):
    assert encoded(version) == number


@pytest.mark.parametrize("version", ["100000.0.0", "1.10000.0", "1.0.100000000", "18446744073709551615.0.0"])
def test_too_many_digits_are_refused(version):
    assert encoded(version) is None


SUPPORTED = st.builds(
    Version,
    st.integers(0, 99_999),
    st.integers(0, 9_999),
    st.integers(0, 99_999_999),
    st.none() | st.sampled_from(["0", "1", "2", "alpha", "rc.1", "rc.2"]),
)
NEAR = st.builds(Version, st.integers(0, 1), st.integers(0, 1), st.integers(0, 1), st.sampled_from([None, "0", "rc.1"]))


def assert_ordered(one, other):
    """Assert that the encoding keeps order and equality, except between two pre-releases of one version."""
    a, b = encode_version(one), encode_version(other)
    siblings = one.prerelease and other.prerelease and one.finalize_version() == other.finalize_version()
    assert (a == b) == (one == other or bool(siblings))
    if not siblings:
        assert (a < b) == (one < other)


@given(SUPPORTED | NEAR, SUPPORTED | NEAR)
def test_numbers_sort_as_versions(one, other):
    assert_ordered(one, other)


@given(SUPPORTED)
def test_numbers_are_int64(version):
    assert 0 <= encode_version(version) < 2**63


def test_all_pairs_of_the_vectors_sort_as_in_go():
    """Every comparison that Go made, and every pair of the versions that Go accepted."""
    texts = {text for pair in VECTORS["comparisons"] for text in (pair["a"], pair["b"]) if pair["valid"]}
    texts |= {vector["input"] for vector in VECTORS["vectors"] if vector["ok"]}
    versions = [parse_version(text) for text in sorted(texts)]
    supported = [version for version in versions if encode_version(version) is not None]
    for one, other in product(supported, repeat=2):
        assert_ordered(one, other)
    assert (len(supported), len(versions)) == (109, 113), "the rest is refused: nothing is encoded wrongly"


@pytest.mark.parametrize("value", ["0950", "00", "007", "0" * 50 + "1", "09223372036854775807"])
def test_leading_zeros_would_be_misread(value):
    assert is_misread(value)


@pytest.mark.parametrize("value", ["", "0", "950", "high", "99.5", "9223372036854775808", "09223372036854775808"])
def test_other_values_read_the_same_on_both_sides(value):
    assert not is_misread(value)

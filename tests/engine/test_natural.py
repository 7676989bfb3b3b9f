"""The natural order of versions: what users expect of the values that nodes carry."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from taintwarden.engine.model import Taint, Toleration
from taintwarden.engine.natural import MAX_LENGTH, PRE_RELEASES, explain_natural, parse_natural
from taintwarden.engine.operators import Match, match
from taintwarden.engine.versions import MAX_SHOWN, explain_text, explain_text_order, parse_version, semver_sort_key
from taintwarden_placement.node_labels.encoding import encode_natural

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "natural.json").read_text())
GROUPS = {group["name"]: group["ascending"] for group in VECTORS["groups"]}
ASCENDING = {
    "kinds of a difference": ["1.2~1", "1.2-rc1", "1.2", "1.2-gke.1", "1.2k", "1.2.1"],
    "pre-releases": ["1~9", *(f"1-{word}.3" for word in PRE_RELEASES), "1"],
    "a pre-release of a build": ["v1.31.2-rc1+k3s1", "v1.31.2+k3s1", "v1.31.2+k3s2", "v1.31.2+k3s10"],
    "commits after a tag": ["v0.14.0-rc1", "v0.14.0-rc1-3-gabc", "v0.14.0", "v0.14.0-10-g3e0cdff", "v0.14.1"],
    "a first build and its updates": ["4.18.0-372.el8", "4.18.0-372.9.1.el8", "4.18.0-372.19.1.el8"],
    "minor streams": ["5.14.0-427.40.1.el9.x86_64", "5.14.0-427.40.1.el9_4.x86_64"],
    "distributions": ["1.7.12-0ubuntu2~22.04.1", "1.7.12-0ubuntu2", "1.7.12-0ubuntu4.1", "1.7.12-1"],
    "candidates in a package": ["6.11.0-0.rc5.43.fc42", "6.11.0-63.fc42"],
    "service packs": ["15", "15.5", "15-SP6", "15-SP7"],
    "nothing": ["0", "0.0.0-1", "0.0.1", "1"],
    "schemes": ["docker://20.10.21", "docker://24.0.7-1"],
    "names of systems": ["Ubuntu 20.04.6 LTS", "Ubuntu 22.04", "Ubuntu 22.04.3 LTS", "Ubuntu_22.04.5_LTS"],
    "backports of a distribution": ["containerd://1.7.12-0ubuntu2~22.04.1", "1.7.12-0ubuntu2", "1.7.12-0ubuntu2.1"],
    "a bound with fewer parts": ["6.8", "6.8.0-1042-gke", "6.8.1"],
}
EQUAL = [
    ("v1.2.0", "1.2"),
    ("containerd://1.7.13", "1.7.13"),
    ("15-SP6", "15.6"),
    ("6.12.55+", "6.12.55"),
    ("24.07", "24.7"),
    ("1.0.0-RC1", "1.0.0-rc.1"),
    ("1.0.0-rc1", "1.0.0-rc-1"),
    ("1.2.0-5", "1.2-5"),
    ("Ubuntu 22.04.3 LTS", "Ubuntu_22.04.3_LTS"),
    ("Debian GNU/Linux 12 (bookworm)", "Debian_GNU_Linux_12_bookworm"),
    ("SLES 15 SP6", "SLES_15_SP6"),
]


@pytest.mark.parametrize("ascending", GROUPS.values(), ids=GROUPS)
def test_it_is_as_users_of_the_vendor_expect(ascending):
    versions = [parse_natural(text) for text in ascending]
    assert all(versions)
    assert all(lower < higher for lower, higher in pairwise(versions))


@pytest.mark.parametrize("ascending", ASCENDING.values(), ids=ASCENDING)
def test_it_is_as_the_rule_says(ascending):
    assert all(parse_natural(lower) < parse_natural(higher) for lower, higher in pairwise(ascending))


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_these_are_the_same(one, other):
    assert parse_natural(one) == parse_natural(other)


@pytest.mark.parametrize(
    ("operator", "holds"), [("VersionGt", [False, False, True]), ("VersionLt", [True, False, False])]
)
def test_operators_are_strict(operator, holds):
    values = ["5.15.0-76-generic", "5.15.0-91-generic", "5.15.0-100-generic"]
    asked = Toleration("kernel", operator, "5.15.0-91-generic")
    assert [match(asked, Taint("kernel", value)) is Match.HOLDS for value in values] == holds


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "a version is required"),
        ("latest", "must contain a number"),
        ("-1", "must start with"),
        ("~1", "must start with"),
        (" 1", "must start with"),
        ("1\n", "printable ASCII"),
        ("1.\u0662", "printable ASCII"),
        ("1" * (MAX_LENGTH + 1), "may not be more than 256"),
    ],
)
def test_what_is_no_version_is_explained(text, reason):
    assert parse_natural(text) is None
    assert reason in (explain_natural(text) or "")


# Short texts of the parts that the rule names, so that those which nearly agree meet often.
WORDS = st.sampled_from(["0", "0", "00", "1", "2", "10", "a", "ab", "k3s", "gke", *PRE_RELEASES, "sp", "v", "~"])
TEXTS = st.lists(st.tuples(WORDS, st.sampled_from(["", ".", "-", "+", "_", " "])), min_size=1, max_size=6).map(
    lambda parts: "1" + "".join(map("".join, parts))
)
VERSIONS = TEXTS.map(parse_natural)


@given(VERSIONS, VERSIONS)
def test_of_two_one_is_below_or_they_are_equal(one, other):
    assert [one < other, one == other, one > other].count(True) == 1
    assert (one < other) is (other > one)


@given(st.lists(VERSIONS, min_size=3, max_size=3))
def test_it_is_transitive(versions):
    first, second, third = sorted(versions)
    assert first <= second <= third
    assert first <= third


@given(st.text(max_size=300) | TEXTS)
@example("h2://x")
@example("a" * 255 + "1")
@example("1" * 256)
@example("v" * 100 + "1")
def test_any_text_is_read_or_explained(text):
    assert (parse_natural(text) is None) is (explain_natural(text) is not None)


@given(VERSIONS, VERSIONS)
def test_its_number_sorts_alike(one, other):
    (low, is_exact), (high, _) = encode_natural(min(one, other)), encode_natural(max(one, other))
    assert 0 < low <= high < 2**63 - 1
    assert low < high or one == other or not is_exact


def test_the_encoded_number_orders_versions_of_kernels():
    numbers = [encode_natural(parse_natural(text))[0] for text in GROUPS["ubuntu-generic kernel"]]
    assert numbers == sorted(set(numbers))


# -- where semantic versioning depends on text


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        ("5.15.0-97-generic", "5.15.0-100-generic", "-97-generic counts as a pre-release"),
        ("5.15.0-76-generic", "5.15.0-91", "-76-generic counts as a pre-release"),
        ("1.31.3-gke.1162000", "1.31.3", "-gke.1162000 counts as a pre-release, below its release"),
        ("v1.7.31-1", "1.7.31", "-1 counts as a pre-release"),
        ("1.0.0-rc9", "1.0.0-rc10", "rc9 compares as text"),
        ("1.31.3-gke.100", "1.31.3-gke.200", "-gke.100 counts as a pre-release"),
        ("v1.31.2+k3s1", "v1.31.2+k3s2", ""),
        ("1.31.3-gke.100", "1.31.4", ""),
        ("1.28.0-rc.1", "1.28.0", ""),
        ("1.28.0-rc.1", "1.28.0-rc.10", ""),
        ("1.28.0-alpha.1", "1.28.0-rc.1", ""),
        ("1.28.0", "1.28.0-0", ""),
        ("1.0.0-rc9", "1.0.0-rc9", ""),
        ("latest", "1.0.0-rc9", ""),
        ("10.0.20348.1", "10.0.20348.2", ""),
    ],
)
def test_the_order_of_two_versions_depends_on_text(one, other, reason):
    assert explain_text_order(one, other).startswith(reason)
    assert bool(explain_text_order(one, other)) is bool(explain_text_order(other, one)) is bool(reason)


@pytest.mark.parametrize(
    ("text", "depends"),
    [
        ("5.15.0-91-generic", True),
        ("1.28.2-rke2r1", True),
        ("1.0.0-rc9", True),
        ("1.0.0-rc.9", False),
        ("1.28.0-0", False),
        ("1.28.0-0.0", True),
        (f"1.28.0-{'9x' * MAX_LENGTH}", True),
        ("1.28.0", False),
        ("1.28.0+k3s1", False),
        ("latest", False),
    ],
)
def test_the_place_of_a_version_depends_on_text(text, depends):
    assert bool(explain_text(text)) is depends


@pytest.mark.parametrize(("more", "end"), [("", ""), ("x", "...")])
def test_a_long_suffix_is_cut_where_it_is_named(more, end):
    suffix = "rc9".ljust(MAX_SHOWN, "x")
    assert explain_text(f"1.0.0-{suffix}{more}") == f"{suffix}{end} compares as text"


SUFFIXES = ("-0", "-2", "-10", "-a", "-a.2", "-a.10", "-a.b", "", "+5")
VERSIONS = [*(f"1.0.0{suffix}" for suffix in SUFFIXES), "1.2.0-a", "1.2.0", "10.0.0"]


@pytest.mark.parametrize("one", VERSIONS)
def test_the_place_of_a_semantic_version_is_by_its_precedence(one):
    for other in VERSIONS:
        places, versions = ([of(text) for text in (one, other)] for of in (semver_sort_key, parse_version))
        assert (places[0] < places[1], places[0] == places[1]) == (
            versions[0] < versions[1],
            versions[0] == versions[1],
        )


def test_what_is_no_semantic_version_has_no_place():
    assert semver_sort_key("high") is None

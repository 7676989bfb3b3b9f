"""Labels that a node carries because of its taints."""

import pytest

from taintwarden.engine.model import Effect, Taint
from taintwarden.engine.natural import parse_natural
from taintwarden.engine.policy import TaintSelector, ValueType
from taintwarden_placement.node_labels import neutral_labels, node_labels
from taintwarden_placement.node_labels.encoding import encode_natural

VALUE, VERSION, EFFECT, HIGH, LOW, LOW_VERSION, ORDER = (
    f"{domain}.taintwarden.io/k"
    for domain in ("value", "version", "effect", "value-or-max", "value-or-min", "version-or-min", "order")
)
MAX = "9223372036854775807"
NOT_THERE = {EFFECT: "None", HIGH: MAX, LOW: "0", VERSION: MAX, LOW_VERSION: "0"}
BOTH_EFFECTS = (Effect.NO_EXECUTE, Effect.NO_SCHEDULE)


def placing(value_type=None, effects=(Effect.NO_EXECUTE,), key="k"):
    return TaintSelector(key, effects, value_type, placement=True)


def says(value, version="", *, comparable=False):
    """The labels of a taint with this value."""
    found = {VALUE: value, HIGH: value} | ({LOW: value} if comparable else {})
    return found | ({VERSION: version, LOW_VERSION: version} if version else {}) | ordered(value)


def ordered(value):
    """The place of a version in the natural order."""
    version = parse_natural(value)
    return {} if version is None else {ORDER: str(encode_natural(version)[0])}


def labels(*values, value_type=None):
    return node_labels([Taint("k", value) for value in values], [placing(value_type)])


def test_a_node_without_the_taint_has_the_neutral_labels():
    assert node_labels([], [placing()]).labels == neutral_labels(["k"]) == NOT_THERE


def test_a_taint_that_keeps_no_pod_off_is_not_repeated():
    assert node_labels([Taint("k", "1.2.3", Effect.PREFER_NO_SCHEDULE)], [placing()]).labels == NOT_THERE


@pytest.mark.parametrize("value_type", [ValueType.INTEGER, ValueType.STRING])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("950", says("950", "9500000000000001", comparable=True)),
        ("v1.28.3", says("v1.28.3", "10028000000031")),
        ("high", says("high")),
        ("", says("")),
        ("9223372036854775808", says("9223372036854775808")),
        ("12345678", says("12345678", comparable=True)),
    ],
)
def test_the_value_is_repeated_exactly_and_a_version_as_a_number_too(value, value_type, expected):
    """The value type of the policy does not matter: it may be edited after pods were placed by these labels."""
    found = labels(value, value_type=value_type)
    assert (found.labels, found.faults) == (expected, ())


def test_a_taint_that_no_policy_places_by_has_no_label():
    selectors = [TaintSelector("k"), placing(key="other")]
    assert node_labels([Taint("k", "950")], selectors).labels == neutral_labels(["other"])


def test_the_effects_that_evict_do_not_matter():
    taint = Taint("k", "x", Effect.NO_SCHEDULE)
    found = [node_labels([taint], [placing(effects=effects)]).labels for effects in ((), BOTH_EFFECTS)]
    assert found == [{**says("x"), EFFECT: "NoSchedule"}] * 2


def test_leading_zeros_are_left_out_and_reported():
    found = labels("0950", value_type=ValueType.INTEGER)
    number = "9500000000000001"
    assert found.labels == {VALUE: "", HIGH: "", VERSION: number, LOW_VERSION: number} | ordered("950")
    [(taint, reason)] = found.faults
    assert taint == Taint("k", "0950")
    assert reason == "0950 is not a canonical integer, but the scheduler would compare it as 950"


def test_leading_zeros_of_a_version_leave_out_only_the_value():
    assert labels("01", value_type=ValueType.VERSION).labels == {
        VALUE: "",
        HIGH: "",
        VERSION: "10000000000001",
        LOW_VERSION: "10000000000001",
    } | ordered("1")


def test_a_version_with_too_many_digits_is_reported():
    found = labels("1.100000.0", value_type=ValueType.VERSION)
    assert found.labels == says("1.100000.0")
    assert found.faults[0][1] == "the version 1.100000.0 has too many digits for an integer that sorts as it does"


def test_two_values_of_one_key_are_left_out_and_reported():
    taints = [Taint("k", "950"), Taint("k", "940", Effect.NO_SCHEDULE)]
    found = node_labels(taints, [placing(effects=BOTH_EFFECTS)])
    assert found.labels == {VALUE: "", HIGH: "", VERSION: "", EFFECT: "NoExecute_NoSchedule"}
    assert found.faults[0][1] == (
        "k=950:NoExecute and k=940:NoSchedule have different values, which cannot be expressed by one label"
    )


def test_one_value_with_two_effects_is_one_label():
    taints = [Taint("k", "950"), Taint("k", "950", Effect.NO_SCHEDULE)]
    found = node_labels(taints, [placing(ValueType.INTEGER), placing(ValueType.INTEGER, BOTH_EFFECTS)])
    expected = says("950", "9500000000000001", comparable=True) | {EFFECT: "NoExecute_NoSchedule"}
    assert (found.labels, found.faults) == (expected, ())


def test_the_value_that_means_no_taint_is_left_out_and_reported():
    found = labels(MAX)
    assert found.labels == {VALUE: MAX, HIGH: "", LOW: MAX} | ordered(MAX)
    assert found.faults[0][1] == f"{MAX} stands for a node without the taint"


def test_a_key_that_is_too_long_is_reported():
    key = "a" * 224 + "/k"
    found = node_labels([Taint(key, "1")], [placing(key=key)])
    assert found.labels == {}
    assert found.faults[0][1] == "the prefix of its key is too long for a label"

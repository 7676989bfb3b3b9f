"""Label selectors as Kubernetes means them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taintwarden.engine.model import DeviceId, DeviceOrigin, Taint
from taintwarden.engine.policy import DeviceTaintSelector, Policy, TaintSelector
from taintwarden.engine.selectors import LabelSelector, Requirement, SelectorOperator

IN, NOT_IN, EXISTS, ABSENT = SelectorOperator


@pytest.mark.parametrize(
    ("operator", "values", "labels", "holds"),
    [
        (IN, ("a", "b"), {"k": "b"}, True),
        (IN, ("a", "b"), {"k": "c"}, False),
        (IN, ("a",), {}, False),
        (IN, ("",), {"k": ""}, True),
        (NOT_IN, ("a",), {"k": "b"}, True),
        (NOT_IN, ("a",), {"k": "a"}, False),
        (NOT_IN, ("a",), {}, True),
        (EXISTS, (), {"k": ""}, True),
        (EXISTS, (), {"other": "x"}, False),
        (ABSENT, (), {}, True),
        (ABSENT, (), {"k": ""}, False),
    ],
)
def test_a_requirement(operator, values, labels, holds):
    assert Requirement("k", operator, values).holds(labels) is holds


def test_all_requirements_must_hold():
    selector = LabelSelector((Requirement("a", IN, ("1",)), Requirement("b", EXISTS)))
    assert selector.selects({"a": "1", "b": ""})
    assert not selector.selects({"a": "1"})
    assert not selector.selects({"b": ""})


labels = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"))
values = st.lists(st.sampled_from("xyz"), min_size=1).map(tuple)


@given(labels, st.sampled_from("abc"), values)
def test_in_and_not_in_are_opposites(labels, key, values):
    assert Requirement(key, IN, values).holds(labels) is not Requirement(key, NOT_IN, values).holds(labels)


@given(labels, st.sampled_from("abc"))
def test_exists_and_its_negation_are_opposites(labels, key):
    assert Requirement(key, EXISTS).holds(labels) is not Requirement(key, ABSENT).holds(labels)


@pytest.mark.parametrize(
    ("selector", "key", "selects"),
    [
        ("sla", "sla", True),
        ("sla", "example.com/sla", False),
        ("example.com/*", "example.com/sla", True),
        ("example.com/*", "example.com", False),
        ("example.com/*", "sub.example.com/sla", False),
        ("example.com/*", "example.community/sla", False),
        ("*", "sla", True),
        ("*", "example.com/sla", True),
    ],
)
def test_which_taints_a_selector_means(selector, key, selects):
    assert bool(TaintSelector(selector).specificity(Taint(key))) is selects


def test_specificity_grows_with_the_prefix_and_an_exact_key_is_the_most():
    taint = Taint("a.example.com/sla")
    ranks = [TaintSelector(key).specificity(taint) for key in ("*", "a.example.com/*", "a.example.com/sla")]
    assert ranks == sorted(set(ranks))
    longest = Taint("x" * 253 + "/k")
    assert TaintSelector("x" * 253 + "/*").specificity(longest) < TaintSelector(longest.key).specificity(longest)


def test_a_driver_makes_a_selector_more_specific_than_its_key_alone():
    taint = Taint("sla", effect="NoExecute", origin=DeviceOrigin(DeviceId("gpu", "pool", "0")))
    selectors = [DeviceTaintSelector(key, driver) for key in ("*", "sla") for driver in (None, "gpu")]
    ranks = [selector.specificity(taint) for selector in selectors]
    assert ranks == sorted(set(ranks))
    assert not DeviceTaintSelector("other", "gpu").specificity(taint)
    assert not DeviceTaintSelector("sla", "nic").specificity(taint)


def test_a_policy_for_devices_selects_no_taint_of_a_node():
    for taints in ((), (TaintSelector("other"),)):
        policy = Policy(name="p", taints=taints, devices=(DeviceTaintSelector("*"),))
        assert policy.selector_for(Taint("sla")) is None

"""Series become one value for each node: no answer of Prometheus gives a node a wrong value."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher.scene import node
from taintwarden_publisher.samples import Fault, Series, samples

NODES = [node("a1", addresses=["10.0.0.1", "a1", "a1.internal"]), node("a2", addresses=["10.0.0.2"])]


def series(name: str, value: float = 940.0, label: str = "node") -> Series:
    return Series({label: name, "job": "node"}, 0.0, value)


@pytest.mark.parametrize(
    ("given", "values", "faults"),
    [
        ([series("a1"), series("a2", 980)], {"a1": 940.0, "a2": 980.0}, {}),
        ([series("gone"), series("a1")], {"a1": 940.0}, {Fault.NO_NODE: 1}),
        ([series("a1"), series("a1"), series("a2")], {"a2": 940.0}, {Fault.TWO_SERIES: 2}),
        ([series("a1", label="host")], {}, {Fault.NO_LABEL: 1}),
    ],
    ids=["values", "no node", "two of one node, even if they agree", "no label"],
)
def test_a_series_gives_its_node_a_value(given, values, faults):
    found = samples(given, "node", NODES)
    assert (dict(found.values), dict(found.faults)) == (values, faults)


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (math.nan, Fault.NOT_A_NUMBER),
        (math.inf, Fault.INFINITE),
        (-math.inf, Fault.INFINITE),
        (-1.0, Fault.OUT_OF_RANGE),
        (1e300, Fault.OUT_OF_RANGE),
    ],
)
def test_an_invalid_value_is_a_fault(value, fault):
    found = samples([series("a1", value), series("a2")], "node", NODES)
    assert (dict(found.values), dict(found.faults)) == ({"a2": 940.0}, {fault: 1})


@pytest.mark.parametrize("value", [0.0, 2.0**53])
def test_the_least_and_the_largest_value_are_values(value):
    assert samples([series("a1", value)], "node", NODES).values == {"a1": value}


@pytest.mark.parametrize("name", ["a1", "a1:9100", "10.0.0.1", "10.0.0.1:9100"])
def test_an_instance_may_be_an_address_with_a_port(name):
    assert dict(samples([series(name, label="instance")], "instance", NODES).values) == {"a1": 940.0}


@pytest.mark.parametrize("name", ["[fd00::1]:9100", "[fd00::1]", "fd00::1", "[FD00:0::1]:9100"])
@pytest.mark.parametrize("address", ["fd00::1", "fd00:0:0::1"])
def test_an_instance_may_be_an_address_of_version_6(name, address):
    nodes = [node("a1", addresses=[address])]
    assert dict(samples([series(name, label="instance")], "instance", nodes).values) == {"a1": 940.0}


@pytest.mark.parametrize("name", ["a1.internal:9100", "10.0.0.7:9100", ":9100", "[]", "", "10.0.0.1:9100:1"])
def test_an_instance_that_is_neither_a_name_nor_an_address_names_no_node(name):
    found = samples([series(name, label="instance")], "instance", NODES)
    assert (dict(found.values), dict(found.faults)) == ({}, {Fault.NO_NODE: 1})


@pytest.mark.parametrize("claimed", ["10.0.0.1:9100", "victim.internal", "victim", "[10.0.0.1]", "fe80::1%victim"])
@pytest.mark.parametrize("name", ["10.0.0.1:9100", "victim.internal:9100", "victim:9100", "fe80::1%victim"])
def test_a_kubelet_cannot_get_the_value_of_another_node(claimed, name):
    nodes = [node("victim", addresses=["10.0.0.1"]), node("evil", addresses=["10.0.0.6", claimed])]
    assert "evil" not in samples([series(name, label="instance")], "instance", nodes).values
    assert samples([series("10.0.0.1:9100", label="instance")], "instance", nodes).values == {"victim": 940.0}


@pytest.mark.parametrize("name", ["a1:9100", "10.0.0.1"])
def test_only_an_instance_may_be_an_address(name):
    assert dict(samples([series(name)], "node", NODES).values) == {}


def test_an_address_of_two_nodes_that_no_series_has_is_no_fault():
    nodes = [node("a1", addresses=["10.0.0.9"]), node("a2", addresses=["10.0.0.9"])]
    found = samples([series("a1:9100", label="instance")], "instance", nodes)
    assert (dict(found.values), dict(found.faults), dict(found.shared)) == ({"a1": 940.0}, {}, {})


def test_the_name_of_a_node_is_never_the_address_of_another():
    nodes = [node("a1", addresses=["a2"]), node("a2")]
    assert dict(samples([series("a2", label="instance")], "instance", nodes).values) == {"a2": 940.0}


@given(
    st.lists(
        st.builds(
            Series,
            st.dictionaries(
                st.sampled_from(["node", "instance"]), st.sampled_from(["a1", "a2", "10.0.0.1:1", ":", ""])
            ),
            st.floats(),
            st.floats(),
        )
    ),
    st.sampled_from(["node", "instance"]),
)
def test_each_value_is_one_that_was_measured_and_each_series_counts_once(found, label):
    result = samples(found, label, NODES)
    assert len(result.values) + sum(result.faults.values()) == len(found)
    assert all(value in [one.value for one in found] for value in result.values.values())
    assert result.values.keys() <= {"a1", "a2"}

"""The one function for people who only want an answer."""

import doctest

import msgspec
import pytest

import taintwarden
from taintwarden import Taint, Toleration, tolerates


def test_structs_and_plain_objects_mean_the_same():
    plain = tolerates({"key": "k", "operator": "Lt", "value": "5"}, {"key": "k", "value": "4", "effect": "NoExecute"})
    assert plain is tolerates(Toleration("k", "Lt", "5"), Taint("k", "4")) is True


def test_the_taint_is_on_the_left():
    assert tolerates({"key": "sla", "operator": "Gt", "value": "950"}, {"key": "sla", "value": "980"})
    assert not tolerates({"key": "sla", "operator": "Gt", "value": "950"}, {"key": "sla", "value": "940"})


def test_what_the_api_server_adds_to_a_taint_is_no_matter():
    taint = {"key": "k", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
    assert tolerates({"key": "k", "operator": "Exists"}, taint)


def test_a_wrong_type_is_refused():
    with pytest.raises(msgspec.ValidationError, match=r"\$\.value"):
        tolerates({"key": "k", "value": 950}, {"key": "k"})


def test_the_example_of_the_tour_holds():
    assert doctest.testmod(taintwarden).failed == 0

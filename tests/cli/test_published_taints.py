"""The record of a published taint is read as the publisher writes it."""

from datetime import UTC, datetime

import msgspec
import pytest

from cli.world import NOON, Json, node, taint
from taintwarden.engine.model import Effect
from taintwarden.engine.times import at
from taintwarden.kube.wire.kinds import NodeObject
from taintwarden_cli.explain import explaining_pods
from taintwarden_cli.explain.explaining_pods import PublishedTaint, published
from taintwarden_publisher import spec
from taintwarden_publisher.records import Record

RECORD = Record("sla", (Effect.NO_EXECUTE, Effect.NO_SCHEDULE), "940", 939.6, datetime.fromtimestamp(NOON - 12, UTC))


def carrying(*taints: Json, text: str = RECORD.text(), key: str = "sla") -> list[PublishedTaint]:
    made = node(*taints)
    made["metadata"]["annotations"] = {spec.annotation(key): text}
    return list(published(msgspec.convert(made, NodeObject)))


@pytest.mark.parametrize("key", ["sla", "example.com/sla"])
def test_annotation_is_that_of_the_publisher(key):
    assert explaining_pods.annotation(key) == spec.annotation(key)
    assert [one.key for one in carrying(taint("940", key), key=key)] == [key]


def test_each_effect_is_one_line():
    found = carrying(taint("940"), taint("940", effect="NoSchedule"))
    assert [one.told(at(NOON)) for one in found] == [
        "sla=940:NoExecute published 12s ago by publisher sla from 939.6",
        "sla=940:NoSchedule published 12s ago by publisher sla from 939.6",
    ]


@pytest.mark.parametrize(
    "other", [taint("900"), taint("940", "other"), taint("940", effect="PreferNoSchedule")], ids=str
)
def test_taint_that_is_not_as_recorded_is_not_the_publishers(other):
    assert carrying(other) == []


@pytest.mark.parametrize("text", ["", "{}", "[]", "\ud800", RECORD.text().replace("Z", ""), '{"a":' * 20_000])
def test_record_that_cannot_be_read_is_none(text):
    assert carrying(taint("940"), text=text) == []


def test_clock_of_the_publisher_may_be_ahead():
    (found,) = carrying(taint("940"))
    assert " published 0s ago by " in found.told(at(NOON - 60))

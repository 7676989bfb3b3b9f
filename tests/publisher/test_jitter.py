"""Jittering series: how often taints flap without hysteresis and dwell, and that they do not with both."""

from pathlib import Path

import pytest

from docs.pages import Page
from publisher.jitter import SHAPES, Outcome, outcome, series
from publisher.scene import spec

PAGE = Path(__file__).parents[2] / "docs" / "publisher.md"
SETTINGS = (
    {"hysteresis": 0, "minDwellSeconds": 0},
    {"hysteresis": 5, "minDwellSeconds": 0},
    {"hysteresis": 0, "minDwellSeconds": 600},
    {"hysteresis": 5, "minDwellSeconds": 600},
)


def counted(shape: str) -> list[Outcome]:
    values = series(SHAPES[shape])
    return [outcome(spec(**fields), values) for fields in SETTINGS]


@pytest.mark.parametrize("shape", SHAPES)
def test_no_taint_flaps_with_hysteresis_and_dwell_and_docs_list_flaps_without(shape):
    found = counted(shape)
    assert found[0].flaps > 0
    assert found[-1].flaps == 0
    assert found[-1].changes <= min(one.changes for one in found)
    rows = {row[0]: list(row[1:]) for row in Page(PAGE).table("Values that jitter").rows}
    assert rows[shape] == [f"{one.flaps} of {one.changes}" for one in found]

"""From a change of a taint to an eviction and its end: what no policy uses is not called."""

import sys
from types import FrameType

import pytest

from engine.rig import Rig, gt, limited
from taintwarden.engine.limit_settings import BounceSettings
from taintwarden.engine.policy import Policy

UNUSED = {
    "limits.bounces",
    "limits.zones",
    "machine.source",
}
MOST_MODULES = 30  # three of them are values: model, policy and limit_settings


@pytest.fixture
def called() -> set[str]:
    """The modules of the engine that run from the change of the taint on."""
    return modules(limited())


def modules(given: Policy) -> set[str]:
    rig = Rig(given).with_pod("sla=980", gt())
    rig.wake()
    found: set[str] = set()

    def see(frame: FrameType, _event: str, _arg: object) -> None:
        found.add(frame.f_globals.get("__name__", ""))

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        rig.node("n1", "sla=940")
        rig.wake()
        rig.settle("a")
        rig.gone("a")
        rig.wake()
    finally:
        sys.setprofile(before)
    assert rig.evictions() == ["a"]
    prefix = "taintwarden.engine."
    return {name.removeprefix(prefix) for name in found if name.startswith(prefix)}


def test_what_no_policy_uses_is_not_called(called: set[str]) -> None:
    assert called & UNUSED == set()


def test_the_trip_stays_short(called: set[str]) -> None:
    assert len(called) <= MOST_MODULES


def test_what_a_policy_uses_is_called() -> None:
    assert "limits.bounces" in modules(limited(bounce=BounceSettings()))

"""The source of taints that is installed."""

from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest

from taintwarden import plugin
from taintwarden_devices.source import Devices


def offered(monkeypatch: pytest.MonkeyPatch, *points: object) -> None:
    monkeypatch.setattr(plugin, "entry_points", lambda **_: points)


def test_devices_are_part_of_the_product() -> None:
    found = plugin.installed()
    assert found is not None
    assert found.new_source is Devices


def test_there_may_be_none(monkeypatch: pytest.MonkeyPatch) -> None:
    offered(monkeypatch)
    assert plugin.installed() is None


def test_of_several_each_distribution_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    offered(monkeypatch, *(SimpleNamespace(dist=SimpleNamespace(name=name)) for name in ("taintwarden", "other")))
    with pytest.raises(RuntimeError, match="one each: other, taintwarden"):
        plugin.installed()


def test_an_entry_point_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    offered(monkeypatch, EntryPoint("mine", "types:SimpleNamespace", plugin.GROUP))
    assert plugin.installed() is SimpleNamespace

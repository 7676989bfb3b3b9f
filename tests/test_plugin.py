"""Plugins that are installed with the operator."""

from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest

from taintwarden import plugin
from taintwarden_devices.source import Devices
from taintwarden_placement.node_labels import labeller


def offered(monkeypatch: pytest.MonkeyPatch, *points: object) -> None:
    monkeypatch.setattr(plugin, "entry_points", lambda **_: points)


def test_devices_and_labels_are_part_of_the_product() -> None:
    assert plugin.load_plugin(plugin.TAINT_SOURCE).new_source is Devices
    assert plugin.load_plugin(plugin.LABELLER) is labeller


def test_without_an_entry_point_there_is_no_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    offered(monkeypatch)
    assert plugin.load_plugin("a.group") is None


def test_several_plugins_are_an_error_that_names_each_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    offered(monkeypatch, *(SimpleNamespace(dist=SimpleNamespace(name=name)) for name in ("taintwarden", "other")))
    with pytest.raises(RuntimeError, match="one each: other, taintwarden"):
        plugin.load_plugin("a.group")


def test_an_entry_point_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    offered(monkeypatch, EntryPoint("mine", "types:SimpleNamespace", "a.group"))
    assert plugin.load_plugin("a.group") is SimpleNamespace

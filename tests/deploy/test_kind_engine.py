"""The wrapper of runc that makes kind's nodes start where this machine's processes lack a capability."""

import importlib.machinery
import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from controlplane.binaries import ROOT

ASKED = ["CAP_CHOWN", "CAP_SYS_RESOURCE", "CAP_BPF"]
POSSIBLE = {"CAP_CHOWN", "CAP_BPF"}
LEFT = ["CAP_CHOWN", "CAP_BPF"]


def script() -> ModuleType:
    """The wrapper as a module."""
    loader = importlib.machinery.SourceFileLoader("runc", str(ROOT / "tests" / "kind" / "runc"))
    spec = importlib.util.spec_from_loader("runc", loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture
def runc(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """On a machine without CAP_SYS_RESOURCE, and what it would start is kept instead."""
    module = script()
    monkeypatch.setattr(module, "bounding_set", lambda: POSSIBLE)
    module.started = []
    monkeypatch.setattr(module.os, "execv", lambda *words: module.started.append(words))
    return module


def process() -> dict:
    return {"args": ["init"], "capabilities": {"bounding": ASKED, "effective": ASKED}}


def test_a_container_asks_only_for_what_can_be_had(runc: ModuleType, tmp_path: Path) -> None:
    config = {"process": process(), "hostname": "node"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    words = ["--root", "/run", "create", "--bundle", str(tmp_path), "id"]
    runc.main(words)
    limited = json.loads((tmp_path / "config.json").read_text())
    assert limited["process"]["capabilities"] == {"bounding": LEFT, "effective": LEFT}
    assert limited["hostname"] == "node"
    assert runc.started == [(runc.RUNC, [runc.RUNC, *words])]


def test_so_does_a_process_that_comes_later(runc: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "process.json"
    file.write_text(json.dumps(process()))
    runc.main(["exec", f"--process={file}", "id"])
    assert json.loads(file.read_text())["capabilities"]["effective"] == LEFT


def test_what_asks_for_nothing_is_passed_on(runc: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "process.json"
    file.write_text(json.dumps({"args": ["true"]}))
    runc.main(["exec", "--process", str(file), "id"])
    assert json.loads(file.read_text()) == {"args": ["true"]}
    runc.main(["delete", "id"])
    assert runc.started[-1] == (runc.RUNC, [runc.RUNC, "delete", "id"])


def test_the_bounding_set_of_this_machine_is_read() -> None:
    [line] = [one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith("CapBnd")]
    assert len(script().bounding_set()) == int(line.split()[1], 16).bit_count()

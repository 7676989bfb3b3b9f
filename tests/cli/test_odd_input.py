"""Odd input: every command answers in one line, and never with a traceback."""

import json
import os
import sys
from pathlib import Path

import pytest
import yaml

from cli.world import node, pod, policy, taint
from taintwarden_cli.main import main

NOT_UTF_8 = os.fsdecode(b"a\xff.yaml")
ODD_STATUS = {
    "conditions": [{"type": [1], "status": {}, "lastTransitionTime": 5}, 3, {"type": "Accepted", "status": []}],
    "guard": 3,
    "limitedBy": [2],
    "observedAt": {},
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a pod and its node in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump_all([pod(), node(taint())]))
    return tmp_path


@pytest.mark.parametrize("metadata", [{}, None, 3, {"generateName": "sla-"}, {"name": 3}])
def test_policy_without_a_name_is_one_line(folder, cli, metadata):
    (folder / "policy.yaml").write_text(yaml.safe_dump(policy() | {"metadata": metadata}))
    result = cli("explain", "pod", "shop/web", "-f", "pod.yaml", "-f", "policy.yaml")
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert "has no metadata.name" in result.stderr


def test_status_of_any_shape_is_no_fault(folder, cli):
    (folder / "policy.yaml").write_text(yaml.safe_dump(policy() | {"status": ODD_STATUS}))
    assert cli("explain", "pod", "shop/web", "-f", "pod.yaml", "-f", "policy.yaml").exit_code == 10


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"])
def test_ends_of_the_calendar_are_times(folder, cli, at):
    (folder / "policy.yaml").write_text(yaml.safe_dump(policy()))
    assert cli("explain", "pod", "shop/web", "-f", "pod.yaml", "-f", "policy.yaml", "--at", at).exit_code == 10


@pytest.mark.parametrize("content", ["", "kind: Pod\nspec: 3"])
def test_name_of_a_file_need_not_be_text(folder, cli, content):
    (folder / NOT_UTF_8).write_text(content)
    in_json = json.loads(cli("validate", NOT_UTF_8, f"x{NOT_UTF_8}", "-o", "json").stdout)
    assert in_json["unreadable"][-1]["file"] == "xa\\udcff.yaml"
    assert cli("explain", "pod", "shop/web", "-f", NOT_UTF_8).exit_code == 2


def test_closed_standard_input_is_one_line(monkeypatch, capsys):
    """Python has none then."""
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(SystemExit) as end:
        main(["validate", "-"])
    assert (end.value.code, capsys.readouterr().err) == (2, "taintwarden: stdin: is closed\n")


@pytest.mark.parametrize("flag", ["--stop-seconds", "--replacement-seconds", "--max-evictions-per-second"])
@pytest.mark.parametrize("value", ["nan", "inf"])
def test_what_is_no_number_is_no_time(cli, flag, value):
    result = cli("plan", flag, value, "--kubeconfig", "/nonexistent")
    assert (result.exit_code, flag in result.stderr) == (2, True)


def test_duplicate_key_in_json_is_refused(folder, cli):
    (folder / "policy.json").write_text('{"kind": "Pod", "metadata": {"name": "a", "name": "b"}}')
    result = cli("validate", "policy.json")
    assert (result.exit_code, result.stderr) == (2, "taintwarden: policy.json: the key 'name' occurs twice\n")


def test_merge_keys_may_be_nested(folder, cli):
    text = """
first: {base: &b {<<: &a {kind: Pod, apiVersion: v1, metadata: {name: a}}, metadata: {name: b}}}
second: {<<: *b}
<<: *b
"""
    (folder / "merged.yaml").write_text(text)
    assert cli("validate", "merged.yaml").exit_code == 0

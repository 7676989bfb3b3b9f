"""The shell completes commands, flags and choices, as documented."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.policies import POLICIES, empty_cluster
from cli.world import namespace, pod, policy
from taintwarden_cli import entry
from taintwarden_cli.main import main

EXECUTABLE = Path(sys.executable).parent / "taintwarden"
Complete = Callable[..., list[str]]


def complete(line: str) -> list[str]:
    words = line.split(" ")
    told = {"_TAINTWARDEN_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    said = CliRunner().invoke(main, [], env=told, prog_name="taintwarden")
    return [one.partition(",")[2] for one in said.stdout.splitlines()]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("taintwarden p", ["pause", "placement", "plan", "publisher"]),
        ("taintwarden placement ", ["labels", "remove"]),
        ("taintwarden guard ", ["reset"]),
        ("taintwarden doctor --only profile", ["profile-without-effect", "profile-tolerates-everything"]),
        ("taintwarden plan --repl", ["--replacement-seconds"]),
        ("taintwarden status -o ", ["table", "wide", "json"]),
    ],
)
def test_what_is_completed(line, wanted):
    assert complete(line) == wanted


@pytest.fixture
def complete_for_kubectl(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Complete:
    """A function that returns the completions for these words and this environment."""

    def completed(*words: str, **environment: str) -> list[str]:
        monkeypatch.setattr(sys, "argv", ["kubectl_complete-taintwarden", *words])
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        entry.complete()
        return capsys.readouterr().out.splitlines()

    return completed


def test_kubectl_completes_commands_and_flags(complete_for_kubectl: Complete):
    assert complete_for_kubectl("p") == [
        "pause\tStop policies.",
        "placement\tPrint and remove labels of placement.",
        "plan\tShow what follows from changed taints.",
        "publisher\tPublish values of Prometheus as taints of nodes.",
        ":4",
    ]
    assert complete_for_kubectl("status", "-o", "") == [
        "table\t",
        "wide\t",
        "json\t",
        ":4",
    ]


def test_kubectl_completes_files(complete_for_kubectl: Complete):
    assert complete_for_kubectl("status", "--kubeconfig", "")[-1] == ":0"


async def test_names_are_those_of_the_cluster(tmp_path, complete_for_kubectl: Complete):
    cluster = empty_cluster()
    cluster.create("namespaces", namespace())
    cluster.create(POLICIES, policy())
    cluster.create(POLICIES, policy("spot"))
    cluster.store.create("pods", pod())
    async with cluster.serve() as server:
        told = {"TAINTWARDEN_KUBECONFIG": str(server.write_kubeconfig(tmp_path / "kubeconfig"))}
        assert await asyncio.to_thread(complete_for_kubectl, "pause", "", **told) == ["sla\t", "spot\t", ":4"]
        assert await asyncio.to_thread(complete_for_kubectl, "pause", "sla", "", **told) == ["spot\t", ":4"]
        assert await asyncio.to_thread(complete_for_kubectl, "explain", "pod", "", **told) == ["shop/web\t", ":4"]
        narrowed = await asyncio.to_thread(complete_for_kubectl, "explain", "pod", "-n", "shop", "", **told)
        assert narrowed == ["web\t", ":4"]
        other = told | {"TAINTWARDEN_CONTEXT": "absent"}
        assert await asyncio.to_thread(complete_for_kubectl, "pause", "", **other) == [":4"]


def test_without_a_cluster_no_name_is_completed(complete_for_kubectl: Complete):
    assert complete_for_kubectl("pause", "", TAINTWARDEN_KUBECONFIG="/nonexistent") == [":4"]


def test_script_for_a_shell():
    """The one that is installed."""
    environment = os.environ | {"_TAINTWARDEN_COMPLETE": "zsh_source"}
    said = subprocess.run([EXECUTABLE], env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert "_TAINTWARDEN_COMPLETE" in said.stdout

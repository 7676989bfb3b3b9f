"""A page of the runbook as a person on duty follows it: its commands, with names in place of the words in capitals."""

import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from controlplane.binaries import ROOT, binaries_folder
from controlplane.operator_process import BYTECODE, EXECUTABLE

SECONDS = 120
SHOWN = {0, 10, 11}
"""Exit codes of commands that only show: 10 and 11 say that there is something to do."""
_at_once = threading.Semaphore(2)
"""Limits concurrent commands to two, the number of cores of a small machine."""


@dataclass(frozen=True)
class Done:
    """A command and what it said."""

    command: str
    code: int
    output: str
    seconds: float


class Desk:
    """Where the commands are typed: a clone with an overlay of one's own, a kubeconfig, and variables of the shell."""

    def __init__(self, folder: Path, kubeconfig: Path, variables: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        for name in ("deploy", "crds"):
            shutil.copytree(ROOT / name, folder / name, symlinks=True)
        mine = folder / "deploy" / "mine"
        mine.mkdir()
        # The operators of these tests are processes, so the Deployments have no pods.
        names = ("taintwarden", "taintwarden-webhook", "taintwarden-scheduler-extender")
        overlay = {
            "resources": ["../base"],
            "components": ["../components/scheduler-extender", "../components/devices"],
            "replicas": [{"name": name, "count": 0} for name in names],
        }
        mine.joinpath("kustomization.yaml").write_text(yaml.safe_dump(overlay))
        path = os.pathsep.join([str(EXECUTABLE.parent), str(binaries_folder()), os.environ["PATH"]])
        plain = {"PATH": path, "KUBECONFIG": str(kubeconfig), "NO_COLOR": "1", "COLUMNS": "100", "HOME": str(folder)}
        self._environment = {**os.environ, **BYTECODE, **plain, **(variables or {})}

    def run_first_commands(self, page: Path, words: Mapping[str, str]) -> list[Done]:
        """Run the commands under *First commands* of a page. Each has to work; its output may show a problem."""
        done = [self.type(command, words) for command in commands(page, "First commands")]
        failed = [one for one in done if one.code not in SHOWN and not (" can-i " in one.command and one.code == 1)]
        assert not failed, failed
        return done

    def repair(self, page: Path, heading: str, words: Mapping[str, str]) -> list[Done]:
        """Run the commands below a heading, one after the other. Each has to succeed."""
        done = [self.type(command, words) for command in commands(page, heading)]
        failed = [one for one in done if one.code not in SHOWN]
        assert done
        assert not failed, failed
        return done

    def type(self, command: str, words: Mapping[str, str]) -> Done:
        """Run one command with names in place of words in capitals."""
        return self.run(filled(command, words))

    def run(self, script: str, seconds: float = SECONDS) -> Done:
        """Run a command, or several lines, as they are. Raises TimeoutExpired."""
        with _at_once:
            began = time.monotonic()
            ran = subprocess.run(
                ["/bin/bash", "-c", script],
                cwd=self.folder,
                env=self._environment,
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )
        return Done(script, ran.returncode, ran.stdout + ran.stderr, time.monotonic() - began)


def commands(page: Path, heading: str) -> list[str]:
    """The lines of the shell blocks between a heading and the next one."""
    text = page.read_text("utf-8")
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", text, re.DOTALL | re.MULTILINE)
    assert found, f"{page.name} has no heading {heading!r}"
    blocks = re.findall(r"```sh\n(.*?)```", found[1], re.DOTALL)
    return [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]


def filled(command: str, words: Mapping[str, str]) -> str:
    """Raises AssertionError for a word that has no name here."""
    typed = re.sub(r"\b(" + "|".join(words) + r")\b", lambda word: words[word[0]], command) if words else command
    left = set(re.findall(r"(?<![\w=])[A-Z]{3,}\b", re.sub(r"custom-columns=\S+", "", typed)))
    assert not left, f"{typed}: {left}"
    return typed

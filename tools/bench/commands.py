"""What a command costs before it does anything, and a start until the API server gets its first request."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.cluster import EXECUTABLE, free_port
from bench.usage import cpu_seconds

ROUNDS = 3
"""At least."""
LIMIT_SECONDS = 600
BARE = "python -c pass"
"""The yardstick: what the interpreter alone costs."""
COMPLETING = {"_TAINTWARDEN_COMPLETE": "bash_complete", "COMP_WORDS": "taintwarden st", "COMP_CWORD": "1"}


@dataclass(frozen=True)
class Subject:
    """A command. One that serves is measured until its first request, every other until its end."""

    name: str
    words: Sequence[str | Path]
    ports: Sequence[str] = ()
    """Where one that serves listens."""


@dataclass(frozen=True)
class Cost:
    seconds: float
    cpu_seconds: float


SUBJECTS = (
    Subject(BARE, (EXECUTABLE.with_name("python"), "-c", "pass")),
    Subject("--version", (EXECUTABLE, "--version")),
    Subject("--help", (EXECUTABLE, "--help")),
    Subject("completion", (EXECUTABLE,)),
    Subject("explain pod --help", (EXECUTABLE, "explain", "pod", "--help")),
    Subject("run", (EXECUTABLE, "run"), ("http",)),
    *(Subject(name, (EXECUTABLE, name), ("http", "webhook")) for name in ("webhook", "scheduler-extender")),
)


def measure(subject: Subject) -> Cost:
    return _until_the_first_request(subject) if subject.ports else _until_the_end(subject)


def _until_the_end(subject: Subject) -> Cost:
    environment = os.environ | (COMPLETING if subject.name == "completion" else {})
    began_at = time.monotonic()
    process = subprocess.Popen(subject.words, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - began_at
    if status:
        sys.exit(f"{subject.name} failed")
    return Cost(seconds, used.ru_utime + used.ru_stime)


def _until_the_first_request(subject: Subject) -> Cost:
    """There is no API server: who listens takes the request, and gives no answer."""
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(LIMIT_SECONDS)
        kubeconfig = Path(folder) / "kubeconfig"
        kubeconfig.write_text(json.dumps(_kubeconfig(listening.getsockname()[1])))
        flags = [f"--kubeconfig={kubeconfig}", "--http-host=127.0.0.1"]
        flags += [f"--{port}-port={free_port()}" for port in subject.ports]
        began_at = time.monotonic()
        process = subprocess.Popen([*subject.words, *flags], stderr=subprocess.DEVNULL)
        try:
            with listening.accept()[0] as connection:
                connection.settimeout(LIMIT_SECONDS)
                connection.recv(1)
                return Cost(time.monotonic() - began_at, cpu_seconds(process.pid))
        finally:
            process.kill()
            process.wait()


def _kubeconfig(port: int) -> dict[str, object]:
    return {
        "clusters": [{"name": "bench", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "bench", "user": {}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "current-context": "bench",
    }

#!/usr/bin/env python3
"""A stand-in for the docker command that runs no container: it answers what kind asks until Kubernetes would start.

It keeps in the folder $ENGINE_DOUBLE the commands it got (`commands`, one JSON list a line) and the files that were
written into nodes (`NODE/path`). It fails at `kubeadm init`, since no node is there to run it.
"""

# ruff: noqa: T201 - a command answers by printing
import json
import os
import sys
from pathlib import Path

FOLDER = Path(os.environ["ENGINE_DOUBLE"])
LOG = FOLDER / "commands"
VERSION = "v1.37.1"
INFO = {"CgroupDriver": "systemd", "CgroupVersion": "2", "MemoryLimit": True, "PidsLimit": True, "CPUShares": True}


def nodes() -> list[str]:
    """The containers that were started, by name."""
    commands = [json.loads(line) for line in LOG.read_text().splitlines()]
    return [words[words.index("--name") + 1] for words in commands if words[0] == "run"]


def execute(words: list[str]) -> int:
    """A command inside a node."""
    node, *command = [word for word in words if word not in ("--privileged", "-i")]
    if command[:2] == ["cat", "/kind/version"]:
        print(VERSION)
    elif command[:2] == ["cp", "/dev/stdin"]:
        path = FOLDER / node / command[2].lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(sys.stdin.read())
    return 1 if command[0] == "kubeadm" else 0


def main(words: list[str]) -> int:
    with LOG.open("a") as log:
        log.write(json.dumps(words) + "\n")
    text = " ".join(words)
    if words[0] == "exec":
        return execute(words[1:])
    if words[0] == "-v":
        print("Docker version 28.0.0, build 0")
    elif words[0] == "info":
        print(json.dumps(INFO))
    elif words[0] == "ps" and "{{.Names}}" in text:
        print(*nodes(), sep="\n", end="\n" if nodes() else "")
    elif words[:2] == ["network", "ls"]:
        print("kind")
    elif words[:2] == ["network", "inspect"]:
        print(json.dumps([{"Name": "kind", "Id": "kind", "Created": "", "Containers": {}}]))
    elif words[0] == "logs":
        print("Reached target Multi-User System.")
    elif words[0] == "inspect" and "role" in text:
        print("control-plane" if words[-1].endswith("control-plane") else "worker")
    elif words[0] == "inspect" and "IPAddress" in text:
        print(f"172.18.0.{2 + nodes().index(words[-1])},")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

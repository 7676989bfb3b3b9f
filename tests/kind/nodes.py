"""The nodes of the kind cluster as machines: what runs in their containers, and what stops them."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

API_PORT = 6443
ENGINE = os.environ.get("ENGINE", "docker")
SECONDS = 60


def engine(*words: str, text: str | None = None) -> str:
    """Run a command of the container engine; returns what it prints."""
    done = subprocess.run([ENGINE, *words], input=text, check=False, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode != 0:
        raise RuntimeError(f"{ENGINE} {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def on_node(node: str, *words: str, text: str | None = None) -> str:
    """Run a command in a node."""
    return engine("exec", "-i", node, *words, text=text)


def kill_container(node: str, container_id: str) -> None:
    """End a container at once, as a crash would: the kubelet starts it again."""
    pid = on_node(
        node, "crictl", "inspect", "--output", "go-template", "--template", "{{.info.pid}}", container_id
    ).strip()
    on_node(node, "kill", "-KILL", pid)


def write_file(node: str, path: str, text: str) -> None:
    on_node(node, "cp", "/dev/stdin", path, text=text)


def remove_file(node: str, path: str) -> None:
    on_node(node, "rm", "-f", path)


def static_pod(name: str) -> str:
    """The path of the manifest by which a kubelet runs this pod."""
    return f"/etc/kubernetes/manifests/{name}.yaml"


@contextmanager
def frozen(node: str) -> Iterator[None]:
    """Within, all processes on the node are frozen."""
    engine("pause", node)
    try:
        yield
    finally:
        engine("unpause", node)


@contextmanager
def switched_off(node: str) -> Iterator[None]:
    """Within, the node is stopped. Afterwards its kubelet starts its containers again."""
    engine("stop", "--time", "1", node)
    try:
        yield
    finally:
        engine("start", node)


@contextmanager
def cut_off(node: str) -> Iterator[None]:
    """Within, all processes on the node run, but cannot reach an API server."""
    chains = ("OUTPUT", "FORWARD")  # of the kubelet, of pods
    rule = ("-p", "tcp", "--dport", str(API_PORT), "-j", "DROP")
    for chain in chains:
        on_node(node, "iptables", "-I", chain, *rule)
    try:
        yield
    finally:
        for chain in chains:
            on_node(node, "iptables", "-D", chain, *rule)


@contextmanager
def without_kubelet(node: str) -> Iterator[None]:
    """Within, containers run, but no kubelet reports on them, or ends them."""
    on_node(node, "systemctl", "stop", "kubelet")
    try:
        yield
    finally:
        on_node(node, "systemctl", "start", "kubelet")

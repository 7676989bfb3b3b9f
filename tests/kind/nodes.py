"""The nodes of the kind cluster as machines: what runs in their containers, and what stops them."""

import os
import subprocess

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

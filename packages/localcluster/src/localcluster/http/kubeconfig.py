"""A kubeconfig for a cluster on loopback.

Forbidden here: reading a kubeconfig of the user.
"""

from pathlib import Path
from typing import Any

import yaml

NAME = "local"


def kubeconfig(url: str, token: str | None) -> dict[str, Any]:
    """A kubeconfig as an object; the context, the cluster and the user are all named `local`."""
    user = {"token": token} if token else {}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": NAME,
        "clusters": [{"name": NAME, "cluster": {"server": url}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
        "users": [{"name": NAME, "user": user}],
    }


def write_kubeconfig(path: Path, url: str, token: str | None) -> Path:
    """Write it to a file that only its owner can read."""
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(kubeconfig(url, token)))
    return path

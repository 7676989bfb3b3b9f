"""Kubeconfig files: the one thing that users, operator, controllers and kubectl all understand."""

from pathlib import Path
from typing import Any

import yaml

from controlplane.certificates import Pair

CONTEXT = "taintwarden-e2e"


def write_kubeconfig(
    path: Path, server: str, ca: Path | None, *, client: Pair | None = None, token: str = "", context: str = CONTEXT
) -> Path:
    """Write a kubeconfig with one context, for a client certificate or a bearer token."""
    user: dict[str, Any] = {}
    if client:
        user = {"client-certificate": str(client.certificate), "client-key": str(client.key)}
    if token:
        user = {"token": token}
    cluster = {"server": server, **({"certificate-authority": str(ca)} if ca else {})}
    path.touch(mode=0o600)
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": context,
                "clusters": [{"name": context, "cluster": cluster}],
                "users": [{"name": context, "user": user}],
                "contexts": [{"name": context, "context": {"cluster": context, "user": context}}],
            }
        )
    )
    return path

"""Scalars in YAML files are read as kubectl reads them, which sends them to the API server."""

import json
import subprocess
from pathlib import Path

from controlplane import Target
from controlplane.binaries import binary
from taintwarden.rehearsal.manifests import BadInput, read_documents

REFUSED = "refused"
TEXT = """
0950 1e3 0o17 0O17 12:30 010 08 1_000 0_8 1.30 25.10 2024.10 535.10 1. .5 5. 1e+3 1E3 -1e-3 yes y Y no n on off True
TRUE tRue ~ null NULL Null 0x1F 0X1f -0b11 0b 0b2 +5 -0 00 + . 2026-01-31 2026-01-31T12:00:00Z 18446744073709551615
9223372036854775808 -9223372036854775809 18446744073709551616 1e400 .inf -.Inf _1 1__0 1,000 99.95% v1.30 1.2.3 0.0.0 =
"""
SCALARS = TEXT.split()


def test_scalars_mean_what_they_mean_to_kubectl(control_plane: Target, tmp_path: Path) -> None:
    read = {}
    for number, scalar in enumerate(SCALARS):
        path = tmp_path / f"{number}.yaml"
        path.write_text(f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  key: {scalar}\n")
        command = [binary("kubectl"), f"--kubeconfig={control_plane.admin_kubeconfig}", "create", "--dry-run=client"]
        ran = subprocess.run(
            [*command, "--validate=false", "-o=json", f"-f={path}"], capture_output=True, text=True, check=False
        )
        theirs = json.loads(ran.stdout).get("data", {}).get("key") if ran.returncode == 0 else REFUSED
        try:
            [ours] = read_documents(str(path))
            read[scalar] = (ours.content["data"]["key"], theirs)
        except BadInput:
            read[scalar] = (REFUSED, theirs)
    assert {scalar: pair for scalar, pair in read.items() if repr(pair[0]) != repr(pair[1])} == {}

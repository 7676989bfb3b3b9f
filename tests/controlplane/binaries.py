"""Paths of the control plane's binaries: built here once, or given by envtest's variable."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "control-plane"
REQUIRED = ("etcd", "kube-apiserver")


class MissingBinariesError(Exception):
    """There is no control plane to test against; the message says how to get one."""


def pinned_version() -> str:
    """The Kubernetes version that go.mod pins, such as v1.37.1."""
    return _pinned(Path(__file__).parent)


def node_version() -> str:
    """The Kubernetes version of the kubelets, here (`build-kubelet`) and on kind: not newer than the control plane."""
    return _pinned(ROOT / "tests" / "kind" / "kubernetes")


def wanted_version() -> str:
    """The Kubernetes version under test: the one that the environment's KUBERNETES names, else the pinned one."""
    return os.environ.get("KUBERNETES") or pinned_version()


def minor_of(version: str) -> int:
    """The minor version, such as 37 of v1.37.1."""
    return int(version.split(".")[1])


def is_before(minor: int) -> bool:
    """Return True if the Kubernetes under test is older than 1.MINOR."""
    return minor_of(wanted_version()) < minor


def binaries_folder() -> Path:
    """The folder with etcd and kube-apiserver. Raises MissingBinariesError."""
    given = os.environ.get("KUBEBUILDER_ASSETS")
    folder = Path(given) if given else CACHE / wanted_version() / "bin"
    missing = [name for name in REQUIRED if not os.access(folder / name, os.X_OK)]
    if not missing:
        return folder
    if given:
        raise MissingBinariesError(f"KUBEBUILDER_ASSETS={given} holds no executable {' and '.join(missing)}")
    raise MissingBinariesError(
        f"no control plane: {folder} holds no {' and '.join(missing)}. Run `make control-plane` (needs Go), "
        "set KUBEBUILDER_ASSETS to a folder of such binaries, or pass --kubeconfig and --context."
    )


def binary(name: str) -> Path:
    """The path of one binary. Raises MissingBinariesError, since envtest's folders hold no controller manager."""
    path = binaries_folder() / name
    if not os.access(path, os.X_OK):
        raise MissingBinariesError(f"{path.parent} holds no executable {name}")
    return path


def _pinned(module: Path) -> str:
    for line in (module / "go.mod").read_text().splitlines():
        words = line.split()
        if words[:1] == ["k8s.io/kubernetes"]:
            return words[1]
    raise MissingBinariesError(f"{module / 'go.mod'} names no version of k8s.io/kubernetes")

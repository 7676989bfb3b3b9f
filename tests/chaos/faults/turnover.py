"""No fault, but time: nodes, namespaces, workloads and pods come and go under new names, and memory is measured."""

from dataclasses import dataclass
from pathlib import Path
from statistics import linear_regression

from chaos.faults.base import Fault, Scene

MIB = 2**20
HOUR = 3600
NODE_SECONDS, NAMESPACE_SECONDS, MEMORY_SECONDS = 5, 30, 10
WARM_SHARE = 0.25
"""Share of the time in which memory may grow to what the operator needs: the slope is that of the rest."""


@dataclass(frozen=True)
class Usage:
    """Resources of a process at one moment."""

    elapsed_seconds: float
    mib: float
    files: int
    threads: int

    @classmethod
    def read(cls, pid: int, elapsed_seconds: float) -> "Usage":
        folder = Path(f"/proc/{pid}")
        lines = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
        mib = int(lines["VmRSS"].split()[0]) * 1024 / MIB
        return cls(elapsed_seconds, mib, len(list((folder / "fd").iterdir())), int(lines["Threads"]))


class Turnover(Fault):
    """An hour in which every name changes: a node every 5 seconds, a namespace every 30 seconds."""

    name = "turnover"
    seconds = HOUR

    def prepare(self, scene: Scene) -> None:
        self._nodes, self._namespaces = 0, 0
        self._used: dict[str, list[Usage]] = {replica.name: [] for replica in scene.replicas.all}

    def tick(self, scene: Scene, elapsed_seconds: float) -> None:
        while self._nodes < elapsed_seconds // NODE_SECONDS:
            self._nodes += 1
            scene.world.exchange_node()
        while self._namespaces < elapsed_seconds // NAMESPACE_SECONDS:
            self._namespaces += 1
            scene.world.exchange_namespace()
        for replica in scene.replicas.all:
            used = self._used[replica.name]
            if elapsed_seconds >= len(used) * MEMORY_SECONDS:
                used.append(Usage.read(replica.pid, elapsed_seconds))

    def measured(self) -> str:
        exchanged = f"    {self._nodes} nodes and {self._namespaces} namespaces exchanged"
        return "\n".join([exchanged, *(_told(name, used) for name, used in self._used.items())])


def _told(name: str, used: list[Usage]) -> str:
    later = [one for one in used if one.elapsed_seconds >= WARM_SHARE * used[-1].elapsed_seconds]
    slope = linear_regression([one.elapsed_seconds for one in later], [one.mib for one in later]).slope * HOUR
    first, last = later[0], later[-1]
    return (
        f"    {name}: {first.mib:.1f} MiB after {first.elapsed_seconds / 60:.0f} min, {last.mib:.1f} after "
        f"{last.elapsed_seconds / 60:.0f}, slope {slope:+.1f} MiB an hour; "
        f"files {first.files} -> {last.files}, threads {first.threads} -> {last.threads}"
    )

"""CPU and memory of processes, from Linux's /proc."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
MIB = 2**20


def cpu_seconds(pid: int) -> float:
    """Return user and system time of all threads of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


@dataclass(frozen=True)
class Memory:
    """Resident memory of a process, now and at its peak."""

    rss_mib: float
    peak_mib: float


def memory(pid: int | str = "self") -> Memory:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    kib = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines) if "kB" in rest}
    return Memory(kib["VmRSS"] * 1024 / MIB, kib["VmHWM"] * 1024 / MIB)


def machine_cpu_seconds() -> float:
    """Return the CPU time of all processes since the machine started, without idle and I/O wait."""
    user, nice, system, _, _, irq, soft_irq, *_ = Path("/proc/stat").read_text().split("\n")[0].split()[1:]
    return sum(map(int, (user, nice, system, irq, soft_irq))) / TICKS_PER_SECOND


class CpuMeter:
    """A meter of the CPU seconds of some processes, and of all "others" except this one, since its creation."""

    def __init__(self, pids: dict[str, int]):
        self._pids = pids
        self._before = self._totals()

    def read(self) -> dict[str, float]:
        return {name: round(total - self._before[name], 2) for name, total in self._totals().items()}

    def _totals(self) -> dict[str, float]:
        totals = {name: cpu_seconds(pid) for name, pid in self._pids.items()}
        return totals | {"others": machine_cpu_seconds() - cpu_seconds(os.getpid()) - sum(totals.values())}


def settle(pids: dict[str, int], timeout_seconds: float = 30) -> None:
    """Wait until these processes are idle, so that the work of their start is not measured."""
    give_up_at = time.monotonic() + timeout_seconds
    while time.monotonic() < give_up_at:
        before = sum(map(cpu_seconds, pids.values()))
        time.sleep(1)
        if sum(map(cpu_seconds, pids.values())) < before + 0.15:
            return

"""Description of the machine, necessary to compare results of different days."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path


def describe() -> dict[str, str | float]:
    """Return hardware, software, and present load of the machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpus": os.cpu_count() or 0,
        "cpu": _cpu_model(),
        "memory_gib": round(memory / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
    }


def _cpu_model() -> str:
    names = (line.partition(":")[2] for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line)
    return next(names, "").strip()

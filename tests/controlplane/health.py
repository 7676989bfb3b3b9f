"""Asking a program whether it is ready, where no answer is an answer too."""

from pathlib import Path

import urllib3

PROBE_SECONDS = 5


def status_of(url: str, ca: Path | None = None) -> int:
    """The HTTP status of an anonymous GET; 0 without an answer."""
    with urllib3.PoolManager(retries=False, timeout=PROBE_SECONDS, ca_certs=str(ca) if ca else None) as pool:
        try:
            return pool.request("GET", url).status
        except urllib3.exceptions.HTTPError:
            return 0


def is_healthy(url: str, ca: Path | None = None) -> bool:
    return status_of(url, ca) == 200

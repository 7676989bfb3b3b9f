"""Control planes that are judged by their audit log, and one with a store that can be stopped and restored."""

import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import urllib3

from chaos.judge.audit import audit_policy, read
from chaos.judge.facts import Between, Subject
from chaos.judge.judge import Tolerance, judged
from chaos.replicas import LEASE
from controlplane import OPERATOR_NAMESPACE, OPERATOR_USER, ControlPlane, wait_until
from controlplane.health import is_healthy

BUDGETS = "disruption-controller"
CLIENT_LIMITS = ("--kube-api-qps=500", "--kube-api-burst=1000")
SUBJECT = Subject(OPERATOR_USER, f"{OPERATOR_NAMESPACE}/{LEASE}")
AnyPlane = TypeVar("AnyPlane", bound=ControlPlane)


def audited(plane: AnyPlane) -> AnyPlane:
    """A control plane that is not started yet: its audit log will have what the judge needs."""
    policy = plane.folder / "audit-policy-of-the-judge.json"
    policy.write_text(json.dumps(audit_policy()))
    plane.api_server.command.append(f"--audit-policy-file={policy}")
    return plane


@contextmanager
def judging(plane: ControlPlane, *, slots: int = 20, overall: float = 50.0, skew: float = 0.0) -> Iterator[None]:
    """Judge the evictions of stories at the end: of the right pods, not early, once, and by the leader.

    Stories say themselves what is in time, as they end operators and deny calls. How fast calls arrive on a busy
    machine says little of rates.
    """
    began = time.time()
    yield
    end = time.time()
    tolerance = Tolerance(5.0, 64, [Between(began, end)], slots=slots, overall=overall, skew=skew)
    verdict = judged(read(plane.folder / "audit.log"), SUBJECT, (), began, end, tolerance)
    assert verdict.breaches().keys() <= {"over"}, verdict.findings


class Plane(ControlPlane):
    """Starts the controller of budgets as well: the only one that the world needs."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        audited(self)
        self._etcd_url = self._etcd_health.removesuffix("/health")
        self._copy = folder / "etcd-copy"

    def start(self) -> None:
        super().start()
        self._budgets = self.start_controller_manager(BUDGETS, CLIENT_LIMITS)

    # -- the store

    def stop_store(self) -> None:
        """SIGSTOP: connections stay open, without an answer."""
        self._signal(signal.SIGSTOP)

    def continue_store(self) -> None:
        self._signal(signal.SIGCONT)

    def restart_store(self, seconds_down: float) -> None:
        self.etcd.kill()
        time.sleep(seconds_down)  # this is the fault
        self._start_store()

    def copy_store(self) -> None:
        """Copy its files while it stands still: what a machine would have on its disk after a crash."""
        self.stop_store()
        try:
            shutil.rmtree(self._copy, ignore_errors=True)
            shutil.copytree(self.folder / "etcd", self._copy)
        finally:
            self.continue_store()

    def restore_store(self) -> float:
        """Go back to the copy, the API server killed. Returns when that began."""
        began = time.time()
        self.stop_api_server(kill=True)
        self.etcd.kill()
        shutil.rmtree(self.folder / "etcd")
        shutil.copytree(self._copy, self.folder / "etcd")
        self._start_store()
        self.start_api_server()
        # As Kubernetes' instructions for a restore say: its controllers may rely on what is not stored any more.
        self._budgets.stop()
        self._budgets.start()
        return began

    def revision(self) -> int:
        """The newest revision in the store."""
        return int(self._ask("/v3/kv/range", {"key": "AA=="})["header"]["revision"])

    def compact(self) -> None:
        """Forget every revision but the newest; the API server compacts as well, and may have been faster."""
        with suppress(RuntimeError):
            self._ask("/v3/kv/compaction", {"revision": str(self.revision())})

    def _start_store(self) -> None:
        self.etcd.start()
        wait_until(lambda: is_healthy(self._etcd_health), self.ready_seconds, "etcd to be healthy")

    def _ask(self, path: str, body: dict[str, Any]) -> Any:
        answer = urllib3.request("POST", f"{self._etcd_url}{path}", json=body, retries=False, timeout=10)
        if answer.status >= 400:
            raise RuntimeError(answer.data.decode())
        return answer.json()

    def _signal(self, number: signal.Signals) -> None:
        assert self.etcd.pid is not None
        os.kill(self.etcd.pid, number)

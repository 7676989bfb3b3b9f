"""Faults of the operator's own processes."""

import os
import resource
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from chaos.faults.base import Fault, Scene
from chaos.replicas import Replica
from controlplane import OPERATOR_NAMESPACE, wait_until
from controlplane.target import OPERATOR_SERVICE_ACCOUNT

STRAY = "stray"
FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
AN_HOUR = 3600


class LeaderKilled(Fault):
    """The leader is killed and started again at once, twice."""

    name = "leader-killed"
    seconds = 30

    def start(self, scene: Scene) -> None:
        self._again = False
        scene.replicas.leader().kill(again=True)

    def tick(self, scene: Scene, elapsed_seconds: float) -> None:
        if elapsed_seconds > 20 and not self._again:
            self._again = True
            scene.replicas.leader().kill(again=True)


class BothKilled(Fault):
    """Both replicas are killed, and away for twenty seconds."""

    name = "both-killed"

    def start(self, scene: Scene) -> None:
        for replica in scene.replicas.all:
            replica.kill()

    def end(self, scene: Scene) -> None:
        for replica in scene.replicas.all:
            replica.start()


class FiftyKills(Fault):
    """Fifty kills during a wave: always of a running replica, at any moment of its life."""

    name = "fifty-kills"
    seconds = 90
    kills = 50
    bound_seconds = 90

    def prepare(self, scene: Scene) -> None:
        self._killed = 0

    def tick(self, scene: Scene, elapsed_seconds: float) -> None:
        while self._killed < min(self.kills, elapsed_seconds / self.seconds * self.kills):
            running = [one for one in scene.replicas.all if one.operator.process.is_running]
            if not running:
                return
            self._killed += 1
            time.sleep(scene.random.uniform(0, 1))  # a kill may come at any moment of a wave
            leading = [one for one in running if one.leads]
            scene.random.choice(leading or running).kill(again=True)


class LeaderStopped(Fault):
    """The leader is suspended for half a minute (SIGSTOP), and does not notice that when it resumes."""

    name = "leader-stopped"
    seconds = 30
    staleness_seconds = 2

    def start(self, scene: Scene) -> None:
        self._leader = scene.replicas.leader()
        os.kill(self._leader.pid, signal.SIGSTOP)

    def end(self, scene: Scene) -> None:
        os.kill(self._leader.pid, signal.SIGCONT)


class Upgrade(Fault):
    """A rolling upgrade in a wave: a new replica comes for each old one, which ends in order."""

    name = "upgrade"
    seconds = 30

    def prepare(self, scene: Scene) -> None:
        self._old = list(scene.replicas.all)
        self._replaced = 0

    def tick(self, scene: Scene, elapsed_seconds: float) -> None:
        if self._replaced < len(self._old) and elapsed_seconds >= 12 * self._replaced:
            old = self._old[self._replaced]
            self._replaced += 1
            new = scene.replicas.add(f"{old.name[:10]}-{scene.random.randrange(16**4):04x}")
            new.start()
            wait_until(new.operator.is_live, 60, f"{new.name} to live")
            scene.replicas.remove(old)


class NoLease(Fault):
    """By mistake a third operator runs with a Lease of its own, in another namespace."""

    name = "no-lease"
    seconds = 25
    excused: ClassVar[Mapping[str, str]] = {
        "not_leader": "each of two Leases has its leader",
        "over": "each leader has its own rates, and counts for itself what it has just requested",
        "doubled": "both request the same eviction; the second one finds a pod that is terminating",
    }

    def start(self, scene: Scene) -> None:
        client = scene.plane.client
        if client.find("namespaces", STRAY) is None:
            client.create_namespace(STRAY)
            rules = [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]}]
            client.create("roles", {"metadata": {"name": STRAY}, "rules": rules}, STRAY)
            account = {"kind": "ServiceAccount", "name": OPERATOR_SERVICE_ACCOUNT, "namespace": OPERATOR_NAMESPACE}
            role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": STRAY}
            body = {"metadata": {"name": STRAY}, "roleRef": role, "subjects": [account]}
            client.create("rolebindings", body, STRAY)
        self._third = scene.replicas.add(f"stray-{scene.random.randrange(16**4):04x}", STRAY)
        self._third.start()
        wait_until(lambda: self._third.leads, 90, "the third one to lead")

    def end(self, scene: Scene) -> None:
        scene.replicas.remove(self._third)


class Clock(Fault):
    """The clock of the operator's processes is stepped, by libfaketime; only theirs, and not the monotonic one."""

    step_seconds: int
    seconds = 25
    excused: ClassVar[Mapping[str, str]] = {
        "early": "the moment of a deadline is read from the clock: a clock that is stepped ahead makes it earlier",
    }

    def prepare(self, scene: Scene) -> None:
        self._file = scene.plane.folder / "faketime"
        self._file.write_text("+0")
        scene.replicas.restart(self._environment())

    def _environment(self) -> Mapping[str, str]:
        return {
            "LD_PRELOAD": str(FAKETIME),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_CACHE_DURATION": "1",
        }

    def start(self, scene: Scene) -> None:
        self._file.write_text(f"{self.step_seconds:+d}")

    def end(self, scene: Scene) -> None:
        self._file.write_text("+0")

    def clear(self, scene: Scene) -> None:
        scene.replicas.restart({})


class ClockAhead(Clock):
    """The clock of the operator is stepped an hour ahead, and later back."""

    name = "clock-ahead"
    step_seconds = AN_HOUR
    excused: ClassVar[Mapping[str, str]] = {
        **Clock.excused,
        "lost": "graces that began while the clock was ahead count from its times, until the operator starts again",
    }


class ClockBehind(Clock):
    """The clock of the operator is stepped an hour back, and later ahead."""

    name = "clock-behind"
    step_seconds = -AN_HOUR


class ClockWrong(Clock):
    """The clock of the operator is an hour ahead when it starts, and is corrected later."""

    name = "clock-wrong"
    excused: ClassVar[Mapping[str, str]] = {}

    def prepare(self, scene: Scene) -> None:
        self._file = scene.plane.folder / "faketime"
        self._file.write_text(f"{AN_HOUR:+d}")
        scene.replicas.restart(self._environment())

    def start(self, scene: Scene) -> None:
        """Do nothing: the clock is wrong already."""


class Memory(Fault):
    """The leader gets no more memory from the system than it has (RLIMIT_AS); what ends is started again."""

    name = "memory"
    seconds = 30

    def start(self, scene: Scene) -> None:
        self._limited: Replica = scene.replicas.leader()
        self._pid = self._limited.pid
        pages = int(Path(f"/proc/{self._pid}/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + 2**20
        resource.prlimit(self._pid, resource.RLIMIT_AS, (most, most))

    def end(self, scene: Scene) -> None:
        if self._limited.operator.process.is_running and self._limited.pid == self._pid:
            self._limited.kill(again=True)

"""One operator of a fleet: a machine, the streams that feed it, and the calls that it makes."""

from collections import Counter
from functools import partial
from random import Random
from typing import Any

import msgspec

from simulated.cluster import START
from simulated.fleet.checks import Checks
from simulated.fleet.decoding import node_of, pod_event
from simulated.fleet.known import Known
from simulated.fleet.server import KINDS, Json, Server
from simulated.fleet.stream import Stream
from simulated.fleet.writes import Api
from taintwarden.engine.guard import GuardRecord
from taintwarden.engine.interning import Interner
from taintwarden.engine.machine import Machine, commands, events
from taintwarden.engine.model import Instant

RESET = "3"
"""What an annotation that asks for a reset says."""
WATCHED = ("nodes", "pods", "namespaces")
"""Without these nothing is evicted. Policies come another way."""


class Replica:
    """A process that is started and killed; each life begins with nothing in memory.

    Args:
        server: what it watches.
        api: what it calls.
        chance: how long everything takes.
        options: of the machine.

    """

    def __init__(self, server: Server, api: Api, chance: Random, **options: Any) -> None:
        self.server = server
        self.api = api
        self.clock_step = 0.0
        self.life = 0
        self.machine: Machine | None = None
        self.leading = False
        self.known = Known()
        self.commanded: Counter[str] = Counter()
        """The commands of each kind in all its lives."""
        self.checks = Checks(self)
        self.streams: dict[str, Stream] = {}
        self._chance = chance
        self._options = options
        self._interner = Interner()
        self._guards: dict[str, tuple[str, bytes | None]] = {}
        self._granted: dict[str, bool] = {}
        self._wake = 0

    @property
    def now(self) -> Instant:
        """Both of its clocks; a step moves only the one on the wall."""
        return Instant(START + self.server.at + self.clock_step, 1_000.0 * self.life + self.server.at)

    # -- lives --------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """List everything, and follow."""
        self.life += 1
        self.machine = Machine(**self._options)
        self.known, self.checks = Known(), Checks(self)
        self._guards, self._granted, self.leading = {}, {}, False
        life = self.life
        for kind in ("policies", "namespaces", "nodes", "pods"):
            stream = Stream(self.server, kind, self, self._chance, lambda: self.life == life)
            self.streams[kind] = stream
            stream.list()
        self.feed(events.Synced())

    def kill(self) -> None:
        """Memory is gone; calls that were sent are still carried out."""
        if self.machine is None:
            return
        self.machine, self.leading = None, False
        self.life += 1
        for stream in self.streams.values():
            stream.close()

    def lead(self, *, leading: bool) -> None:
        """It holds the lease, or has lost it."""
        if self.machine is None or leading == self.leading:
            return
        if leading:
            self.known.policies = dict(self.server.objects["policies"])  # read afresh, before it leads
            self._saw_policies()
            for name in self._guards:
                self._restore_guard(name)
        self.leading, self._granted = leading, {}
        self.checks.led(leading=leading)
        self.feed(events.LeadershipChanged(leading))
        self._grant_resets()

    # -- what it is told ----------------------------------------------------------------------------------------------

    def feed(self, event: events.Event) -> None:
        """Hand the machine an event and carry out what it commands; wake it when it wants that."""
        self._step(event)
        for _ in range(10_000):
            after = None if self.machine is None else self.machine.wake_after(self.now)
            if after != 0.0:
                break
            self._step(events.Woke())
        else:
            msg = "the machine never comes to rest"
            raise AssertionError(msg)
        self._wake += 1
        if after is not None:  # a millisecond of floating point must not make the clock stand still
            self.server.later(max(after, 0.001), partial(self._time_passed, self._wake))

    def _time_passed(self, wake: int) -> None:
        if wake == self._wake and self.machine is not None:
            self.feed(events.Woke())

    def _step(self, event: events.Event) -> None:
        if self.machine is None:
            return
        self.checks.heard(event)
        for command in self.machine.step(event, self.now):
            self.checks.commanded(command)
            self._carry_out(command)

    def saw(self, kind: str, key: str, obj: Json | None, *, listed: bool) -> None:
        """An object is like this, or gone."""
        before = self.known.pods.get(key)
        self.known.saw(kind, key, obj, self.now.wall, listed=listed, leading=self.leading)
        match kind:
            case "nodes":
                self.feed(events.NodeGone(key) if obj is None else events.NodeSeen(node_of(key, obj), listed))
            case "pods":
                self._saw_pod(key, obj, before)
            case "namespaces":
                labels = None if obj is None else obj["labels"]
                self.feed(events.NamespaceGone(key) if labels is None else events.NamespaceSeen(key, labels))
            case "policies" if not listed:
                self._saw_policies()

    def _saw_pod(self, uid: str, obj: Json | None, before: Json | None) -> None:
        if obj is None or obj["stopping"]:
            self.checks.gone(uid)
        if obj is None:
            self.feed(events.PodGone(uid, "" if before is None else before["node"]))
        else:
            self.feed(pod_event(uid, obj, self._interner))

    def listed(self, kind: str, keys: frozenset[str], version: int) -> None:
        """A complete list ended."""
        gone = [name for name in getattr(self.known, kind) if name not in keys]
        self.known.listed(kind, keys)
        match kind:
            case "nodes":
                self.feed(events.NodesListed(keys, version))
            case "pods":
                for uid in gone:
                    self.checks.gone(uid)
                self.feed(events.PodsListed({uid: pod["node"] for uid, pod in self.known.pods.items()}))
            case "namespaces":
                for name in gone:
                    self.feed(events.NamespaceGone(name))
            case _:
                self._saw_policies()

    def reached(self, kind: str, version: int) -> None:
        """Everything up to this version was delivered."""
        if kind == "nodes":
            self.feed(events.NodesReached(version))

    def live(self, kind: str, *, live: bool) -> None:
        """Whether a stream may be relied upon."""
        if kind in WATCHED:
            self.checks.live(kind, live=live)
            self.feed(events.ViewChanged(kind, live))

    def _saw_policies(self) -> None:
        stored = self.known.policies
        self.checks.edited()
        self.feed(events.PoliciesChanged(tuple(one["policy"] for one in stored.values())))
        for name, one in stored.items():
            if self._guards.get(name) != (one["policy"].uid, one["guard"]):
                self._guards[name] = (one["policy"].uid, one["guard"])
                self._restore_guard(name)
        self._guards = {name: one for name, one in self._guards.items() if name in stored}
        self._grant_resets()

    def _restore_guard(self, name: str) -> None:
        record = _record(self._guards[name][1])
        is_asked = self.known.policies[name]["reset"] if name in self.known.policies else False
        self.feed(events.GuardRestored(name, record if is_asked else msgspec.structs.replace(record, reset="")))

    def _grant_resets(self) -> None:
        for name, one in list(self.known.policies.items()):
            if not one["reset"]:
                if self._granted.pop(name, False):
                    self.feed(events.GuardReset(name, ""))
            elif self.leading and name not in self._granted:
                self._granted[name] = True
                self.feed(events.GuardReset(name, RESET))

    # -- what it does -------------------------------------------------------------------------------------------------

    def _carry_out(self, command: commands.Command) -> None:
        life = self.life

        def answer(event: events.Event) -> None:
            if life == self.life:
                self.feed(event)

        match command:
            case commands.Evict():
                self.api.evict(command, self, answer)
            case commands.CheckNode():
                reached = max((pod["version"] for pod in self.known.pods.values()), default=0)

                def checked(name: str, version: int | None) -> None:
                    if life == self.life:
                        self._checked(name, version)

                self.api.check(command, checked, reached)
            case commands.SaveHistory() | commands.SaveLabels() | commands.SaveGuard() | commands.ClearGuardReset():
                self.api.write(command, self.known, answer)
            case _:
                pass

    def _checked(self, name: str, version: int | None) -> None:
        if version is None:
            self.feed(events.CheckFailed(name))
            return
        obj = self.server.get("nodes", name)
        self.feed(events.NodeChecked(name, None if obj is None else obj["version"], version))


def _record(stored: bytes | None) -> GuardRecord:
    return GuardRecord() if stored is None else msgspec.json.decode(stored, type=GuardRecord)


def all_streams(replica: Replica) -> list[Stream]:
    """Those that can fail."""
    return [replica.streams[kind] for kind in KINDS if kind in WATCHED]

"""How a replica learns of the objects of one kind: a watch that lags, hangs, is cut, resumes, or lists again."""

from collections.abc import Callable
from enum import Enum, auto
from random import Random
from typing import Protocol

from simulated.fleet.server import Json, Server


class State(Enum):
    """What a stream does."""

    LIVE = auto()
    HUNG = auto()
    """Nothing comes, and nobody has noticed."""
    CUT = auto()
    CATCHING_UP = auto()
    """It is open again, and what happened meanwhile is being delivered."""


class Receiver(Protocol):
    """Who is told."""

    def saw(self, kind: str, key: str, obj: Json | None, *, listed: bool) -> None:
        """An object is like this, or gone."""

    def listed(self, kind: str, keys: frozenset[str], version: int) -> None:
        """A complete list ended."""

    def reached(self, kind: str, version: int) -> None:
        """Everything up to this version was delivered."""

    def live(self, kind: str, *, live: bool) -> None:
        """Whether it may be relied upon."""


class Stream:
    """One watch of one replica.

    Args:
        server: what is watched.
        kind: of which objects.
        receiver: is told.
        chance: how long everything takes.
        is_alive: whether the process that watches still exists.

    """

    def __init__(
        self, server: Server, kind: str, receiver: Receiver, chance: Random, is_alive: Callable[[], bool]
    ) -> None:
        self.state = State.CUT
        self._server = server
        self._kind = kind
        self._receiver = receiver
        self._chance = chance
        self._is_alive = is_alive
        self._position = 0
        self._target = 0
        self._is_expired = False
        """The server does not know its position: only a list helps."""
        server.changed.append(self._changed)
        server.restored.append(self._restored)

    def close(self) -> None:
        """The process is gone."""
        self._server.changed.remove(self._changed)
        self._server.restored.remove(self._restored)

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        self._server.later(seconds, lambda: action() if self._is_alive() else None)

    def _changed(self, kind: str) -> None:
        if kind == self._kind and self.state is State.LIVE:
            self._later(self._chance.uniform(0.0, 0.1), self._pump)

    def _restored(self) -> None:
        """Its position means nothing any more."""
        self._is_expired = True
        self.cut()
        self._later(self._chance.uniform(0.1, 3.0), self.list)

    # -- what can happen to it ----------------------------------------------------------------------------------------

    def hang(self) -> None:
        """Nothing comes any more, and nobody notices."""
        if self.state is State.LIVE:
            self.state = State.HUNG

    def cut(self) -> None:
        """It is noticed that nothing comes."""
        if self.state in (State.LIVE, State.HUNG):
            self._receiver.live(self._kind, live=False)
        self.state = State.CUT

    def resume(self) -> None:
        """It is open again: what happened meanwhile comes bit by bit, in order."""
        if self._is_expired:
            self.list()
        elif self.state is State.CUT:
            self.state, self._target = State.CATCHING_UP, self._server.version
            self._catch_up()

    def list(self) -> None:
        """It was away for too long: everything is listed, and what is not in the list is gone."""
        if self.state is not State.CUT:
            return
        version, self._is_expired = self._server.version, False
        objects = dict(self._server.objects[self._kind])
        for key, obj in objects.items():
            self._receiver.saw(self._kind, key, obj, listed=True)
        self._position = version
        self._receiver.listed(self._kind, frozenset(objects), version)
        self.state, self._target = State.CATCHING_UP, version
        self._catch_up()

    def mend(self) -> None:
        """However it is, it works again."""
        if self.state in (State.LIVE, State.CATCHING_UP):
            return
        self.cut()
        self.list()

    # -- delivery -----------------------------------------------------------------------------------------------------

    def _pump(self) -> None:
        if self.state is State.LIVE:
            self._deliver(1_000_000)

    def _catch_up(self) -> None:
        if self.state is not State.CATCHING_UP:
            return
        self._deliver(self._chance.choice([1, 2, 10]))
        if any(self._position < version <= self._target for version, _, _ in self._server.logs[self._kind]):
            self._later(self._chance.choice([0.01, 0.3, 1.0]), self._catch_up)
            return
        self._position = max(self._position, self._target)
        self._receiver.reached(self._kind, self._position)
        self.state = State.LIVE
        self._receiver.live(self._kind, live=True)
        self._pump()

    def _deliver(self, most: int) -> None:
        log = self._server.logs[self._kind]
        first = len(log)
        while first and log[first - 1][0] > self._position:
            first -= 1
        for version, key, obj in log[first : first + most]:
            self._position = version
            self._receiver.saw(self._kind, key, obj, listed=False)
            self._receiver.reached(self._kind, version)

"""How a replica learns of the objects of one kind: a watch that lags, falls silent, is cut, resumes, or lists again.

The rules are those of ``kube/watch/watching.py``: a watch that was away for up to ``GAP_SECONDS`` counts as up to date;
after that it has to deliver everything up to a version that was read when it was open again. A connection that is open
and brings nothing is trusted until its idle time is over.
"""

from collections import deque
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulated.world.replica import Replica

GAP_SECONDS = 2.0
IDLE_SECONDS = 90.0
BOOKMARK_SECONDS = 60.0
LAG_SECONDS = 0.1
SETTLED_SECONDS = 0.2


class State(Enum):
    """State of a stream."""

    LIVE = auto()
    SILENT = auto()
    CUT = auto()
    CATCHING_UP = auto()


class Stream:
    """One watch of one replica in one life."""

    def __init__(self, replica: "Replica", kind: str) -> None:
        self.kind = kind
        self._state = State.CUT
        self.spoke_at = 0.0
        """When anything came last."""
        self.lag = 0.0
        self.replica = replica
        self._world = replica.world
        self._life = replica.life
        self._position = 0
        self._goal = 0
        self._is_expired = True
        self._live = False
        self._well_at = 0.0
        self._cut_at = 0.0
        self._due: deque[float] = deque()
        """When what is in the log beyond the position arrives."""

    @property
    def is_well(self) -> bool:
        """True if stored changes arrive soon."""
        return (
            self.state is State.LIVE
            and self._live
            and self.lag == 0.0
            and self._well_at + SETTLED_SECONDS <= self._world.agenda.now
        )

    @property
    def state(self) -> State:
        """The current state."""
        return self._state

    @state.setter
    def state(self, state: State) -> None:
        self._state = state
        self._world.record.note_operators()

    def slow_down(self, seconds: float) -> None:
        """Delay all further events by ``seconds``."""
        self._well_at, self.lag = self._world.agenda.now + self.lag, seconds

    def _after(self, seconds: float, action: Any) -> None:
        self._world.agenda.after(seconds, lambda: action() if self._is_alive else None)

    @property
    def _is_alive(self) -> bool:
        return self.replica.life == self._life

    # -- what the store does ------------------------------------------------------------------------------------------

    def changed(self, key: str) -> None:
        """An object of this kind changed in the store."""
        if self.state is State.LIVE:
            self._expect(key)

    def _expect(self, key: str) -> None:
        world = self._world
        count = len(world.store.past[self.kind][key].times)
        lag = world.noise.between(0.0, LAG_SECONDS, "lag", self.replica.name, self.kind, key, count) + self.lag
        at = max(world.agenda.now + lag, self._due[-1] if self._due else 0.0)
        self._due.append(at)
        world.agenda.at(at, self._arrive)

    def _arrive(self) -> None:
        if self._is_alive and self.state is State.LIVE and self._due:
            self._due.popleft()
            self._deliver(1)

    def restored(self) -> None:
        """The store was replaced by an older one: the position means nothing."""
        self._is_expired = True
        if self.state is not State.CUT:
            self.cut()
            seconds = self._world.noise.between(0.1, 3.0, "restored", self.replica.name, self.kind, self._life)
            self._after(seconds, self.resume)

    # -- what can happen to it ----------------------------------------------------------------------------------------

    def silence(self, seconds: float) -> None:
        """No event arrives, unnoticed, until the idle time is over or the connection breaks."""
        if self.state is not State.LIVE:
            return
        self.state = State.SILENT
        self._due.clear()
        self._after(min(seconds, IDLE_SECONDS), self._end_of_silence)

    def _end_of_silence(self) -> None:
        if self.state is State.SILENT:
            self.cut()
            self._after(0.3, self.resume)

    def cut(self) -> None:
        """The connection is broken, and that is noticed."""
        if self.state is State.CUT:
            return
        was_up_to_date = self.state is not State.CATCHING_UP
        self.state, self._cut_at = State.CUT, self._world.agenda.now
        self._due.clear()
        if was_up_to_date:
            self._after(GAP_SECONDS, lambda: self._gap_is_over(self._cut_at))
        else:
            self._tell(live=False)

    def _gap_is_over(self, cut_at: float) -> None:
        if self.state is State.CUT and cut_at == self._cut_at:
            self._tell(live=False)

    def resume(self) -> None:
        """Open the stream again at its last version; missed events arrive one by one, in order."""
        if self.state is not State.CUT:
            return
        if self._is_expired:
            self.list_again()
            return
        self._goal = self._world.store.version
        self.state = State.CATCHING_UP
        self._catch_up()

    def list_again(self) -> None:
        """Everything is listed; what the list lacks is gone."""
        if self.state is not State.CUT:
            return
        store, replica = self._world.store, self.replica
        version, objects = store.version, dict(store.objects[self.kind])
        self._is_expired = False
        for key, obj in objects.items():
            replica.receive(self.kind, key, obj, listed=True)
        replica.receive_list(self.kind, objects, version)
        self._position, self._goal = version, version
        self.spoke_at = self._world.agenda.now
        self.state = State.CATCHING_UP
        self._catch_up()

    def relist(self) -> None:
        """The watch breaks, and everything is listed."""
        self.cut()
        self.list_again()

    def mend(self) -> None:
        """However it is, it works from now on."""
        self.lag = 0.0
        if self.state is State.SILENT:
            self.cut()
        if self.state is State.CUT:
            self.resume()

    # -- delivery -----------------------------------------------------------------------------------------------------

    def _catch_up(self) -> None:
        if self.state is not State.CATCHING_UP:
            return
        noise, log = self._world.noise, self._world.store.log[self.kind]
        question = ("catch up", self.replica.name, self.kind, self._position)
        self._deliver(noise.pick((1, 3, 20, 20), *question))
        if any(self._position < version <= self._goal for version, _, _ in reversed(log)):
            self._after(noise.pick((0.01, 0.05, 0.5), *question), self._catch_up)
            return
        self._position = max(self._position, self._goal)
        self.state, self._well_at = State.LIVE, self._world.agenda.now
        self.replica.receive_progress(self.kind, self._position)
        self._tell(live=True)
        for _, key, _ in self._beyond():
            self._expect(key)

    def _tell(self, *, live: bool) -> None:
        if live != self._live:
            self._live = live
            self.replica.receive_liveness(self.kind, live=live)

    def _beyond(self) -> list[tuple[int, str, Any]]:
        log = self._world.store.log[self.kind]
        first = len(log)
        while first and log[first - 1][0] > self._position:
            first -= 1
        return log[first:]

    def _deliver(self, most: int) -> None:
        for version, key, obj in self._beyond()[:most]:
            self._position = version
            self.spoke_at = self._world.agenda.now
            self.replica.receive(self.kind, key, obj, listed=False)
            self.replica.receive_progress(self.kind, version)

    def bookmark(self) -> None:
        """The server states how far it is, if everything was delivered."""
        if self.state is State.LIVE and not self._due:
            self._position = max(self._position, self._world.store.version)
            self.spoke_at = self._world.agenda.now
            self.replica.receive_progress(self.kind, self._position)

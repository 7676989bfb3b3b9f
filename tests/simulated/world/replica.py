"""One operator: a machine with its clocks, streams, queue of work and calls. A life begins with nothing in memory."""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from simulated.world.adapter import Engine, Order
from simulated.world.objects import Node
from simulated.world.store import ALL_KINDS, KINDS
from simulated.world.streams import BOOKMARK_SECONDS, Stream

if TYPE_CHECKING:
    from simulated.world.world import World

LONGEST_SLEEP_SECONDS = 60.0
EVENTS_BETWEEN_WAKES = 8
BEHIND_SECONDS = 0.5
MOST_STEPS_AT_ONCE = 2_000
Work = Callable[[], list[Order]]


class Replica:
    """A process that is started, frozen and killed.

    Args:
        world: everything else.
        name: of this replica, permanent.
        skew: seconds that its wall clock is ahead.
        options: of the machine.

    """

    def __init__(self, world: "World", name: str, skew: float, **options: Any) -> None:
        self.world = world
        self.name = name
        self.skew = skew
        self.life = 0
        self.engine: Engine | None = None
        self.term = 0
        """Term of the leadership that the machine knows of; 0: it does not lead."""
        self.synced_at: float | None = None
        self.known: dict[str, dict[str, Any]] = {kind: {} for kind in ALL_KINDS}
        self.streams: dict[str, Stream] = {}
        self.renews = True
        """True if the last renewal of the Lease succeeded, as far as it knows."""
        self.frozen_until = 0.0
        self.behind = (0.0, 0.0)
        """When its view of nodes was behind last, from when until when."""
        self.skews: list[float] = [skew]
        """Every skew that its clock ever had."""
        self._options = options
        self._inbox: deque[tuple[Work, float, float]] = deque()
        self._busy_until = 0.0
        self._is_pumping = False
        self._alarm = 0
        self._steps_at = (0.0, 0)

    # -- clocks -------------------------------------------------------------------------------------------------------

    def wall(self) -> float:
        """Its wall clock."""
        return round(self.world.agenda.wall + self.skew, 6)

    def monotonic(self) -> float:
        """Its monotonic clock, which is another one in each life."""
        return round(1_000.0 * self.life + self.world.agenda.now, 6)

    def step_clock(self, skew: float) -> None:
        """Its wall clock is set."""
        self.skew = skew
        self.skews.append(skew)

    # -- lives --------------------------------------------------------------------------------------------------------

    @property
    def is_alive(self) -> bool:
        """True if the process exists and runs."""
        return self.engine is not None and self.world.agenda.now >= self.frozen_until

    def start(self) -> None:
        """List everything, then decide."""
        if self.engine is not None:
            return
        self.life += 1
        self.engine = Engine(self.wall, self.monotonic, **self._options)
        self.known, self.term, self.synced_at = {kind: {} for kind in ALL_KINDS}, 0, None
        self.renews = True
        self._inbox.clear()
        self._busy_until = self.frozen_until = self.world.agenda.now
        followed = ALL_KINDS if self.world.plan.has_devices else KINDS
        self.streams = {kind: Stream(self, kind) for kind in followed}
        waiting, of_devices = dict.fromkeys(KINDS), dict.fromkeys(followed[len(KINDS) :])
        for kind in KINDS:
            seconds = 0.0 if kind == "policies" else self._between(0.01, 0.4, "list", kind)
            self._after(seconds, lambda kind=kind: self._list(kind, waiting))
        for kind in list(of_devices):
            self._after(self._between(0.01, 3.0, "list", kind), lambda kind=kind: self._list_devices(kind, of_devices))
        self._after(self._between(1.0, BOOKMARK_SECONDS, "bookmarks"), self._bookmarks)

    def _list(self, kind: str, waiting: dict[str, None]) -> None:
        self.streams[kind].list_again()
        waiting.pop(kind, None)
        if not waiting:
            self.post(self._synced)

    def _list_devices(self, kind: str, waiting: dict[str, None]) -> None:
        self.streams[kind].list_again()
        waiting.pop(kind, None)
        if not waiting:
            self.post(self._engine.devices_known)

    def _synced(self) -> list[Order]:
        self.synced_at = self.world.agenda.now
        self.world.lease.candidate(self)
        return [] if self.engine is None else self.engine.synced()

    @property
    def is_behind(self) -> bool:
        """True if work waits for its processor."""
        return bool(self._inbox) and self.world.agenda.now - self._inbox[0][2] > BEHIND_SECONDS

    def kill(self) -> None:
        """Memory is gone, and with it what was not sent yet."""
        if self.engine is None:
            return
        self.engine, self.term, self.synced_at = None, 0, None
        self.world.record.note_operators()
        self.life += 1
        self._inbox.clear()
        self.world.lease.died(self)

    def freeze(self, seconds: float) -> None:
        """SIGSTOP: nothing runs for a while, and nothing is lost."""
        self.frozen_until = max(self.frozen_until, self.world.agenda.now + seconds)
        self.world.lease.trouble(self, seconds)
        self.world.agenda.at(self.frozen_until, self._pump)

    def thaw(self) -> None:
        """Process the events that wait."""
        if self.engine is not None:
            self._pump()

    def _after(self, seconds: float, action: Callable[[], None]) -> None:
        life = self.life
        self.world.agenda.after(seconds, lambda: action() if life == self.life else None)

    def _between(self, low: float, high: float, *question: object) -> float:
        return self.world.noise.between(low, high, self.name, self.life, *question)

    def _bookmarks(self) -> None:
        for stream in self.streams.values():
            stream.bookmark()
        self._after(BOOKMARK_SECONDS, self._bookmarks)

    # -- input ---------------------------------------------------------------------------------------------------------

    def receive(self, kind: str, key: str, obj: Any, *, listed: bool) -> None:
        """An object is like this, or gone."""
        self.post(lambda: self._take(kind, key, obj, listed=listed))

    def _take(self, kind: str, key: str, obj: Any, *, listed: bool) -> list[Order]:
        assert self.engine is not None
        known = self.known[kind]
        before = known.get(key)
        if obj is None:
            known.pop(key, None)
        else:
            if kind != "nodes" or listed or before is None or obj.version >= before.version:
                known[key] = obj  # else a direct read was ahead of the stream
        if kind == "policies":
            return [] if listed else self.engine.policies(known.values(), changed=[key])
        if kind == "profiles":
            return self.engine.profile(key, obj)
        return self.engine.saw(kind, key, obj, before, listed=listed)

    def read_node(self, name: str, node: Node | None, begun_at: int) -> list[Order]:
        """A direct read of a node was answered. Only its version counts: the content comes through the stream."""
        return self._engine.checked(name, node, begun_at)

    def receive_list(self, kind: str, objects: dict[str, Any], version: int) -> None:
        """A complete list ended."""
        self.post(lambda: self._take_list(kind, objects, version))

    def _take_list(self, kind: str, objects: dict[str, Any], version: int) -> list[Order]:
        assert self.engine is not None
        known = self.known[kind]
        gone = [key for key in known if key not in objects]
        if kind == "policies":
            for key in gone:
                del known[key]
            return self.engine.policies(known.values(), changed=[*objects, *gone])
        out: list[Order] = []
        if kind in ("nodes", "pods"):
            for key in gone:
                known.pop(key)
        else:
            for key in gone:
                out += self._take(kind, key, None, listed=True)
        return out + self.engine.listed(kind, objects, version)

    def receive_progress(self, kind: str, version: int) -> None:
        """A stream has delivered everything up to a version."""
        if kind == "nodes":
            self.post(lambda: self._engine.reached(version))

    def receive_liveness(self, kind: str, *, live: bool) -> None:
        """A stream is up to date, or is not."""
        self.post(lambda: self._engine.live(kind, live=live))

    @property
    def _engine(self) -> Engine:
        assert self.engine is not None
        return self.engine

    def read_policies(self) -> None:
        """Read all policies past every watch, as before taking over."""
        objects, version = dict(self.world.store.objects["policies"]), self.world.store.version
        for key, obj in objects.items():
            self.known["policies"][key] = obj
        self.receive_list("policies", objects, version)

    def lead(self, *, term: int) -> None:
        """Leadership of this term was gained, or (0) lost."""
        self.post(lambda: self._lead(term))

    def renewed(self, *, succeeded: bool) -> None:
        """A renewal of the Lease was answered, or was not."""
        if self.engine is not None and succeeded != self.renews:
            self.renews = succeeded
            self.world.record.note_operators()
            self.post(lambda: self._engine.renewed(succeeded=succeeded))

    def _lead(self, term: int) -> list[Order]:
        if term == self.term:
            return []
        self.term = term
        self.world.record.note_operators()
        return self._engine.lead(leading=bool(term), term=term)

    # -- work ---------------------------------------------------------------------------------------------------------

    def post(self, work: Work) -> None:
        """Have something done when the process comes to it."""
        if self.engine is None:
            return
        self._inbox.append((work, self.world.cpu.event, self.world.agenda.now))
        self._pump()

    def _pump(self) -> None:
        """Work off the queue, with a wake between batches as the loop of the controller does."""
        if self._is_pumping:
            return
        self._is_pumping = True
        try:
            while self.engine is not None:
                now = self.world.agenda.now
                if now < self.frozen_until:
                    return
                if now < self._busy_until:
                    self._after(self._busy_until - now, self._pump)
                    return
                if not self._batch() and not self._wake():
                    return
        finally:
            self._is_pumping = False

    def _batch(self) -> bool:
        """Some events. Returns whether there may be more to do now."""
        for _ in range(EVENTS_BETWEEN_WAKES):
            if not self._inbox or self.engine is None:
                return False
            work, cost, _ = self._inbox.popleft()
            self._run(work)
            if cost:
                self._busy_until = self.world.agenda.now + cost
                return True
        if self.engine is not None and self.engine.wake_after() == 0.0:
            self._run(self.engine.wake)
        return True

    def _wake(self) -> bool:
        """Wake the machine if it wants that, else set the alarm. Returns whether there may be more to do now."""
        if self.engine is None:
            return False
        after = self.engine.wake_after()
        if after == 0.0:
            self._count_steps()
            if self.engine is None:
                return False
            self._run(self.engine.wake)
            if self.world.cpu.wake:
                self._busy_until = self.world.agenda.now + self.world.cpu.wake
            return True
        self._alarm += 1
        alarm = self._alarm
        seconds = LONGEST_SLEEP_SECONDS if after is None else min(max(after, 0.001), LONGEST_SLEEP_SECONDS)
        if self.synced_at is not None:
            self._after(seconds, lambda: self._ring(alarm))
        return False

    def _ring(self, alarm: int) -> None:
        if alarm == self._alarm:
            self.post(self._engine.wake)

    def _count_steps(self) -> None:
        at, count = self._steps_at
        now = self.world.agenda.now
        self._steps_at = (now, count + 1 if at == now else 1)
        if count > MOST_STEPS_AT_ONCE:
            self._end(RuntimeError("it never comes to rest"))

    def _run(self, work: Work) -> None:
        """One piece of work; an error in it ends the process, as it does in an operator."""
        try:
            out = work()
        except Exception as error:  # noqa: BLE001 - whatever it is, a judge states it
            self._end(error)
        else:
            self._carry_out(out)

    def _end(self, error: Exception) -> None:
        self.world.record.crashed(self, error)
        self.kill()
        self.world.agenda.after(1.0, self.start)

    def _carry_out(self, out: list[Order]) -> None:
        life = self.life
        for one in out:
            if life != self.life:
                return
            self.world.record.ordered(one)
            self.world.wire.send(self, one)

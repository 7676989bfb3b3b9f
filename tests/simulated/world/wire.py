"""Every request of an operator as request, delay, effect and answer, each of which may be lost, late or doubled.

A request waits between the decision and its socket (connection, credentials, a slot), between the socket and its effect
(the network, admission), and between the effect and the answer. ``Weather`` makes some of them worse for a while.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from simulated.world.adapter import Order
from simulated.world.server import DONE, Answer, status

if TYPE_CHECKING:
    from simulated.world.replica import Replica
    from simulated.world.world import World

TIMEOUT_SECONDS = 30.0
GUARD_TIMEOUT_SECONDS = 10.0
RECORD_TRIES = 5
TAKES_OVER = ("dry-run", "migrate", "take")
SLOTS = {"check": 8, "check-pod": 8, "history": 2}
"""Maximum number of such calls in progress at once: see ``controller/effector.py``."""
NO_ANSWER: Answer = (0, b"")
Done = Callable[[Answer], None]


@dataclass(frozen=True)
class Weather:
    """Fault of some requests for a while.

    ``behaviour``: ``connect`` (waits before its socket), ``slow`` (before its effect), ``slow-answer``, ``hang`` (a
    webhook that times out), ``deny`` (one that denies), ``postpone`` (one that migrates), ``throttle`` (flow
    control), ``error`` (500), ``large`` (etcd refuses the pod), ``drop`` (no effect, no answer), ``lost`` (an
    effect, no answer), ``late`` (the effect comes after its caller gave up), ``twice`` (the effect comes twice).

    ``kill`` and ``kill-first`` end the process when its request is carried out, or just before; it starts again
    ``seconds`` later. Webhooks that evict the pod themselves, ``seconds`` later (0: never): ``dry-run`` (the answer is
    201), ``migrate`` (429), ``take`` (403).
    """

    name: str
    behaviour: str
    begin: float
    end: float
    seconds: float = 0.0
    probability: float = 1.0
    what: tuple[str, ...] = ()
    """Kinds of orders; empty: all."""
    namespace: str = ""
    replica: str = ""


@dataclass
class Request:
    """One request of one order."""

    replica: "Replica"
    life: int
    order: Order
    verb: str


class Wire:
    """The calls of all replicas."""

    def __init__(self, world: "World") -> None:
        self.weather: list[Weather] = []
        self._world = world
        self._counts: dict[tuple[str, ...], int] = {}
        self._taken: dict[str, None] = {}
        """UIDs of pods that a webhook evicts itself."""
        self._slots: dict[tuple[str, int, str], tuple[list[int], deque[Callable[[], None]]]] = {}

    def clear_up(self) -> None:
        """All weather ends now; requests in progress keep their faults."""
        now = self._world.agenda.now
        self.weather = [replace(one, end=min(one.end, now)) for one in self.weather]

    # -- orders -------------------------------------------------------------------------------------------------------

    def send(self, replica: "Replica", order: Order) -> None:
        """Carry an order out, as the effector does."""
        if order.what in SLOTS:
            self._with_slot(replica, order)
        else:
            self._begin(replica, order, lambda: None)

    def _with_slot(self, replica: "Replica", order: Order) -> None:
        taken, waiting = self._slots.setdefault((replica.name, replica.life, order.what), ([0], deque()))

        def free() -> None:
            if waiting:
                waiting.popleft()()
            else:
                taken[0] -= 1

        def begin() -> None:
            self._begin(replica, order, free)

        if taken[0] < SLOTS[order.what]:
            taken[0] += 1
            begin()
        else:
            waiting.append(begin)

    def _begin(self, replica: "Replica", order: Order, free: Callable[[], None]) -> None:
        life, holds = replica.life, self._world.lease.holds(replica)

        def answer(work: Callable[[], list[Any]]) -> None:
            if replica.life == life:
                replica.post(work)
                free()

        if order.what not in ("check", "check-pod") and not holds:
            self._world.record.not_sent(order)
            self._world.agenda.after(0.0, lambda: answer(lambda: _engine(replica).not_sent(order)))
            return
        server, call = self._world.server, self._call
        match order.what:
            case "evict":

                def settled(found: Answer) -> None:
                    answer(lambda: _settled(replica, order, found))

                call(replica, order, "POST", lambda: server.evict(order.key, order.grace, order.version), settled)
            case "delete":
                self._delete(replica, order, lambda found: answer(lambda: _settled(replica, order, found)))
            case "check":
                self._check(replica, order, answer)
            case "check-pod":
                self._check_pod(replica, order, answer)
            case "condition":
                self._write_condition(
                    replica, order, lambda outcome, version: answer(lambda: _written(replica, order, outcome, version))
                )
            case "guard" | "places":
                self._write_record(
                    replica, order, lambda outcome: answer(lambda: self._stored(replica, order, outcome)), 1
                )
            case _:
                effects: dict[str, Callable[[], Answer]] = {
                    "history": lambda: server.write_history(order.key, order.uid, order.content, order.version),
                    "reset": lambda: server.clear_reset(order.key, order.uid),
                }

                def written(found: Answer) -> None:
                    version = int(found[1]) if found[0] == 200 and order.what != "reset" else -1
                    answer(lambda: _written(replica, order, _outcome(found), version))

                call(replica, order, "PATCH", effects[order.what], written)

    def _delete(self, replica: "Replica", order: Order, done: Done) -> None:
        """PATCH, then DELETE: between them time passes, too."""

        def noted(found: Answer) -> None:
            if 200 <= found[0] < 300:
                version = -1 if order.version == -1 else int(found[1])
                effect = lambda: self._world.server.delete(order.key, order.grace, version)  # noqa: E731
                self._call(replica, order, "DELETE", effect, done)
            else:
                done(found)

        self._call(replica, order, "PATCH", lambda: self._world.server.note(order.key, order.version), noted)

    def _check(self, replica: "Replica", order: Order, answer: Callable[[Callable[[], list[Any]]], None]) -> None:
        begun_at = _engine(replica).newest_version
        read: list[Any] = []

        def effect() -> Answer:
            read[:] = [self._world.store.get("nodes", order.key)]
            return DONE

        def done(found: Answer) -> None:
            if found[0] != 200:
                answer(lambda: _engine(replica).check_failed(order.key))
            else:
                answer(lambda: replica.read_node(order.key, read[0], begun_at))

        self._call(replica, order, "GET", effect, done)

    def _check_pod(self, replica: "Replica", order: Order, answer: Callable[[Callable[[], list[Any]]], None]) -> None:
        read: list[Any] = []

        def effect() -> Answer:
            read[:] = [self._world.store.get("pods", order.key)]
            return DONE

        def done(found: Answer) -> None:
            runs = None if found[0] != 200 else read[0] is not None and read[0].stopping_until is None
            answer(lambda: _engine(replica).pod_checked(order.key, runs))

        self._call(replica, order, "GET", effect, done)

    def _write_condition(self, replica: "Replica", order: Order, done: Callable[[str, int], None]) -> None:
        """Read the pods of the node if it is said to be drained, then PATCH."""
        read: list[Any] = []

        def effect() -> Answer:
            read[:] = [one for one in self._world.store.objects["pods"].values() if one.node == order.key]
            self._world.record.read_pods(order)
            return DONE

        def was_read(found: Answer) -> None:
            if found[0] != 200:
                done(_outcome(found), -1)
            elif not _engine(replica).knows_pods(order, read):
                done("outdated", -1)
            else:
                write()

        def write() -> None:
            server = self._world.server
            self._call(
                replica,
                order,
                "PATCH",
                lambda: server.write_condition(order.key, order.uid, order.content, order.version),
                lambda found: done(_outcome(found), int(found[1]) if found[0] == 200 else -1),
            )

        if order.content is not None and order.content[0] == "True":
            self._call(replica, order, "GET", effect, was_read)
        else:
            write()

    def _write_record(self, replica: "Replica", order: Order, done: Callable[[str], None], tries: int) -> None:
        """GET the version, PATCH on that condition; after a conflict again, while the lease is held."""
        read: list[Any] = []

        def effect() -> Answer:
            read[:] = [self._world.store.get("policies", order.key)]
            return DONE

        def was_read(found: Answer) -> None:
            policy = read[0] if read else None
            if found[0] != 200:
                done(_outcome(found))
            elif policy is None or policy.uid != order.uid:
                done("gone")
            elif (getattr(policy, order.what) or {}).get("term", 0) > order.content["term"]:
                done("failed")
            else:
                write = partial(self._world.server.write_record, order.key, policy.version, order.what, order.content)
                self._call(replica, order, "PATCH", write, was_written)

        def was_written(found: Answer) -> None:
            if found[0] == 409 and tries < RECORD_TRIES and self._world.lease.holds(replica):
                self._write_record(replica, order, done, tries + 1)
            else:
                done(_outcome(found))

        self._call(replica, order, "GET", effect, was_read)

    def _stored(self, replica: "Replica", order: Order, outcome: str) -> list[Any]:
        policy = self._world.store.get("policies", order.key)
        stored = () if policy is None else getattr(policy, order.what) or ()
        pruned = tuple(name for name in order.content if name not in stored) if outcome == "done" else ()
        return _engine(replica).written(order, outcome, -1, pruned)  # type: ignore[no-any-return]

    # -- requests -----------------------------------------------------------------------------------------------------

    def _call(self, replica: "Replica", order: Order, verb: str, effect: Callable[[], Answer], done: Done) -> None:
        key = (order.what, order.key, verb)
        number = self._counts[key] = self._counts.get(key, 0) + 1
        bad = [one for one in self.weather if self._meets(one, replica, order, (*key, number))]
        request = Request(replica, replica.life, order, verb)
        wait = self._between(0.0, 0.004, "connect", *key, number)
        wait += sum(one.seconds for one in bad if one.behaviour == "connect")
        question = (*key, number)
        self._world.agenda.after(wait, lambda: self._socket(request, effect, done, bad, question))

    def _meets(self, weather: Weather, replica: "Replica", order: Order, question: tuple[object, ...]) -> bool:
        if not weather.begin <= self._world.agenda.now < weather.end:
            return False
        if weather.what and order.what not in weather.what:
            return False
        if weather.replica and weather.replica != replica.name:
            return False
        if weather.namespace and self.namespace_of(order) != weather.namespace:
            return False
        return self._world.noise.happens(weather.probability, weather.name, *question)

    def namespace_of(self, order: Order) -> str:
        """The namespace of the pod of an order, or an empty text."""
        return order.raw.pod.namespace if order.what in ("evict", "delete") else ""

    def _socket(
        self,
        request: Request,
        effect: Callable[[], Answer],
        done: Done,
        bad: list[Weather],
        question: tuple[object, ...],
    ) -> None:
        """The bytes are handed to the socket, unless the order stands no longer."""
        replica, agenda = request.replica, self._world.agenda
        if replica.life != request.life:
            return
        if agenda.now < replica.frozen_until:
            agenda.at(replica.frozen_until, lambda: self._socket(request, effect, done, bad, question))
            return
        holds_lease = self._world.lease.holds(replica)
        if request.verb != "GET" and not _engine(replica).may_send(request.order, holds_lease=holds_lease):
            self._world.record.withheld(request)
            self._give_up(request, done)
            return
        self._world.record.sent(request)
        self._transmit(request, effect, done, bad, question)

    def _give_up(self, request: Request, done: Done) -> None:
        replica, order = request.replica, request.order
        if order.what in ("evict", "delete"):
            replica.post(lambda: _engine(replica).not_sent(order))
        else:
            done(NO_ANSWER)

    def _transmit(
        self,
        request: Request,
        effect: Callable[[], Answer],
        done: Done,
        bad: list[Weather],
        question: tuple[object, ...],
    ) -> None:
        agenda, seconds = self._world.agenda, {one.behaviour: one.seconds for one in bad}
        timeout = GUARD_TIMEOUT_SECONDS if request.order.what in ("guard", "places") else TIMEOUT_SECONDS
        there = self._between(0.004, 0.04, "there", *question) + seconds.get("slow", 0.0)
        back = self._between(0.002, 0.02, "back", *question) + seconds.get("slow-answer", 0.0)
        answered: list[bool] = []

        def answer(found: Answer) -> None:
            if not answered and request.replica.life == request.life:  # else its process has ended
                answered.append(True)
                self._world.record.answered(request, found)
                done(found)

        def happen() -> None:
            if "kill-first" in seconds:
                self._kill(request.replica, seconds["kill-first"])
                return
            self._world.record.begins(request)
            found = effect()
            self._world.record.effect(request, found)
            if "kill" in seconds:
                self._kill(request.replica, seconds["kill"])
            if "lost" not in seconds and "late" not in seconds:
                agenda.after(back, lambda: answer(found))

        refusal = self._refusal(seconds)
        if refusal is not None:
            wait, found = refusal
            agenda.after(there + wait, lambda: answer(found))
            self._taken_over(request.order.key, sum(seconds.get(one, 0.0) for one in TAKES_OVER))
        elif "drop" in seconds:
            agenda.after(max(0.05, seconds["drop"]), lambda: answer(NO_ANSWER))
        else:
            agenda.after(there + seconds.get("late", 0.0), happen)
            if "lost" in seconds:
                agenda.after(there + max(0.05, seconds["lost"]), lambda: answer(NO_ANSWER))
            if "late" in seconds:
                agenda.after(there + 1.0, lambda: answer(NO_ANSWER))
            if "twice" in seconds:
                agenda.after(there + 0.01 + seconds["twice"], happen)
        agenda.after(timeout, lambda: answer(NO_ANSWER))

    def _kill(self, replica: "Replica", down: float) -> None:
        if replica.engine is not None:
            replica.kill()
            self._world.agenda.after(down, replica.start)

    def _taken_over(self, uid: str, seconds: float) -> None:
        """A webhook evicts the pod itself, ``seconds`` after the first call for it."""
        if not seconds or uid in self._taken:
            return
        self._taken[uid] = None
        self._world.agenda.after(seconds, lambda: self._world.happen("delete_pod", {"uid": uid}))

    def _refusal(self, seconds: dict[str, float]) -> tuple[float, Answer] | None:
        """(delay, answer) where admission or flow control ends a request without an effect."""
        if "hang" in seconds:
            message = 'failed calling webhook "hangs": context deadline exceeded'
            return seconds["hang"], status(500, f"Internal error occurred: {message}", "InternalError")
        if "dry-run" in seconds:
            return 0.0, (201, b"{}")
        if "migrate" in seconds:
            message = 'admission webhook "migrates" denied the request: Eviction triggered migration'
            return 0.0, status(429, message, "TooManyRequests")
        if "large" in seconds:
            return 0.0, status(500, "etcdserver: request is too large", "InternalError")
        if "deny" in seconds or "take" in seconds:
            return 0.0, status(403, 'admission webhook "denies" denied the request', "Forbidden")
        if "postpone" in seconds:
            return 0.0, status(429, 'admission webhook "migrates" denied the request: later', "TooManyRequests")
        if "throttle" in seconds:
            details = {"retryAfterSeconds": int(seconds["throttle"])} if seconds["throttle"] else {}
            return 0.0, status(429, "too many requests, please try again later", "TooManyRequests", **details)
        if "silly" in seconds:
            body = b'{"message":"wait","reason":"TooManyRequests","details":{"retryAfterSeconds":%s}}' % (b"9" * 400)
            return 0.0, (429, body)
        return (0.0, status(500, "etcdserver: request timed out", "InternalError")) if "error" in seconds else None

    def _between(self, low: float, high: float, *question: object) -> float:
        return self._world.noise.between(low, high, *question)


def _engine(replica: "Replica") -> Any:
    assert replica.engine is not None
    return replica.engine


def _settled(replica: "Replica", order: Order, found: Answer) -> list[Any]:
    return _engine(replica).settled(order, *found)  # type: ignore[no-any-return]


def _written(replica: "Replica", order: Order, outcome: str, version: int = -1) -> list[Any]:
    return _engine(replica).written(order, outcome, version)  # type: ignore[no-any-return]


def _outcome(found: Answer) -> str:
    """Meaning of an answer to a write, as the effector reads it."""
    code = found[0]
    if 200 <= code < 300:
        return "done"
    if code in (404, 409):
        return "gone" if code == 404 else "outdated"
    return "refused" if 400 <= code < 500 and code not in (408, 429) else "failed"

"""What an operator has written, and how that ends: done, refused, lost on the way, done without an answer, late."""

from collections.abc import Callable
from random import Random

import msgspec

from simulated.fleet.known import Known
from simulated.fleet.server import Server
from taintwarden.engine.machine import Outcome, WriteOutcome, commands, events

CALL_SECONDS = (0.02, 0.2)
LATE_SECONDS = (5.0, 40.0)
FAULTS = (Outcome.FAILED, Outcome.THROTTLED, Outcome.BLOCKED, Outcome.REFUSED, Outcome.MISCONFIGURED)


class Api:
    """The API server as operators meet it.

    Args:
        server: where everything is stored.
        chance: of faults.

    """

    def __init__(self, server: Server, chance: Random) -> None:
        self.server = server
        self.fault_rate = 0.0
        self.holder: object = None
        """Who holds the lease."""
        self.is_refused: Callable[[commands.Write], bool] = lambda _: False
        """Whether the API server never takes such a write."""
        self.evicted: list[tuple[float, str]] = []
        """(when it was sent, UID) of every eviction that was carried out."""
        self._chance = chance

    def _is_faulty(self) -> bool:
        return self._chance.random() < self.fault_rate

    def seconds(self) -> float:
        """How long a call takes."""
        return self._chance.uniform(*(LATE_SECONDS if self._is_faulty() and self._is_faulty() else CALL_SECONDS))

    # -- evictions ----------------------------------------------------------------------------------------------------

    def evict(self, order: commands.Evict, caller: object, answer: Callable[[events.Event], None]) -> None:
        """POST pods/eviction, or DELETE."""
        uid, sent_at = order.pod.uid, self.server.at
        if self.holder is not caller:
            self.server.later(0.0, lambda: answer(events.Settled(uid, Outcome.NOT_SENT)))
            return

        def end() -> None:
            if self._is_faulty():
                answer(self._fault(uid, sent_at))
            elif self._carry_out(uid, sent_at):
                answer(events.Settled(uid, Outcome.EVICTED))
            else:
                answer(events.Settled(uid, Outcome.GONE))

        self.server.later(self.seconds(), end)

    def _carry_out(self, uid: str, sent_at: float) -> bool:
        if not self.server.evict(uid, self._chance.choice([0.1, 2.0, 20.0])):
            return False
        self.evicted.append((sent_at, uid))
        return True

    def _fault(self, uid: str, sent_at: float) -> events.Settled:
        outcome = self._chance.choice(FAULTS)
        if outcome is Outcome.FAILED and self._chance.random() < 0.5:
            self._carry_out(uid, sent_at)  # and nobody hears of it
        return events.Settled(uid, outcome, "fault", self._chance.choice([None, None, 1.0, 20.0, 1e9]))

    # -- other writes -------------------------------------------------------------------------------------------------

    def write(self, order: commands.Write, known: Known, answer: Callable[[events.Event], None]) -> None:
        """PATCH a node or a policy."""
        knew = known.since(order.node) if isinstance(order, commands.SaveHistory) else {}

        def end() -> None:
            outcome = WriteOutcome.DONE
            if self.is_refused(order):
                answer(events.Written(order, WriteOutcome.REFUSED))
                return
            if self._is_faulty():
                outcome = self._chance.choice([WriteOutcome.FAILED, WriteOutcome.FAILED, WriteOutcome.REFUSED])
            if outcome is WriteOutcome.DONE or (outcome is WriteOutcome.FAILED and self._chance.random() < 0.5):
                stored = self._store(order, knew)
                outcome = outcome if stored is WriteOutcome.DONE else stored
            answer(events.Written(order, outcome, self._version(order)))

        self.server.later(self.seconds(), end)

    def check(self, order: commands.CheckNode, answer: Callable[[str, int | None], None], reached: int) -> None:
        """GET a node. The answer is its version when it was read, or None if it could not be."""
        self.server.later(self.seconds(), lambda: answer(order.name, None if self._is_faulty() else reached))

    def _version(self, order: commands.Write) -> int:
        node = self.server.get("nodes", getattr(order, "node", ""))
        return -1 if node is None else node["version"]

    def _store(self, order: commands.Write, knew: dict[str, tuple[bool, float]]) -> WriteOutcome:
        if isinstance(order, commands.SaveHistory | commands.SaveLabels):
            node = self.server.get("nodes", order.node)
            if node is None or node["uid"] != order.uid:
                return WriteOutcome.GONE
            if isinstance(order, commands.SaveHistory) and order.version not in (-1, node["version"]):
                return WriteOutcome.OUTDATED
        match order:
            case commands.SaveHistory(name, _, text):
                self.server.change("nodes", name, history=text, knew=knew)
            case commands.SaveLabels(name, _, labels):
                node = self.server.get("nodes", name)
                assert node is not None
                merged = {key: value for key, value in (node["labels"] | labels).items() if value is not None}
                self.server.change("nodes", name, labels=merged)
            case commands.SaveGuard(policy, record):
                if not self._is_there(policy.name, policy.uid):
                    return WriteOutcome.GONE
                self.server.change("policies", policy.name, guard=msgspec.json.encode(record))
            case commands.ClearGuardReset(policy):
                if not self._is_there(policy.name, policy.uid):
                    return WriteOutcome.GONE
                self.server.change("policies", policy.name, reset=False)
        return WriteOutcome.DONE

    def _is_there(self, name: str, uid: str) -> bool:
        stored = self.server.get("policies", name)
        return stored is not None and stored["policy"].uid == uid

"""What no replica may ever do, compared with what it was told; a breach raises at once."""

from typing import TYPE_CHECKING, Any

import msgspec

from simulated.fleet.known import NEVER, Json
from taintwarden.engine.guard import GuardRecord
from taintwarden.engine.machine import Outcome, commands, events
from taintwarden.engine.model import Policy

if TYPE_CHECKING:
    from simulated.fleet.replica import Replica

ACCEPTED_SECONDS = 60.0
"""An accepted eviction that is not seen for so long did not happen."""
RESOLUTION = 0.01
NARROW_SECONDS = 60.0
"""A tripped guard holds everybody for so long at least; then it may let go what is within its limit."""


class BreachError(AssertionError):
    """A replica did what it must not do. The first word is the kind."""


class Checks:
    """The account of one life of a replica."""

    def __init__(self, replica: "Replica") -> None:
        self._replica = replica
        self._blind: set[str] = set()
        self._asked: set[str] = set()
        self._accepted: dict[str, float] = {}
        self._calls: dict[str, tuple[Json, float]] = {}
        """UID -> the policy as it was known when the call was made, and when that was."""
        self._spent: dict[str, list[float]] = {}
        """Policy and generation -> when its evictions of this term were asked for."""
        self._given_back: dict[str, list[float]] = {}
        """The same -> when calls ended that evicted nobody."""
        self._records: dict[str, GuardRecord] = {}
        """Policy -> what it wanted to be stored of its guard last."""
        self._released: dict[str, set[str]] = {}
        self._let_go: dict[str, list[float]] = {}
        """Policy -> when it evicted pods that count at its guard for all."""

    # -- what it hears ------------------------------------------------------------------------------------------------

    def live(self, kind: str, *, live: bool) -> None:
        """Whether a stream may be relied upon."""
        (self._blind.discard if live else self._blind.add)(kind)

    def led(self, *, leading: bool) -> None:
        """It leads from now on, or no longer."""
        self._spent, self._given_back, self._records = {}, {}, {}
        if leading:
            for name, stored in self._replica.known.policies.items():
                if stored["guard"] is not None:
                    self._records[name] = msgspec.json.decode(stored["guard"], type=GuardRecord)

    def edited(self) -> None:
        """Policies may have other limits."""
        policies = self._replica.known.policies
        for name in [*self._released]:
            if name not in policies:
                del self._released[name]
        for name in [*self._records]:
            if name not in policies:
                del self._records[name]

    def gone(self, uid: str) -> None:
        """It was told that a pod is gone or stopping."""
        self._accepted.pop(uid, None)

    def heard(self, event: events.Event) -> None:
        """An event goes into the machine."""
        if not isinstance(event, events.Settled):
            return
        self._asked.discard(event.uid)
        if event.outcome in (Outcome.EVICTED, Outcome.GONE) and event.uid in self._replica.known.pods:
            self._accepted[event.uid] = self._replica.server.at
        policy, asked_at = self._calls.pop(event.uid)
        if event.outcome in (Outcome.EVICTED, Outcome.FAILED):
            self._note_spent(policy, asked_at)
        else:  # such a call costs nothing: what it took is there again from now on
            self._given_back.setdefault(_term(policy), []).append(self._replica.server.at)

    # -- what it does -------------------------------------------------------------------------------------------------

    def commanded(self, command: commands.Command) -> None:
        """A command comes out of the machine."""
        name = type(command).__name__
        self._replica.commanded[name] += 1
        match command:
            case commands.Evict(pod, verdict):
                self._evicts(pod.uid, verdict.policy.name)
            case commands.SaveGuard(policy, record):
                self._records[policy.name] = record
            case commands.GuardArmed(policy, released):
                self._records.pop(policy.name, None)
                if released is not None:
                    self._releases(policy.name)
            case _:
                pass

    def _releases(self, policy: str) -> None:
        known = self._replica.known
        wanted = {uid for uid in known.pods if known.earliest(uid, policy) is not None}
        self._released.setdefault(policy, set()).update(wanted)

    def _evicts(self, uid: str, policy: str) -> None:
        replica, known, at = self._replica, self._replica.known, self._replica.server.at
        if not replica.leading:
            self._breach("led", uid, policy, "it does not lead")
        if self._blind:
            self._breach("wrong", uid, policy, f"it is blind: {sorted(self._blind)}")
        earliest = known.earliest(uid, policy)
        if earliest is None:
            self._breach("wrong", uid, policy, "nobody wants it gone")
        elif replica.now.wall < earliest - RESOLUTION:
            self._breach("early", uid, policy, f"{earliest - replica.now.wall:.3f} s before its deadline")
        if uid in self._asked:
            self._breach("doubled", uid, policy, "a call is under way")
        if at < self._accepted.get(uid, NEVER) + ACCEPTED_SECONDS - RESOLUTION:
            self._breach("doubled", uid, policy, f"accepted at {self._accepted[uid]}")
        self._asked.add(uid)
        self._calls[uid] = (known.policies[policy], at)
        self._check_guard(uid, policy)

    def _check_guard(self, uid: str, policy: str) -> None:
        stored, record = self._replica.known.policies[policy], self._records.get(policy)
        if not stored["halts"] or uid in self._released.get(policy, ()):
            return
        at, known = self._replica.server.at, self._replica.known
        let_go = self._let_go.setdefault(policy, [])
        pod = known.pods[uid]
        if pod["bound_at"] <= known.nodes[pod["node"]].since[stored["key"]][1]:
            let_go.append(at)
        if record is None or record.open_since is None or record.accepted:
            return
        if self._replica.now.wall < record.open_since + NARROW_SECONDS - 1.0:
            self._breach("guard", uid, policy, "the guard is tripped")
        guard = stored["policy"].limits.guard
        recent = [one for one in let_go if one > at - guard.window_seconds]
        if len(recent) > guard.limit(len(known.pods) + len(let_go)):
            self._breach("guard", uid, policy, f"the guard is tripped, and {len(recent)} were evicted")

    def _note_spent(self, policy: Json, asked_at: float) -> None:
        if policy["rate"] is None:
            return
        times = self._spent.setdefault(_term(policy), [])
        times.append(asked_at)
        times.sort()
        rate, burst = policy["rate"]
        for first, begin in enumerate(times):
            given_back = sum(begin <= at <= times[-1] for at in self._given_back.get(_term(policy), ()))
            if len(times) - first > burst + given_back + rate * (times[-1] - begin) + 1e-6:
                self._breach("limits", "", policy["policy"].name, f"{len(times) - first} calls since {begin}")

    def _breach(self, kind: str, uid: str, policy: str, why: str) -> None:
        replica = self._replica
        raise BreachError(kind, f"{uid} by {policy} at {replica.server.at:.3f}: {why}", self._state(uid))

    def _state(self, uid: str) -> Any:
        known = self._replica.known
        pod = known.pods.get(uid)
        node = known.nodes.get(pod["node"]) if pod else None
        return pod, node and (node.obj, node.since), [self._brief(one) for one in known.policies.values()]

    @staticmethod
    def _brief(stored: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in stored.items() if name != "policy"}


def _term(policy: Json) -> str:
    settings: Policy = policy["policy"]
    return f"{settings.name}/{settings.generation}/{settings.uid}"

"""The guards of all policies as one limit, and the records of guards that do not exist now."""

from collections.abc import Iterable

from taintwarden.engine.limits.guard import Guard, GuardRecord
from taintwarden.engine.limits.protocol import Freed, Request, Settlement
from taintwarden.engine.limits.refusal import GUARD, GUARD_RECORD, Refusal
from taintwarden.engine.model import Instant, Mode, Policy


class Guards:
    """Policies with a guard, by name. A policy with ``reclaim`` has none: soft limits do not apply to it.

    Args:
        freed: receives the key of a policy whose evictions may continue.

    """

    def __init__(self, freed: Freed) -> None:
        self.by_policy: dict[str, Guard] = {}
        self._freed = freed
        self._asked: dict[str, Guard] = {}
        """UID -> the guard at which the eviction in progress counts."""
        self._uids: dict[str, str] = {}
        self._modes: dict[str, Mode] = {}
        self._records: dict[str, GuardRecord] = {}
        """Records of guards that do not exist now: stored by other processes, or before a guard was switched off."""

    def configure(self, policies: Iterable[Policy], now: Instant) -> None:
        """Apply changed settings at once. Past evictions still count."""
        known, self.by_policy = self.by_policy, {}
        policies = tuple(policies)
        for policy in policies:
            if self._uids.get(policy.name, policy.uid) != policy.uid:  # a new policy of the same name inherits nothing
                known.pop(policy.name, None)
                self._records.pop(policy.name, None)
            guard, settings = known.pop(policy.name, None), policy.limits.guard
            if settings is None or policy.reclaim is not None:
                if guard is not None:
                    self._records[policy.name] = guard.record(now)
                continue
            if guard is None:
                guard = Guard(policy.name, settings, self._freed)
                if policy.name in self._records:
                    guard.restore(self._records.pop(policy.name), now)
            guard.change(settings, now)
            if self._modes.get(policy.name) is Mode.DRY_RUN and policy.mode is not Mode.DRY_RUN:
                guard.forget_rehearsals()
            self.by_policy[policy.name] = guard
        names = {policy.name for policy in policies}
        self._records = {
            name: record for name, record in self._records.items() if name in names or name not in self._uids
        }
        self._uids = {policy.name: policy.uid for policy in policies}
        self._modes = {policy.name: policy.mode for policy in policies}

    def restore(self, policy: str, record: GuardRecord, now: Instant) -> None:
        """Apply the record of a guard that another process stored."""
        guard = self.by_policy.get(policy)
        if guard is not None:
            guard.restore(record, now)
        else:
            self._records[policy] = record

    def is_released(self, policy: str, uid: str) -> bool:
        """Whether a person released this pod by a reset."""
        guard = self.by_policy.get(policy)
        return guard is not None and uid in guard.released

    def concerns(self, policy: Policy) -> bool:
        """Whether it has a guard."""
        return policy.name in self.by_policy

    def admit(self, request: Request) -> Refusal | None:
        """Whether the policy's guard is armed, and its stored record allows for one more eviction."""
        guard = self.by_policy.get(request.policy.name)
        if guard is None:
            return None
        if request.released:
            return None if guard.is_grant_stored else Refusal(GUARD_RECORD)
        if guard.halts:
            return Refusal(GUARD)
        if request.is_rehearsal or request.is_latecomer:
            return None
        if guard.has_taken(request.pod.uid) or guard.may_take(request.now):
            return None
        return Refusal(GUARD_RECORD)

    def reserve(self, request: Request) -> None:
        """Count the eviction."""
        guard = self.by_policy.get(request.policy.name)
        if guard is not None:
            self._asked[request.pod.uid] = guard
            guard.take(request.pod.uid, request.now, counts=not request.is_latecomer)

    def settle(self, uid: str, settlement: Settlement) -> None:
        """The guard that counted it may count it no longer."""
        guard = self._asked.pop(uid, None)
        if guard is not None:
            guard.settle(uid, settlement)

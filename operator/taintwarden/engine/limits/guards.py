"""The guards of all policies as one limit, and the records of guards that do not exist now."""

from collections.abc import Iterable
from functools import partial

from taintwarden.engine.guard import Guard, GuardRecord
from taintwarden.engine.guard.guard import ALL_PODS
from taintwarden.engine.limits.protocol import EvictionRequest, Freed, Limit, Settlement, policy_key
from taintwarden.engine.limits.refusal import GUARD, GUARD_RECORD, GUARD_WINDOW, Refusal
from taintwarden.engine.model import Instant, Mode, Policy


class Guards(Limit):
    """Policies with a guard, by name. A policy with ``reclaim`` has none: soft limits do not apply to it.

    Args:
        freed: receives the keys of refusals whose pods may be evicted again.

    """

    def __init__(self, freed: Freed) -> None:
        self.by_policy: dict[str, Guard] = {}
        self._freed = freed
        self._asked: dict[str, Guard] = {}
        """UID -> the guard at which the eviction in progress counts."""
        self._policies: dict[str, Policy] = {}
        self._records: dict[str, GuardRecord] = {}
        """Records of guards that do not exist now: stored by other processes, or before a guard was switched off."""

    def configure(self, policies: Iterable[Policy], now: Instant) -> None:
        """Apply changed settings at once. Past evictions still count."""
        known, self.by_policy = self.by_policy, {}
        before, self._policies = self._policies, {policy.name: policy for policy in policies}
        for name, policy in self._policies.items():
            guard = known.pop(name, None)
            if name in before and before[name].uid != policy.uid:  # a new policy of the same name inherits nothing
                guard = None
                self._records.pop(name, None)
            settings = policy.limits.guard
            if settings is None or policy.reclaim is not None:
                if guard is not None:
                    self._records[name] = guard.record(now)
                continue
            was_dry_run = name in before and before[name].mode is Mode.DRY_RUN
            self.by_policy[name] = self._configured(guard, policy, now, was_dry_run=was_dry_run)
        self._records = {
            name: record for name, record in self._records.items() if name in self._policies or name not in before
        }

    def _configured(self, guard: Guard | None, policy: Policy, now: Instant, *, was_dry_run: bool) -> Guard:
        settings, is_enforced = policy.limits.guard, policy.mode is Mode.ENFORCE
        assert settings is not None  # noqa: S101 - checked by the caller
        is_new = guard is None
        if guard is None:
            guard = Guard(settings, partial(self._free, policy.name))
        guard.change(settings, now)
        guard.enforce(policy.generation if is_enforced else None, now)
        if was_dry_run and policy.mode is not Mode.DRY_RUN:
            guard.forget_rehearsals()
        if is_new and policy.name in self._records:
            guard.restore(self._records.pop(policy.name), now)
        return guard

    def _free(self, policy: str, hold: str) -> None:
        self._freed.add(policy_key(policy) if hold == ALL_PODS else _key(policy, hold))

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
        return guard is not None and uid in guard.ahead.released

    def concerns(self, policy: Policy) -> bool:
        """Whether it has a guard."""
        return policy.name in self.by_policy

    def admit(self, request: EvictionRequest) -> Refusal | None:
        """Whether the policy's guard holds the pod, and its stored record allows for one more eviction."""
        guard, pod = self.by_policy[request.policy.name], request.pod
        if request.released:
            return None if guard.is_grant_stored else Refusal(GUARD_RECORD)
        if (hold := guard.hold_on(pod.namespace, pod.node)) is not None:
            return Refusal(GUARD, None, "" if hold == ALL_PODS else _key(request.policy.name, hold), hold)
        if request.is_rehearsal or guard.has_taken(pod.uid) or guard.may_take(request.now) or guard.is_own(pod.uid):
            return None
        until = guard.used_up_until()
        return Refusal(GUARD_RECORD) if until is None else Refusal(GUARD_WINDOW, until)

    def reserve(self, request: EvictionRequest) -> None:
        """Count the eviction."""
        guard = self._asked[request.pod.uid] = self.by_policy[request.policy.name]
        guard.take(request.pod.uid, request.now)

    def rehearse(self, request: EvictionRequest) -> None:
        """Count an eviction of a dry run."""
        guard = self.by_policy.get(request.policy.name)
        if guard is not None:
            guard.rehearse(request.pod.uid, request.now)

    def settle(self, uid: str, settlement: Settlement, now: Instant) -> None:
        """The guard that counted it may count it no longer."""
        del now
        guard = self._asked.pop(uid, None)
        if guard is not None and settlement is not Settlement.UNKNOWN:
            guard.settle(uid, stays=settlement.stays)

    def take_back(self, uid: str) -> None:
        """The eviction of this pod, whose call got no answer, did not happen."""
        for guard in self.by_policy.values():
            guard.settle(uid, stays=True)

    def stay(self, uid: str) -> None:
        """No call for this pod is in progress, and whether it is gone is known."""
        for guard in self.by_policy.values():
            guard.stay(uid)


def _key(policy: str, hold: str) -> str:
    return f"guard/{policy}/{hold}"

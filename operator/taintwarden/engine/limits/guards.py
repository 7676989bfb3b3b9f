"""The guards of all policies as two limits: one refuses held pods, one stores evictions before their calls."""

from collections.abc import Iterable
from functools import partial

from msgspec.structs import replace

from taintwarden.engine.guard import ALL, BudgetKey, Guard
from taintwarden.engine.guard.wave import Wave
from taintwarden.engine.limit_settings import GuardAction
from taintwarden.engine.limits.budgets import Budgets
from taintwarden.engine.limits.protocol import EvictionRequest, FreedKeys, Limit, Settlement, lane_key, policy_key
from taintwarden.engine.limits.refusal import GUARD, Refusal, RefusalScope
from taintwarden.engine.model import Instant, Pod
from taintwarden.engine.policy import Policy
from taintwarden.engine.records import GuardRecord


class Guards(Limit):
    """The guards by the name of their policy. A policy with ``reclaim`` has none.

    Args:
        budgets: numbers of pods that budgets allow.
        freed: receives the keys of refusals whose pods may be evicted again.

    """

    def __init__(self, budgets: Budgets, freed: FreedKeys) -> None:
        self.by_policy: dict[str, Guard] = {}
        self._budgets = budgets
        self._freed = freed
        budgets.changed = self._budget_changed
        self.policies: dict[str, Policy] = {}
        """The policies in force, by name."""
        self._gone: list[Wave] = []
        """Waves of removed guards, whose pods are dropped in steps, since dropping all at once would be slow."""
        self._records: dict[str, GuardRecord] = {}
        """Records of another process, applied when this one leads; and of guards that are switched off."""

    def configure(self, policies: Iterable[Policy], now: Instant) -> None:
        """Apply changed settings at once. Past evictions still count."""
        known, self.by_policy = self.by_policy, {}
        before, self.policies = self.policies, {policy.name: policy for policy in policies}
        for name, policy in self.policies.items():
            guard, former = known.get(name), before.get(name)
            if former is not None and former.uid != policy.uid:  # a new policy of the same name inherits nothing
                guard = None
                self._records.pop(name, None)
            settings = policy.limits.guard
            if not settings.is_limit or policy.reclaim is not None:
                if guard is not None:
                    self._records[name] = replace(guard.record(now), tripped_at=None, cause="", counted=())
                continue
            if policy.rehearses:  # the guard holds nothing
                settings = replace(settings, action=GuardAction.REPORT)
            if guard is None:
                guard = Guard(settings, partial(self._free, name), partial(self._free_record, name))
                guard.wave.allowed = self._budgets.allowed
                if name in self._records:
                    guard.restore(self._records.pop(name), now)
                    if former is not None:  # the status has no record of a guard that was switched off
                        guard.save_again()
            guard.change(settings)
            self.by_policy[name] = guard
        for name, guard in known.items():
            if guard.latch.scope != ALL:  # any change of policies frees refusals of whole policies already
                self._free(name, guard.latch.scope)
        gone = (guard.wave for name, guard in known.items() if guard is not self.by_policy.get(name))
        self._gone += [wave for wave in gone if not wave.drop_some(0)]
        self._records = {
            name: record for name, record in self._records.items() if name in self.policies or name not in before
        }

    def drop_removed(self, most: int) -> None:
        """Drop up to ``most`` pods of each removed guard."""
        while self._gone and self._gone[-1].drop_some(most):
            del self._gone[-1]

    def _budget_changed(self, budget: BudgetKey) -> None:
        for guard in self.by_policy.values():
            guard.wave.recount((budget.namespace, budget))

    def _free(self, policy: str, scope: str) -> None:
        self._freed.add(policy_key(policy) if scope == ALL else lane_key((policy, scope)))
        self._free_record(policy)

    def _free_record(self, policy: str) -> None:
        self._freed.add(record_key(policy))
        self._freed.add(unreserved_key(policy))

    def keep(self, policy: str, record: GuardRecord) -> None:
        """Keep a record that another process stored."""
        self._records[policy] = record

    def restore(self, now: Instant) -> None:
        """Apply the kept records when this process begins to lead."""
        for policy, guard in self.by_policy.items():
            if policy in self._records:
                guard.restore(self._records.pop(policy), now)

    def is_released(self, policy: str, uid: str) -> bool:
        """Return True if a person released this pod."""
        guard = self.by_policy.get(policy)
        return guard is not None and uid in guard.wave.released

    def concerns(self, policy: Policy) -> bool:
        """Return True if the policy has a guard."""
        return policy.name in self.by_policy

    def admit(self, request: EvictionRequest) -> Refusal | None:
        """Refuse a pod that the guard of its policy holds."""
        guard, namespace = self.by_policy[request.policy.name], request.pod.namespace
        if request.released or not guard.is_acting:
            return None
        if not guard.latch.is_stored:
            return Refusal(GUARD, detail=_storing(guard), is_brief=not guard.error)
        if not guard.holds(namespace):
            return None
        if guard.scope == ALL:
            return Refusal(GUARD)
        return Refusal(GUARD, None, RefusalScope.LANE, lane_key(request.lane), f"it holds namespace {namespace} only")

    def settle(self, uid: str, settlement: Settlement, now: Instant) -> None:
        """End a call. A pod that is known to stay is no longer reserved."""
        del now
        for guard in self.by_policy.values():
            guard.settle(uid, stays=settlement is Settlement.STAYS)

    def gone(self, pod: Pod, now: Instant) -> None:
        """Count a called pod as evicted, since it is gone or terminating."""
        for guard in self.by_policy.values():
            guard.gone(pod.uid, pod.shared.workload, now)

    def pod_added(self, pod: Pod) -> None:
        """Note a new pod, which may replace an evicted one."""
        for guard in self.by_policy.values():
            guard.ledger.past.pod_added(pod.uid, pod.shared.workload)


class GuardRecords(Limit):
    """Requires a reservation in the stored record before each call. Checked after limits that may hold pods for long.

    Args:
        guards: the guards of all policies.

    """

    def __init__(self, guards: Guards) -> None:
        self._guards = guards

    def concerns(self, policy: Policy) -> bool:
        """Return True if the policy has a guard."""
        return self._guards.concerns(policy)

    def admit(self, request: EvictionRequest) -> Refusal | None:
        """Refuse a pod until the stored record reserves its eviction."""
        guard, pod, name = self._guards.by_policy[request.policy.name], request.pod, request.policy.name
        if request.released or request.is_rehearsal or guard.may_call(pod.uid):
            return None
        # Never refuse the whole policy. Pods that the record does not reserve have another key than those that it does,
        # which may be behind them in the queue.
        is_wanted = guard.want(pod.uid, pod.namespace)
        why, until = ("", None) if is_wanted else guard.used_up(pod.namespace)
        is_brief = not why and not guard.error
        detail = why or _storing(guard)
        key = record_key(name) if is_wanted else unreserved_key(name)
        return Refusal(GUARD, until, RefusalScope.PODS, key, detail, is_brief=is_brief)

    def reserve(self, request: EvictionRequest) -> None:
        """Count the call at the guard, whatever the budgets of the pod allow: they count the call, too."""
        self._guards.by_policy[request.policy.name].call(request.pod.uid, request.pod.namespace, request.now)


def _storing(guard: Guard) -> str:
    """Return why a pod waits that may be evicted once the record is stored."""
    if guard.error:
        return f"the guard cannot store its record, and tries again at least every 5s: {guard.error}"
    return "the guard stores its record first"


def record_key(policy: str) -> str:
    """Return the key of a refusal, shared by the pods whose evictions the next record reserves."""
    return f"record/{policy}"


def unreserved_key(policy: str) -> str:
    """Return the key of a refusal, shared by the pods that do not fit into the record."""
    return f"unreserved/{policy}"

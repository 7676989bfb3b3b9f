"""Records what happens to each pod and guard during the simulation of a plan."""

from collections.abc import Iterator
from typing import Any

from taintwarden.controller.words import wording
from taintwarden.engine import commands, rfc3339
from taintwarden.engine.commands import Command, GuardReport
from taintwarden.engine.evaluate import TaintVerdict
from taintwarden.engine.machine import ClaimView, Phase, View
from taintwarden.engine.model import Instant, Pod, PodClass, WallTime
from taintwarden.engine.policy import Mode
from taintwarden_cli.rehearsal.ideal import ReplacementScheduler
from taintwarden_cli.rehearsal.plan import PlannedFate, PlannedGuard, PlannedPod, Replacement


class Recording:
    """A record of what the machine reports about pods and guards. ``view`` is that of the machine."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._pods: dict[str, PlannedPod] = {}
        self._guards: dict[str, PlannedGuard] = {}
        self._past_guards: list[PlannedGuard] = []
        self._already: dict[str, str] = {}
        """Pods that had to leave before the change: name by UID."""
        self._invalid: dict[tuple[str, str], list[str]] = {}
        """Nodes with a value that cannot be compared, by the taint and the consequence."""

    def begin(self, now: Instant) -> None:
        """Record the state that the snapshot has before the changes."""
        for policy in self._view.policies:
            guard = self._view.guard(policy.name)
            if guard is not None and guard.record.tripped_at is not None and guard.record.cause:
                after_seconds = guard.record.tripped_at - now.wall
                self._record_trip(policy.name, guard, after_seconds)
        self._already = {claim.pod.uid: str(claim.pod) for claim in self._acting_claims()}
        self._invalid = {}

    def _acting_claims(self) -> Iterator[ClaimView]:
        """The claims of policies that are not paused."""
        return (claim for claim in self._view.all_claims() if claim.phase is not Phase.PAUSED)

    def record(self, command: Command, now: Instant, elapsed: float) -> None:
        """Record a command that only reports. ``elapsed`` is in seconds since the change."""
        match command:
            case commands.Decided():
                planned = self._planned_pod(command.pod, command.verdict, command.due_at)
                planned.waited_seconds, planned.limit = round(command.waited, 3), command.limit
            case commands.Rehearsed():
                planned = self._planned_pod(command.pod, command.verdict, command.due_at)
                planned.fate, planned.after_seconds = PlannedFate.WOULD_LEAVE, round(elapsed, 3)
                planned.at = rfc3339.at(now.wall)
            case commands.DeadlineMissed():
                due_at = command.verdict.due_at(command.pod.bound_at) or command.hard_at
                planned = self._planned_pod(command.pod, command.verdict, due_at)
                planned.late = wording.MISSED[command.reason]
                if command.reason == wording.NOT_EVICTED:
                    self._record_end(planned, command, now, elapsed)
            case commands.InvalidValue(verdict=verdict):
                effect = f"{wording.invalid_effect(verdict, held=command.held)} (policy {verdict.policy.name})"
                why = f"cannot be compared ({wording.invalid_value(verdict)}): {effect}"
                self._invalid.setdefault((str(verdict.taint), why), []).append(command.node)
            case commands.GuardTripped():
                self._record_trip(command.policy.name, command.guard, elapsed)
            case commands.GuardArmed():
                armed = self._guards.pop(command.policy.name, None)
                if armed is not None:
                    armed.armed_after_seconds = round(elapsed, 3)
                    self._past_guards.append(armed)
            case _:
                pass

    def record_eviction(self, command: commands.Evict, now: Instant, elapsed: float, order: int) -> PlannedPod:
        """Record an eviction that the API server accepts. ``order`` is its number, from 1."""
        planned = self._planned_pod(command.pod, command.verdict, now.wall)
        planned.policy, planned.taint = command.verdict.policy.name, str(command.verdict.taint)
        planned.fate, planned.order, planned.deleted = PlannedFate.LEAVES, order, command.delete
        planned.budgets = list(command.past_budgets)
        planned.at, planned.after_seconds = rfc3339.at(now.wall), round(elapsed, 3)
        return planned

    def _record_end(self, planned: PlannedPod, missed: commands.DeadlineMissed, now: Instant, elapsed: float) -> None:
        """Record a pod whose node is removed while a limit or a budget still holds it."""
        after = missed.hard_at - now.wall + elapsed
        planned.fate, planned.at, planned.after_seconds = PlannedFate.ENDS, rfc3339.at(missed.hard_at), round(after, 3)
        claims = self._view.claims(missed.pod.uid)
        held = next((claim for claim in claims if claim.policy.name == missed.verdict.policy.name), None)
        if held is not None:
            planned.limit, planned.budgets = held.limit or held.outcome or "", list(held.budgets)

    def pod_that_ends(self, pod: Pod) -> PlannedPod | None:
        """The record of a pod that ends with its node; None if it has left before, or need not leave any more."""
        planned = self._pods.get(pod.uid)
        if planned is None or planned.fate is not PlannedFate.ENDS:
            return None
        if not self._view.claims(pod.uid):  # a change has removed the taint
            del self._pods[pod.uid]
            return None
        return planned

    def finish(self, now: Instant, scheduler: ReplacementScheduler) -> dict[str, Any]:
        """Record the pods yet to leave. Returns the fields of a :class:`~.plan.Plan` about pods and guards."""
        first = {claim.pod.uid: claim for claim in reversed([*self._acting_claims()])}
        for claim in reversed(first.values()):
            self._record_remaining(claim, now.wall, scheduler)
        pods = sorted(self._pods.values(), key=lambda pod: (pod.order is None, pod.order or 0, pod.deadline, str(pod)))
        counted = ((taint, why, len(nodes)) for (taint, why), nodes in self._invalid.items())
        invalid = [f"{taint} on {wording.several(number, 'node')} {why}" for taint, why, number in counted]
        return {
            "pods": pods,
            "cancelled": sorted(name for uid, name in self._already.items() if uid not in self._pods),
            "invalid": invalid,
            "guards": [*self._past_guards, *self._guards.values()],
        }

    def _record_trip(self, name: str, guard: GuardReport, after_seconds: float) -> None:
        self._guards[name] = PlannedGuard(
            policy=name,
            pods=guard.due,
            evicted=guard.evicted,
            window_seconds=guard.window_seconds,
            limit=guard.allowance,
            cause=guard.record.cause,
            halts=guard.halts,
            pace=wording.paced(guard),
            tripped_after_seconds=round(after_seconds, 3),
        )

    def _planned_pod(self, pod: Pod, verdict: TaintVerdict, due_at: float) -> PlannedPod:
        planned = self._pods.get(pod.uid)
        if planned is None:
            planned = self._pods[pod.uid] = PlannedPod(
                namespace=pod.namespace,
                name=pod.name,
                node=pod.node,
                policy=verdict.policy.name,
                taint=str(verdict.taint),
                fate=PlannedFate.LEAVES,
                deadline=rfc3339.at(due_at),
                already=pod.uid in self._already,
            )
        return planned

    def _record_remaining(self, claim: ClaimView, now: WallTime, scheduler: ReplacementScheduler) -> None:
        """Record a pod that is not evicted: why, and whether a replacement would find no node or may come back."""
        pod, planned = claim.pod, self._planned_pod(claim.pod, claim.verdict, claim.due_at)
        planned.policy, planned.taint = claim.policy.name, str(claim.verdict.taint)
        planned.deadline = rfc3339.at(claim.due_at)
        is_due = claim.due_at <= now
        if claim.policy.mode is Mode.ENFORCE:
            planned.fate = PlannedFate.HELD if is_due else PlannedFate.LATER
        elif planned.fate is not PlannedFate.WOULD_LEAVE:
            planned.fate = PlannedFate.HELD if is_due else PlannedFate.WOULD_LEAVE
        if planned.fate is PlannedFate.HELD:
            planned.limit = claim.limit or claim.outcome or ""
            planned.reason = wording.why_held(planned.limit, claim.detail)
            planned.budgets = list(claim.budgets)
        if is_replaced(pod.shared):
            planned.returns_to = scheduler.returns_to(pod)
            if not scheduler.fitting_nodes(pod):
                planned.replacement = Replacement.NOWHERE


def is_replaced(pod_class: PodClass) -> bool:
    """True if pods of the class are replaced on another node, unlike those of DaemonSets and those without an owner."""
    return pod_class.owner is not None and not pod_class.daemon_set

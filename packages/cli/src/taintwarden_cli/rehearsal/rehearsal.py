"""A machine of the operator that is fed from a snapshot, through the handlers that streams use."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from taintwarden.controller.decoding.decoding import Decoder, PodIssue
from taintwarden.controller.handlers.keyed_handlers import (
    BudgetHandler,
    DeploymentHandler,
    NamespaceHandler,
    WorkloadHandler,
)
from taintwarden.controller.handlers.stream_handlers import NodeHandler, PodHandler, StreamHandler
from taintwarden.controller.stores import guard_record
from taintwarden.controller.stores.policy_store import PolicyStore
from taintwarden.controller.stores.profile_store import ProfileStore
from taintwarden.engine import events
from taintwarden.engine.commands import Command
from taintwarden.engine.events import Event
from taintwarden.engine.machine import Machine, Timings
from taintwarden.engine.model import Gates, Instant, MonotonicTime, Profile, WallTime
from taintwarden.engine.policy import Policy, has_replace_first
from taintwarden.kube.wire.resources import BUDGETS, DEPLOYMENTS, NAMESPACES, NODES, PODS
from taintwarden.telemetry.metrics import Metrics
from taintwarden_cli.rehearsal.snapshot import Snapshot, is_kept_from_enforcing
from taintwarden_cli.rehearsal.sources import Source
from taintwarden_devices import events as device_events
from taintwarden_devices.handlers import ClaimHandler, SliceHandler, TaintRuleHandler, named_drivers
from taintwarden_devices.objects import CLAIMS, SLICES, TAINT_RULES
from taintwarden_devices.source import Devices

NEWEST = 2**64
"""A version newer than all objects. They are read at one moment, so no pod is newer than its node."""
LEADING_FOR_SECONDS = 100_000.0
"""Seconds since which the operator counts as leader. The whole burst of its rates is available then."""
MAX_WAKES = 100_000
"""Maximum number of steps until the machine is idle. Beyond it there is a fault of the program."""


def stopped_clock(now: float) -> Callable[[], Instant]:
    """A clock that is stopped: it always returns the same moment."""
    instant = Instant(WallTime(now), MonotonicTime(now))
    return lambda: instant


class Rehearsal:
    """A machine that decides what the operator would, if its streams had delivered exactly this snapshot.

    Args:
        clock: returns both clocks.
        carry_out: called with each command of the machine.
        options: options of the machine, for example ``overall_rate``.

    """

    def __init__(
        self,
        snapshot: Snapshot,
        gates: Gates,
        clock: Callable[[], Instant],
        carry_out: Callable[[Command], None] = lambda _: None,
        **options: Any,
    ) -> None:
        self.policies: tuple[Policy, ...] = ()
        """The valid policies, by name."""
        self.policy_problems: dict[str, str] = {}
        """Why other policies are invalid, by name."""
        self.profiles: tuple[Profile, ...] = ()
        """The valid profiles, by namespace and name."""
        self.profile_problems: dict[str, str] = {}
        """Why other profiles are invalid, by ``namespace/name``."""
        self.guard_problems: dict[str, str] = {}
        """Why the stored state of a policy's guard or places counts as absent, by policy."""
        self.pod_issues: list[PodIssue] = []
        self.slices: SliceHandler | None = None
        """The handler of ResourceSlices; None if no policy selects taints of devices."""
        self._machine = Machine(gates=gates, timings=Timings(max_silence=math.inf), source=Devices, **options)
        self.view = self._machine.view
        self.wake_after = self._machine.wake_after
        self.decoder = Decoder(clock, self.pod_issues.append)
        self._snapshot = snapshot
        self._clock = clock
        self._carry_out = carry_out

    def feed_snapshot(self) -> None:
        """Feed all of the snapshot, in the order in which the operator receives it."""
        snapshot, metrics = self._snapshot, _metrics()
        PolicyStore(self._set_policies, _problem_recorder(self.policy_problems)).load(snapshot.policies)
        self._restore_guards()
        self.feed(events.PoliciesChanged(self.policies))
        profiles = ProfileStore(self.feed, _problem_recorder(self.profile_problems))
        profiles.load(snapshot.profiles)
        self.profiles = tuple(profile for _, profile in sorted(profiles.valid.items()))
        self._feed_list(NodeHandler(NODES.name, self.feed, metrics, self.decoder), snapshot.nodes)
        self._feed_list(NamespaceHandler(NAMESPACES.name, self.feed, metrics), snapshot.namespaces)
        for plural, workloads in snapshot.workloads.items():
            handler = WorkloadHandler(plural, self.feed, metrics)
            handler.follow(self.policies)
            self._feed_list(handler, workloads)
        self._feed_list(BudgetHandler(BUDGETS.name, self.feed, metrics), snapshot.budgets)
        if has_replace_first(self.policies):
            self._feed_deployments()
        self._feed_list(PodHandler(PODS.name, self.feed, metrics, self.decoder), snapshot.pods)
        if any(policy.devices for policy in self.policies):
            self._feed_devices()
        self.feed(events.NodesReached(NEWEST))
        self.feed(events.Synced())

    def _feed_deployments(self) -> None:
        self._feed_list(DeploymentHandler(DEPLOYMENTS.name, self.feed, _metrics()), self._snapshot.deployments)
        problem = self._snapshot.problems.get(Source.DEPLOYMENTS, "")
        self.feed(events.DeploymentsKnown(is_known=not problem, problem=problem))

    def _feed_devices(self) -> None:
        snapshot, metrics, problem = self._snapshot, _metrics(), self._snapshot.devices_problem
        drivers = named_drivers(self.policies)
        self.slices = SliceHandler(SLICES.name, self.feed, metrics, drivers)
        if not problem:
            self._feed_list(self.slices, snapshot.slices)
            self._feed_list(ClaimHandler(CLAIMS.name, self.feed, metrics, drivers), snapshot.device_claims)
            self._feed_list(TaintRuleHandler(TAINT_RULES.name, self.feed, metrics), snapshot.taint_rules)
        self.feed(device_events.DevicesKnown(known=not problem, problem=problem))

    def become_leader(self) -> None:
        """Act as an operator that has been the leader for long."""
        now = self._clock()
        before = Instant(now.wall, MonotonicTime(now.monotonic - LEADING_FOR_SECONDS))
        self.feed(events.LeadershipChanged(leading=True), before)

    def run_until_idle(self) -> None:
        """Wake the machine until it waits for a later time."""
        for _ in range(MAX_WAKES):
            if self.wake_after(self._clock()) != 0.0:
                return
            self.feed(events.Tick())
        raise RuntimeError("the machine never becomes idle")

    def feed(self, event: Event, now: Instant | None = None) -> None:
        """Pass an event to the machine, now unless another moment is given."""
        for command in self._machine.step(event, now or self._clock()):
            self._carry_out(command)

    def _restore_guards(self) -> None:
        for stored in self._snapshot.policies:
            status, name = stored.get("status"), namespaced_name(stored)[1]
            found = status if isinstance(status, Mapping) else {}
            for restore, part in ((self._restore_places, "places"), (self._restore_guard, "guard")):
                try:
                    restore(name, found.get(part))
                except ValueError as error:
                    self.guard_problems[name] = str(error)

    def _restore_places(self, name: str, stored: object) -> None:
        self.feed(events.PlacesRestored(name, guard_record.decode_places(stored)))

    def _restore_guard(self, name: str, stored: object) -> None:
        if stored is not None:
            self.feed(events.GuardRestored(name, guard_record.decode_guard(stored)))

    def _set_policies(self, policies: tuple[Policy, ...]) -> None:
        self.policies = tuple(sorted(policies, key=lambda policy: policy.name))
        self.decoder.follow(self.policies)

    def notes(self) -> Iterator[str]:
        """Reasons in the snapshot why what follows from it may differ from what the operator does."""
        if self._snapshot.operator_problem:
            yield self._snapshot.operator_problem
        for name, why in self.policy_problems.items():
            yield f"policy {name} is not valid as stored and does nothing here: {why}"
        if any(map(is_kept_from_enforcing, self._snapshot.policies)):
            yield "the operator runs with --dry-run: this is what would follow without it"
        for name, why in self.guard_problems.items():
            yield f"status.guard or status.places of policy {name} cannot be read and counts as absent: {why}"
        for name, why in self.profile_problems.items():
            yield f"profile {name} is not valid as stored and adds nothing here: {why}"
        for issue in (one for one in self.pod_issues if one.errors):
            yield f"entries of the annotation of pod {issue.namespace}/{issue.name} count as absent"

    def _feed_list(self, handler: StreamHandler[Any], objects: Sequence[Any]) -> None:
        handler.list_began()
        handler.listed(objects)
        handler.list_ended("")


def rehearse(snapshot: Snapshot, gates: Gates) -> Rehearsal:
    """Feed a snapshot to a machine whose clock is stopped at the snapshot's time, and run it until it is idle."""
    rehearsal = Rehearsal(snapshot, gates, stopped_clock(snapshot.now))
    rehearsal.feed_snapshot()
    rehearsal.run_until_idle()
    return rehearsal


def namespaced_name(stored: Mapping[str, Any]) -> tuple[str, str]:
    """Namespace and name of a stored object."""
    meta = stored.get("metadata")
    meta = meta if isinstance(meta, Mapping) else {}
    return str(meta.get("namespace") or ""), str(meta.get("name") or "")


@cache
def _metrics() -> Metrics:
    """Metrics that handlers require. Nothing reads them; creating them takes longer than feeding a small machine."""
    return Metrics()


def _problem_recorder(found: dict[str, str]) -> Callable[[str, str, str], None]:
    def note(key: str, _: str, reason: str) -> None:
        found[key] = " ".join(reason.split())

    return note

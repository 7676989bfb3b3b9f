"""State that all parts of the machine share: the current step, the cluster, and the claims that wait or have a call."""

from collections.abc import Mapping

import msgspec

from taintwarden.engine import commands
from taintwarden.engine.evaluate import Grounds
from taintwarden.engine.limits import Limiter
from taintwarden.engine.machine.claims import Claim, Claims
from taintwarden.engine.machine.cluster import Cluster
from taintwarden.engine.machine.evictions import Evictions
from taintwarden.engine.machine.queues import Queues
from taintwarden.engine.machine.refusals import Refusals
from taintwarden.engine.machine.source import NOT_LISTED, TaintSource
from taintwarden.engine.machine.verdicts import Verdicts
from taintwarden.engine.model import Gates, Instant, MonotonicTime, WallTime
from taintwarden.engine.outcomes import OUTCOMES, Outcome
from taintwarden.engine.spread import Spread


class Timings(msgspec.Struct, frozen=True, kw_only=True):
    """Delays of the machine, in seconds of the monotonic clock. An argument, so that tests can shorten them."""

    announced_ahead: float = 1.0
    """Minimum seconds until the deadline for an eviction to be announced. Otherwise only its result is reported."""
    check_accepted: float = 5.0
    """Seconds after an accepted eviction until the pod is read, if the stream does not show it leaving."""
    unanswered: float = 60.0
    """Seconds that a pod counts as missing after a call without an answer, which may have been carried out."""
    kept_by_webhook: float = 600.0
    """Seconds that a pod counts as missing after a webhook first prevented its eviction: it may move the pod."""
    place_idle: float = 300.0
    """Seconds until a node that no pod leaves for good loses its place. They count while other nodes wait for one."""
    max_retry_after: float = 300.0
    """Maximum Retry-After that is respected for one pod. The pause of all calls is at most ``MAX_PAUSE_SECONDS``."""
    write_failed: tuple[float, float] = (1.0, 30.0)
    """First and longest delay before a failed write is retried, unless named below. Node reads take the first."""
    write_outdated: tuple[float, float] = (0.02, 5.0)
    """First and longest delay after a 409. The stream delivers the newer object in a moment."""
    write_refused: tuple[float, float] = (30.0, 600.0)
    """First and longest delay after the API server refused a write. It may be allowed later."""
    write_guard: tuple[float, ...] = (1.0, 2.0, 5.0)
    """Delays before guard records and places are written again, after any failure. The last repeats. Evictions wait."""
    condition_rest: float = 5.0
    """Seconds between two writes to a node, and between two comparisons of a node that is not drained."""
    condition_soon: float = 0.5
    """Seconds until a node is compared again if its pods are not evaluated, or a stream is late."""
    condition_outdated: float = 2.5
    """Seconds until a condition is written again after a conflict: the node or its pods had changed."""
    condition_refused: float = 60.0
    """Seconds until a condition is written again after a refusal: a right may be missing."""
    recent_change: float = 30.0
    """Seconds after a change of a policy or profile within which a wave is attributed to the change."""
    max_silence: float = 5.0
    """Maximum silence of the node stream. After it, a node is read again before pods are evicted from it."""
    delayed_events: float = 2.0
    """Seconds after the node stream resumes within which nodes are still read. It may first deliver delayed events."""
    namespace_pause: float = 1.0
    """Minimum seconds between evaluations of the pods of one namespace, whatever its tenants change."""
    min_pause: float = 1.0
    """Minimum seconds without calls after the flow control of the API server rejected one."""
    back_off: Mapping[Outcome, tuple[float, float]] = msgspec.field(
        default_factory=lambda: {outcome: row.back_off for outcome, row in OUTCOMES.items()}
    )
    """First and longest delay before the next call for a pod, by the last outcome. A longer Retry-After replaces it."""


class World:
    """State of a machine, shared and changed by its parts.

    Args:
        gates: the operators that may match at all.
        overall_rate: maximum evictions per second over all policies; None for no limit.
        max_in_flight: maximum number of eviction calls in progress.
        timings: the delays of the machine.

    """

    def __init__(self, gates: Gates, overall_rate: float | None, max_in_flight: int, timings: Timings) -> None:
        self.timings = timings
        self.now = Instant(WallTime(0.0), MonotonicTime(0.0))
        self.commands: list[commands.Command] = []
        """Commands of the current step, in order."""
        self.leading = False
        self.led_since = MonotonicTime(0.0)
        self.term = 0
        self.synced = False
        self.blind: dict[str, WallTime] = {}
        """Streams that are cut off, with the time of each cut. No pod is evicted on data that may be outdated."""
        self.source: TaintSource | None = None
        """Source of taints besides those of nodes; None while no policy selects any."""
        self.cluster = Cluster()
        self.claims = Claims()
        self.evictions = Evictions()
        self.verdicts = Verdicts(gates)
        self.spread = Spread(self.cluster.labels)
        self.limiter = Limiter(overall_rate, max_in_flight)
        self.changed_nodes: dict[str, None] | None = None
        """Nodes whose condition may have changed; None if nodes get no condition."""
        self.refusals = Refusals()
        self.queues = Queues(self.refusals, self.spread, self.limiter.calls.is_failing)

    def complete_until(self) -> WallTime:
        """Time up to which every stream is known to be complete: now, or when the first of them was cut off."""
        return min(self.blind.values(), default=self.now.wall)

    @property
    def devices_problem(self) -> str:
        """Why the taints of devices are not known; empty if they are."""
        return NOT_LISTED if self.source is None else self.source.problem

    @property
    def blind_to_devices(self) -> Mapping[str, WallTime]:
        """Streams about devices that are cut off, with the time of each cut. Their taints evict no pod meanwhile."""
        return {} if self.source is None else self.source.blind

    @property
    def may_evict(self) -> bool:
        """True if this process leads, and no stream is cut off."""
        return self.leading and not self.blind

    def note_change(self, node: str) -> None:
        """Note that the condition of a node may have changed."""
        if self.leading and self.changed_nodes is not None:  # a new leader evaluates all nodes
            self.changed_nodes[node] = None

    def take_changed_nodes(self) -> Mapping[str, None]:
        """Return the nodes noted since the last call."""
        found, self.changed_nodes = self.changed_nodes or {}, {}
        return found

    def is_released(self, policy: str, uid: str) -> bool:
        """True if a person released this pod, so that its guard or unhealthy zones do not hold it."""
        guards = self.limiter.guards
        return bool(guards.by_policy) and guards.is_released(policy, uid)

    def issue(self, *ordered: commands.Command) -> None:
        """Issue commands."""
        self.commands += ordered

    def report(self, *notices: commands.Notice) -> None:
        """Issue notices, if this process leads. Followers issue none, since the leader does."""
        if self.leading:
            self.commands += notices

    def grounds_of(self, claim: Claim) -> Grounds | None:
        """Why the policy of a claim evicts its pod in the current state; None if it does not."""
        state = self.cluster.nodes.get(claim.node)
        pod = None if state is None else state.pods.get(claim.uid)
        if state is None or pod is None:
            return None
        _, found = self.verdicts.of(state, pod.shared)
        return next((one for one in found if one.policy.name == claim.policy.name), None)

"""The content of the condition ``taintwarden.io/Drained`` of a node, derived from the state.

All policies that enforce, or are paused, count.
"""

from collections.abc import Iterable
from enum import StrEnum

from taintwarden.engine.limits.refusal import BUDGET, FAILING, GUARD, PLACE, WINDOW, ZONE
from taintwarden.engine.machine.backlog import Backlog
from taintwarden.engine.machine.claim_views import ClaimViews
from taintwarden.engine.machine.claims import Claim, Phase
from taintwarden.engine.machine.cluster import NodeState
from taintwarden.engine.machine.world import World
from taintwarden.engine.model import NodeCondition
from taintwarden.fields.text import shortened

MAX_TAINTS_NAMED = 5
MAX_MESSAGE_CHARACTERS = 512
_BLOCKING, _HOLDING = (BUDGET, FAILING), (GUARD, WINDOW, ZONE, PLACE)


class DrainedReason(StrEnum):
    """The reason of the condition. The first one that applies counts."""

    STUCK = "Stuck"
    """A pod terminates for longer than its grace period."""
    BLOCKED = "Blocked"
    """A PodDisruptionBudget or a failing call keeps a due pod."""
    HELD = "Held"
    """A paused policy, the guard, a window, a zone or a missing place keeps a pod."""
    PODS_LEAVE = "PodsLeave"
    DRAINED = "Drained"


class DrainedStates:
    """Derives conditions from the state.

    Args:
        world: the state.
        backlog: pods that wait to be evaluated.

    """

    def __init__(self, world: World, backlog: Backlog) -> None:
        self._world = world
        self._backlog = backlog
        self._views = ClaimViews(world)

    def of(self, state: NodeState) -> NodeCondition | None:
        """Return the condition of a node; None if no policy selects its taints.

        Taints that policies derive give no node the condition, since all nodes have them. The pods that leave because
        of them count.
        """
        policies = [policy for policy in self._world.verdicts.policies_on(state) if not policy.rehearses]
        selected = (taint for taint, _ in state.taints() if any(policy.selector_for(taint) for policy in policies))
        taints = list(dict.fromkeys(str(taint) for taint in selected if not taint.source))
        if not taints:
            return None
        leaving = [departure for departure in self._world.limiter.departures.of_node(state.name) if departure.policies]
        stuck = sum(departure.is_stuck(self._world.now.wall) for departure in leaving)
        kinds = [kind for uid in state.pods if (kind := self._kind(self._world.claims.of(uid))) is not None]
        blocked, held = kinds.count(DrainedReason.BLOCKED), kinds.count(DrainedReason.HELD)
        numbers = (
            (DrainedReason.STUCK, stuck),
            (DrainedReason.BLOCKED, blocked),
            (DrainedReason.HELD, held),
            (DrainedReason.PODS_LEAVE, len(kinds) + len(leaving)),
        )
        reason = next((reason for reason, number in numbers if number), DrainedReason.DRAINED)
        counts = (
            _counted(len(kinds), "has to leave", "have to leave", blocked=blocked, held=held),
            _counted(len(leaving), "terminates", "terminate", stuck=stuck),
        )
        message = f"{', '.join(filter(None, counts)) or 'no pod has to leave or leaves'}; taints: {_named(taints)}"
        status = "True" if reason is DrainedReason.DRAINED else "False"
        return NodeCondition(status, reason.value, shortened(message, MAX_MESSAGE_CHARACTERS))

    def _kind(self, claims: Iterable[Claim]) -> DrainedReason | None:
        """Return why a pod is still there; None if it may stay. Claims with a call count even without a verdict."""
        kinds = [self._kind_of(claim) for claim in claims if not claim.policy.rehearses]
        if DrainedReason.BLOCKED in kinds or not kinds:
            return DrainedReason.BLOCKED if kinds else None
        return DrainedReason.PODS_LEAVE if DrainedReason.PODS_LEAVE in kinds else DrainedReason.HELD

    def _kind_of(self, claim: Claim) -> DrainedReason:
        holding = self._views.current_refusal(claim)
        if claim.phase is Phase.PAUSED or (holding and holding.limit in _HOLDING and not holding.is_brief):
            return DrainedReason.HELD
        return DrainedReason.BLOCKED if holding and holding.limit in _BLOCKING else DrainedReason.PODS_LEAVE

    def is_certain(self, state: NodeState) -> bool:
        """True if all pods of the node are evaluated, with known devices. The write checks the node's version."""
        if state.name in self._backlog.nodes:
            return False
        if any(policy.devices for policy in self._world.verdicts.policies_on(state)) and (
            self._world.devices_problem or self._world.blind_to_devices
        ):
            return False
        return not any(map(self._backlog.pending, state.pods.values()))


def _counted(number: int, one: str, many: str, **parts: int) -> str:
    """Return the number of pods with a verb, and of those in trouble; empty if there are none."""
    if not number:
        return ""
    named = ", ".join(f"{count} {part}" for part, count in parts.items() if count)
    return f"{number} {'pod' if number == 1 else 'pods'} {one if number == 1 else many}" + f" ({named})" * bool(named)


def _named(taints: list[str]) -> str:
    """Return the first taints, and the number of the others."""
    more = len(taints) - MAX_TAINTS_NAMED
    return ", ".join(taints[:MAX_TAINTS_NAMED]) + (f" and {more} more" if more > 0 else "")

"""Refusals: why due pods wait, by policy, lane and pod. Queues, dispatch, guards and reports read them here.

A refusal of a policy or lane holds all of its pods. A refusal of one pod comes from a limit of the pod alone, from a
limit of pods that share a key, or from the answer to its last call. It is stored in the claim, and ends with it.
"""

from collections.abc import Mapping

import msgspec

from taintwarden.engine.limits import Refusal
from taintwarden.engine.limits.protocol import EVERY_POLICY, LaneKey, policy_key
from taintwarden.engine.limits.refusal import GUARD, WINDOW, ZONE
from taintwarden.engine.machine.claims import Claim, Phase

POLICY_WIDE_LIMITS = (WINDOW, GUARD, ZONE)
"""Limits that hold a whole policy for long. Reports name them as the cause even if another limit holds a pod, too."""


class LaneGroup(msgspec.Struct, frozen=True, order=True, gc=False):
    """Lanes of a policy. A refusal of the whole policy holds all of them.

    Pods that a guard reset released have lanes of their own, since its guard and unhealthy zones do not hold them.
    ``soft``: False if the policy reclaims nodes. Such lanes come first, since their deadlines are hard.
    """

    soft: bool
    policy: str
    is_released: bool = False


class Lane(msgspec.Struct, frozen=True, order=True, gc=False):
    """Due pods of a policy in one namespace."""

    group: LaneGroup
    namespace: str

    @property
    def key(self) -> LaneKey:
        """Policy and namespace."""
        return self.group.policy, self.namespace


class Refusals:
    """Refusals of policies and lanes, and what follows from them for a pod."""

    def __init__(self) -> None:
        self._policies: Mapping[LaneGroup, Refusal] = {}
        self.lanes: dict[Lane, Refusal] = {}
        """Refusals of lanes, none of whose pods is admitted."""
        self._by_key: dict[str, dict[Lane, None]] = {}
        """Key of a refusal -> lanes that wait for it. No refusal of a pod has such a key."""

    def of_policy(self, group: LaneGroup) -> Refusal | None:
        """Refusal of all pods of a group of lanes; None if some may be admitted."""
        return self._policies.get(group)

    def of_claim(self, claim: Claim, lane: Lane) -> Refusal | None:
        """Why a claim waits. READY: the refusal of its lane. BLOCKED: its own, unless that of its lane lasts longer."""
        of_all = self._policies.get(lane.group) or self.lanes.get(lane)
        if claim.phase is Phase.READY or claim.refusal is None:
            return of_all
        is_of_all = of_all is not None and (of_all.limit in POLICY_WIDE_LIMITS or claim.refusal.is_brief)
        return of_all if is_of_all else claim.refusal

    def hold_policies(self, refusals: Mapping[LaneGroup, Refusal]) -> None:
        """Replace the refusals of all policies by those of the last round of dispatch."""
        self._policies = refusals

    def free_policies(self, key: str) -> None:
        """Drop the refusals of the policies that this key frees."""
        self._policies = {
            group: refusal
            for group, refusal in self._policies.items()
            if key not in (EVERY_POLICY, policy_key(group.policy))
        }

    def hold_lane(self, lane: Lane, refusal: Refusal) -> None:
        """Hold the pods of a lane until the key of the refusal is freed."""
        self.lanes[lane] = refusal
        self._by_key.setdefault(refusal.key, {})[lane] = None

    def free_lane(self, lane: Lane) -> str | None:
        """Drop the refusal of a lane, if it has one. Returns its key if no other lane waits for it."""
        refusal = self.lanes.pop(lane, None)
        if refusal is None:
            return None
        lanes = self._by_key[refusal.key]
        del lanes[lane]
        if lanes:
            return None
        del self._by_key[refusal.key]
        return refusal.key

    def free_lanes(self, key: str) -> list[Lane]:
        """Drop the refusals of the lanes that wait for this key. Returns the lanes."""
        lanes = [*self._by_key.pop(key, ())]
        for lane in lanes:
            del self.lanes[lane]
        return lanes

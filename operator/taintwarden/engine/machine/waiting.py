"""Why due pods wait: one refusal for each policy, lane and pod. Queues, dispatch, guards and reports read it here.

A refusal of a policy or of a lane keeps all of its pods. A refusal of a pod is that of a limit which concerns the pod
alone or with others that share its key, or the answer to its last call. It is kept in the claim, and ends with it.
"""

from collections.abc import Mapping

import msgspec

from taintwarden.engine.limits import Refusal
from taintwarden.engine.limits.protocol import EVERY_POLICY, LaneKey, policy_key
from taintwarden.engine.limits.refusal import GUARD, WINDOW, ZONE
from taintwarden.engine.machine.claims import Claim, Phase

HOLDING_ALL = (WINDOW, GUARD, ZONE)
"""Limits that keep a whole policy for long: they are the cause to name, whatever else keeps a pod."""


class LaneGroup(msgspec.Struct, frozen=True, order=True, gc=False):
    """The lanes of a policy: what holds the whole policy parks all of them.

    Limits that hold a policy do not hold the pods that a person released: these have lanes of their own.
    """

    soft: bool
    policy: str
    is_released: bool = False


class Lane(msgspec.Struct, frozen=True, order=True, gc=False):
    """The due pods of a policy in one namespace."""

    group: LaneGroup
    namespace: str

    @property
    def key(self) -> LaneKey:
        """Policy and namespace."""
        return self.group.policy, self.namespace


class Waiting:
    """The refusals of policies and lanes, and what follows from them for a pod."""

    def __init__(self) -> None:
        self._policies: Mapping[LaneGroup, Refusal] = {}
        self.lanes: dict[Lane, Refusal] = {}
        """Lanes of which no pod is admitted, whatever their policies."""
        self._by_key: dict[str, dict[Lane, None]] = {}
        """Key of a refusal -> the lanes that wait for it. No refusal of a pod has such a key."""

    def of_policy(self, group: LaneGroup) -> Refusal | None:
        """Why no pod of a policy is admitted; None if one may be."""
        return self._policies.get(group)

    def of_claim(self, claim: Claim, lane: Lane) -> Refusal | None:
        """Why a READY or BLOCKED claim waits in this lane: a cause that keeps all for long comes before its own."""
        of_all = self._policies.get(lane.group) or self.lanes.get(lane)
        if claim.phase is Phase.READY or claim.refusal is None:
            return of_all
        is_of_all = of_all is not None and (of_all.limit in HOLDING_ALL or claim.refusal.is_brief)
        return of_all if is_of_all else claim.refusal

    def hold_policies(self, refusals: Mapping[LaneGroup, Refusal]) -> None:
        """Replace the refusals of all policies by those of a round of dispatch."""
        self._policies = refusals

    def free_policies(self, key: str) -> None:
        """Forget the refusals of policies that end with this key."""
        self._policies = {
            group: refusal
            for group, refusal in self._policies.items()
            if key not in (EVERY_POLICY, policy_key(group.policy))
        }

    def hold_lane(self, lane: Lane, refusal: Refusal) -> None:
        """Keep the pods of a lane until its key is freed."""
        self.lanes[lane] = refusal
        self._by_key.setdefault(refusal.key, {})[lane] = None

    def free_lane(self, lane: Lane) -> str | None:
        """Forget the refusal of a lane, if it has one. Returns its key if no other lane waits for that."""
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
        """Forget the refusals of the lanes that wait for this key. Returns the lanes."""
        lanes = [*self._by_key.pop(key, ())]
        for lane in lanes:
            del self.lanes[lane]
        return lanes

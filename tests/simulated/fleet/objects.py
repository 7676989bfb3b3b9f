"""What is stored in a fleet, by chance: policies, nodes and pods."""

from random import Random
from typing import Any

import msgspec

from simulated.drawing import NO_LIMITS, draw_limits
from simulated.fleet.server import Json
from taintwarden.engine.model import GuardAction, Limits, Mode, Policy, Reclaim, TaintSelector, Timing, Window
from taintwarden.engine.selectors import EVERYTHING, LabelSelector, Requirement, SelectorOperator

TEAM = LabelSelector((Requirement("team", SelectorOperator.IN, ("a",)),))
NAMESPACES = ("shop", "bank")
CLOSED = (Window("0 0 29 2 *", 60),)
"""Opens on leap days."""
ZONE = "topology.kubernetes.io/zone"


def policy_object(policy: Policy, key: str, known: Json | None = None) -> Json:
    """A policy as it is stored, with what an oracle has to know of it in plain values."""
    guard, limits = policy.limits.guard, policy.limits
    status = {"guard": None, "reset": False} if known is None else {"guard": known["guard"], "reset": known["reset"]}
    return status | {
        "policy": policy,
        "key": key,
        "mode": str(policy.mode),
        "grace": max(policy.timing.violation_grace_seconds, policy.timing.stabilization_window_seconds),
        "team": "a" if policy.namespace_selector.requirements else None,
        "reclaim": policy.reclaim is not None,
        "halts": policy.reclaim is None and guard is not None and guard.action is GuardAction.HALT,
        "rate": None
        if policy.reclaim is not None or limits.evictions_per_second is None
        else (limits.evictions_per_second, limits.burst),
        "is_free": policy.reclaim is not None or (limits == NO_LIMITS and not policy.windows),
    }


def draw_policy(chance: Random, name: str, key: str, uid: str, created_at: float) -> Policy:
    """A policy on one key."""
    return Policy(
        name=name,
        uid=uid,
        created_at=created_at,
        mode=chance.choice([Mode.ENFORCE, Mode.ENFORCE, Mode.ENFORCE, Mode.DRY_RUN]),
        taints=(TaintSelector(key, placement=key == "sla" and chance.random() < 0.3),),
        namespace_selector=TEAM if chance.random() < 0.4 else EVERYTHING,
        reclaim=Reclaim(chance.choice([60, 120])) if key == "spot" else None,
        **draw_settings(chance),
    )


def draw_settings(chance: Random) -> dict[str, Any]:
    """What may be edited of a policy."""
    limits = draw_limits(chance) if chance.random() < 0.3 else draw_one_limit(chance)
    timing = Timing(chance.choice([0, 0, 3, 10, 60]), chance.choice([0, 0, 5]))
    return {"limits": limits, "timing": timing, "windows": CLOSED if chance.random() < 0.1 else ()}


def draw_one_limit(chance: Random) -> Limits:
    """None, or one."""
    name = chance.choice(["", "", "rate", "max-unavailable", "guard", "guard", "zone-health", "per-node"])
    return draw_limits(chance, name) if name else NO_LIMITS


def edited(policy: Policy, **changes: Any) -> Policy:
    """The next generation."""
    return msgspec.structs.replace(policy, generation=policy.generation + 1, **changes)


def node_object(chance: Random, uid: str) -> Json:
    """A node without taints."""
    zone = chance.choice(["", "a", "b"])
    return {"uid": uid, "labels": {ZONE: zone} if zone else {}, "taints": (), "history": "", "knew": {}}


def pod_object(chance: Random, node: str, owner: str, wall: float) -> Json:
    """A pod that was bound just now."""
    return {
        "node": node,
        "namespace": chance.choice(NAMESPACES),
        "owner": owner,
        "bound_at": float(int(wall)),
        "flag_seconds": chance.choice([None, None, 0, 5, 30]),
        "opted_out": False,
        "grace": chance.choice([1, 30]),
        "stopping": False,
    }

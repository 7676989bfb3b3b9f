"""The nodes from which pods have to leave that count at a guard, each with the taint that makes them leave."""

from collections.abc import Iterator
from heapq import nsmallest

from taintwarden.engine.guard import Guard
from taintwarden.engine.machine.claims import Claim
from taintwarden.engine.machine.cluster import NodeState, history_name
from taintwarden.engine.machine.commands import BadNode, BadNodes
from taintwarden.engine.machine.world import World
from taintwarden.engine.model import Policy

NAMED = 3
"""How many of them a sentence names."""


def bad_nodes(world: World, guard: Guard, policy: Policy) -> BadNodes:
    """The nodes that make pods leave now: one that was repaired is not among them."""
    found = list(nodes_of(world, guard, policy))
    named = nsmallest(NAMED, found, key=lambda one: one[0].name)
    return BadNodes(len(found), tuple(_bad_node(state, claim) for state, claim in named))


def nodes_of(world: World, guard: Guard, policy: Policy) -> Iterator[tuple[NodeState, Claim]]:
    """The nodes with pods that count, each with the claim on one of them."""
    for name in guard.ahead.by_node:
        state = world.cluster.nodes.get(name)
        for uid in state.pods if state is not None else ():
            evictee = world.claims.evictees.get(uid)
            claim = None if evictee is None else evictee.claim_of(policy.name)
            if state is not None and claim is not None:
                yield state, claim
                break


def _bad_node(state: NodeState, claim: Claim) -> BadNode:
    taint = claim.verdict.taint
    history = state.histories.get(history_name(taint))
    spans = () if history is None else history.spans
    return BadNode(state.name, taint, spans[-2].value if len(spans) > 1 else None)

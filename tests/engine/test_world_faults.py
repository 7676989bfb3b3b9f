"""Faults that the world has found, by family: the theme, the judge that speaks, and seeds of histories with the fault.

A history in which the judge still speaks prints its seed, what happened, and how to cut it down.
"""

import pytest

from simulated.world import differential, isolation
from simulated.world.playing import demand_none, play

FAMILIES: dict[str, tuple[str, str, tuple[int, ...]]] = {
    "whoever came during a dry run counts at the guard": ("rehearsal", "guard", (5, 11, 16)),
    "a record counts whoever came during a dry run": ("rehearsal", "record", (0, 3, 25)),
    "a skewed timeAdded and a restart throw no values away": ("clocks", "right", (97, 118, 179)),
    "a timeAdded in the future or renewed postpones nothing": ("clocks", "late", (7, 22, 31)),
    "a reset releases everybody whom it named": ("zones", "reset", (28, 81, 97)),
    "a slow record is not written over a newer one": ("records", "record", (96, 153, 258)),
    "what is written over a record is not evicted twice": ("records", "guard", (153,)),
    "an old leader writes no record": ("records", "leader", (3, 17, 23)),
    "an old leader evicts nobody": ("terms", "leader", (69, 166, 201)),
    "a deletion is checked again before it is sent": ("interrupted", "fence", (21, 24, 30)),
    "an eviction that waited is checked again before it is sent": ("interrupted", "fence", (10, 19, 22)),
    "a webhook that hangs in one namespace delays no other": ("webhooks", "late", (14, 19, 26)),
    "an open and silent watch is not trusted": ("silence", "right", (7, 10, 12)),
    "the earliest hard deadline of several taints counts": ("spot", "late", (1, 6, 14)),
    "calls that fail are bounded, too": ("webhooks", "calls", (4, 8, 13)),
    "a pod is not deleted whose budget allowed its eviction": ("budgets", "budget-timeout", (2, 47, 87)),
    "a label that the operator writes makes pods leave": ("labels", "late", (1, 2, 12)),
    "a label that the operator writes lets pods stay": ("labels", "right", (23, 241, 242)),
    "a read ahead of its watch hides no recovery": ("reads", "right", (1, 6, 12)),
    "a tenant that writes a profile all the time stops nobody": ("tenants", "late", (1,)),
    "not ready and unreachable are one condition": ("dead_nodes", "late", (0, 3, 4)),
    "small zones count as Full": ("zones", "zones", (0, 3, 4)),
    "whoever is left out on a node that goes is reported": ("spot", "silence", (0, 2, 3)),
    "an owner of a kind that nobody serves holds no pod": ("owners", "held", (0, 1, 2)),
    "a history can be read as it was written": ("histories", "late", (49, 58, 63)),
    "an eviction that a budget does not count blocks nobody": ("uncounted", "held", (40, 78, 92)),
    "a bounce because of one taint hides no other": ("bounces", "held", (46, 102, 221)),
    "a Retry-After of any size ends no process": ("webhooks", "crash", (2, 7)),
    "whose node is gone is not reported to stay": ("nodes", "notice", (4, 5, 6)),
    "do-not-disrupt may be a duration": ("marks", "right", (6, 7, 12)),
    "an annotation that means nothing is reported": ("marks", "silence", (11, 13, 29)),
    "one pod with an odd toleration stops no policy": ("zones", "held", (292,)),
    "a taint of a device that comes back begins again": ("devices", "right", (12,)),
    "a follower keeps what its leader has not seen": ("devices", "right", (36,)),
}
CASES = [(family, *found[:2], seed) for family, found in FAMILIES.items() for seed in found[2]]


@pytest.mark.parametrize(
    ("theme", "judge", "seed"), [case[1:] for case in CASES], ids=[f"{case[0]}-{case[3]}" for case in CASES]
)
def test_the_fault_is_gone(theme, judge, seed):
    demand_none([play(theme, seed)], judge)


@pytest.mark.parametrize("seed", [142])
def test_what_was_decided_before_the_last_edit_does_not_count(seed):
    assert differential.compare(seed) == []


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_a_tenant_changes_nothing_for_others(seed):
    assert isolation.compare(seed, isolation.tenant) == []


@pytest.mark.parametrize("seed", [3, 7])
def test_a_node_changes_nothing_for_others(seed):
    assert isolation.compare(seed, isolation.node) == []

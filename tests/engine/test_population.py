"""The number of pods that a policy could evict is counted as they come and go: it equals the number by a walk."""

import random
from collections import Counter

import pytest
from msgspec.structs import replace

from engine.rig import Rig, gt, limited
from taintwarden.engine.evaluate import exclusion, selects_node
from taintwarden.engine.machine import events
from taintwarden.engine.model import Exclude, GuardSettings, Node, Policy
from taintwarden.engine.selectors import LabelSelector, Requirement, SelectorOperator

NODES, NAMESPACES, LABELS = ("n1", "n2", "n3"), ("shop", "team"), ({}, {"pool": "a"}, {"pool": "b"})
GUARD = GuardSettings(min_pods=0, settle_seconds=0)


def counted(rig: Rig) -> dict[str, int]:
    return {one.name: rig.world.limiter.guards.by_policy[one.name].population() for one in rig.view.policies}


def walked(rig: Rig) -> dict[str, int]:
    found = Counter(dict.fromkeys((one.name for one in rig.view.policies), 0))
    for state in rig.world.cluster.nodes.values():
        for policy in rig.view.policies:
            if selects_node(policy, state.labels, do_not_evict=state.do_not_evict):
                for pod in state.pods.values():
                    labels = rig.view.namespace_labels(pod.namespace)
                    found[policy.name] += not exclusion(policy, pod.shared, labels)
    return found


def a_selector(rng: random.Random) -> LabelSelector:
    of_pool = LabelSelector((Requirement("pool", SelectorOperator.IN, (rng.choice("ab"),)),))
    return rng.choice([LabelSelector(), of_pool])


def a_policy(name: str, rng: random.Random) -> Policy:
    return replace(
        limited(name, guard=GUARD),
        node_selector=a_selector(rng),
        pod_selector=a_selector(rng),
        namespace_selector=a_selector(rng),
        exclude=Exclude(respect_do_not_evict=rng.random() < 0.7, namespaces=rng.choice([(), ("team",)])),
    )


def happen(rig: Rig, rng: random.Random) -> None:
    """One event, without time to act on it."""
    node, name, labels = rng.choice(NODES), f"p{rng.randrange(9)}", rng.choice(LABELS)
    match rng.choice(["node", "node gone", "pod", "pod", "pod", "pod gone", "namespace", "policies", "leader", "list"]):
        case "node":
            taints, uid = rig.make_taints(*rng.choice([(), ("sla=940",)])), rng.choice([f"uid-{node}", "another"])
            seen = Node(node, uid, labels, taints, rig.version(), do_not_evict=rng.random() < 0.3)
            rig.feed(events.NodeSeen(seen))
        case "node gone":
            rig.feed(events.NodeGone(node))
        case "pod":
            opts_out, namespace = rng.random() < 0.3, rng.choice(NAMESPACES)
            pod = rig.make_pod(name, gt(), node=node, labels=labels, namespace=namespace, do_not_evict=opts_out)
            known = next((one for other in NODES for one in rig.view.pods(other) if one.uid == pod.uid), pod)
            rig.feed(events.PodSeen(replace(pod, node=known.node)))
        case "pod gone":
            for other in NODES:
                rig.feed(events.PodGone(f"uid-{name}", other))
        case "namespace":
            namespace = rng.choice(NAMESPACES)
            rig.feed(rng.choice([events.NamespaceSeen(namespace, labels), events.NamespaceGone(namespace)]))
        case "policies":
            names = rng.choice(["p", "q", "pq"])
            rig.feed(events.PoliciesChanged(tuple(a_policy(one, rng) for one in names)))
        case "leader":
            rig.feed(events.LeadershipChanged(leading=rng.random() < 0.7, term=rig.version()))
        case "list":
            pods = {pod.uid: one for one in NODES for pod in rig.view.pods(one) if rng.random() < 0.8}
            rig.feed(events.PodsListed(pods))


@pytest.mark.parametrize("seed", range(40))
def test_the_population_is_what_a_walk_counts(seed):
    rng = random.Random(seed)
    rig = Rig(a_policy("p", rng), a_policy("q", rng), synced=False, slice_size=2)
    for number in range(100):
        if number == 10:
            rig.feed(events.Synced())
        for _ in range(rng.choice([1, 1, 3])):
            happen(rig, rng)
        if number >= 10:
            rig.wake()
            assert counted(rig) == walked(rig)


def test_pods_that_come_and_go_while_a_change_of_a_policy_is_evaluated():
    """Those of the nodes that are not evaluated yet still count as before."""
    rig = Rig(limited(guard=GUARD), slice_size=1)
    for name in NODES:
        rig.node(name, labels={"pool": "a"})
        rig.pod(f"pod-of-{name}", gt(), node=name)
    elsewhere = LabelSelector((Requirement("pool", SelectorOperator.IN, ("b",)),))
    rig.feed(events.PoliciesChanged((replace(limited(guard=GUARD), node_selector=elsewhere),)))
    rig.feed(events.PodGone("uid-pod-of-n1", "n1"))
    assert counted(rig) == {"p": 2}
    rig.wake()
    assert counted(rig) == walked(rig) == {"p": 0}

"""Nodes in domains, pods with constraints, and which of these goes next."""

import random
from collections import Counter

from taintwarden.engine.interning import Interner
from taintwarden.engine.model import Pod, SpreadConstraint, Tolerations
from taintwarden.engine.selectors import LabelSelector, Requirement, SelectorOperator
from taintwarden.engine.spread import Group, Spread

ZONE, HOST, RACK = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "example.com/rack"
CHECKOUT = {"app": "checkout"}


def over(key: str, **labels: str) -> SpreadConstraint:
    """A constraint that counts the pods with these labels."""
    requirements = (Requirement(label, SelectorOperator.IN, (value,)) for label, value in labels.items())
    return SpreadConstraint(key, LabelSelector(tuple(requirements)))


BY_ZONE, BY_HOST, BY_RACK = (over(key, app="checkout") for key in (ZONE, HOST, RACK))


class Rig:
    """Nodes a1, a2 ... in zone a, and so on; pods by UID."""

    def __init__(self) -> None:
        self.labels: dict[str, dict[str, str]] = {}
        self.asked: Counter[str] = Counter()
        self.spread = Spread(self.labels_of)
        self.interner = Interner()
        self.pods: dict[str, Pod] = {}

    def labels_of(self, node: str) -> dict[str, str]:
        self.asked[node] += 1
        return self.labels.get(node, {ZONE: node[0], HOST: node, RACK: f"rack-{node[1:]}"})

    def pod(self, uid: str, node: str, *constraints: SpreadConstraint, namespace="shop", labels=CHECKOUT, owner=None):
        shared = self.interner.pod_class(namespace, labels, Tolerations(), spread=constraints, owner=owner)
        return Pod(uid, f"name-of-{uid}", node, shared, 0.0, 1)

    def run(self, uid: str, node: str, *constraints: SpreadConstraint, **rest) -> Pod:
        pod, before = self.pod(uid, node, *constraints, **rest), self.pods.get(uid)
        if before is None:
            self.spread.pod_added(pod)
        else:
            self.spread.changed(before, pod)
        self.pods[uid] = pod
        return pod

    def fill(self, nodes: str, *constraints: SpreadConstraint, **rest) -> list[Pod]:
        """A pod for each node named; UIDs in that order."""
        return [self.run(f"uid-{len(self.pods):03}", node, *constraints, **rest) for node in nodes.split()]

    def group(self, *pods: Pod) -> Group:
        group = self.spread.group()
        for pod in pods:
            group.add(pod)
        return group

    def evict(self, group: Group) -> Pod:
        pod = group.first()
        group.remove(pod)
        self.spread.leave(pod)
        return pod

    def nodes_left_by(self, group: Group) -> str:
        """The nodes of the candidates in the order in which they go."""
        return " ".join(self.evict(group).node for _ in range(len(group)))


def an_order() -> list[str]:
    """In which pods go; ``test_world_trace`` asks under two hash seeds."""
    chance, rig = random.Random(5), Rig()
    nodes = " ".join(f"{chance.choice('abc')}{chance.randint(1, 9)}" for _ in range(120))
    group = rig.group(*rig.fill(nodes, BY_ZONE, BY_HOST, BY_RACK)[:60])
    rig.labels["a1"] = {}
    rig.spread.relabel("a1")
    return [rig.evict(group).uid for _ in range(60)]

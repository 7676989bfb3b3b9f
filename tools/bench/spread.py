"""How even a spread is left behind: TopologySpread against random order and against costlier ways to choose.

A case is a workload spread unevenly over zones, racks and hosts, some nodes of which are drained; some of the pods on
these leave. Skew is what Kubernetes calls so: how many counted pods the fullest domain of the nodes has more than the
emptiest. No time is measured here but in ``cost``.
"""

import gc
import itertools
import random
import time
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import mean

from taintwarden.engine.interning import Interner
from taintwarden.engine.model import Pod, PodClass, SpreadConstraint, Tolerations
from taintwarden.engine.selectors import LabelSelector, Requirement, SelectorOperator
from taintwarden.engine.spread import Spread

ZONE, RACK, HOST = KEYS = ("topology.kubernetes.io/zone", "example.com/rack", "kubernetes.io/hostname")
CASES, SMALL_CASES, SHUFFLES = 200, 100, 10
LARGE_PODS, LARGE_NODES, GROUP = 50_000, 5_000, 5_000
APP = LabelSelector((Requirement("app", SelectorOperator.IN, ("app",)),))
OURS, RANDOM, BY_SUM, BY_TRIAL, COST = "TopologySpread", "random order", "sum of counts", "skew tried out", "cost"
SUBJECTS = (RANDOM, OURS, BY_SUM, BY_TRIAL, COST)
Counts = list[dict[str, int]]


@dataclass(frozen=True)
class Case:
    """``leaving`` of the ``candidates`` go; ``labels`` are those of all nodes."""

    labels: dict[str, dict[str, str]]
    pods: Sequence[Pod]
    candidates: Sequence[Pod]
    leaving: int

    @property
    def keys(self) -> list[str]:
        return [constraint.topology_key for constraint in self.pods[0].shared.spread]

    def counts(self, gone: Iterable[Pod] = ()) -> Counts:
        """Pods by domain for each constraint; a domain of the nodes without pods has 0."""
        away = {pod.uid for pod in gone}
        counts: Counts = [{labels[key]: 0 for labels in self.labels.values()} for key in self.keys]
        for pod in self.pods:
            if pod.uid not in away:
                leave(self, counts, pod, -1)
        return counts


Order = Callable[[Case], list[Pod]]


def measure(subject: str, scale: float) -> dict[str, float]:
    if subject == COST:
        return cost(scale)
    chance = random.Random(1)
    large = [case(chance, nodes=(6, 40), pods=(10, 200)) for _ in range(round(CASES * scale))]
    small = [case(chance, nodes=(4, 8), pods=(5, 10)) for _ in range(round(SMALL_CASES * scale))]
    orders = [shuffled(seed) for seed in range(SHUFFLES)] if subject == RANDOM else [ORDERS[subject]]
    left = [skews_left(one, order) for one in large for order in orders]
    by_chance = [mean(mean(skews_left(one, shuffled(seed))) for seed in range(SHUFFLES)) for one in large]
    averages = [mean(map(mean, left[at : at + len(orders)])) for at in range(0, len(left), len(orders))]
    best = [least_skew(one) for one in small]
    hits = [sum(skews_left(one, order)) == least for one, least in zip(small, best, strict=True) for order in orders]
    return {
        "cases": len(large),
        "mean_skew": mean(map(mean, left)),
        "mean_worst_skew": mean(map(max, left)),
        "worst_skew": max(map(max, left)),
        "cases_worse_than_random": sum(mine > other for mine, other in zip(averages, by_chance, strict=True)),
        "least_possible_percent": 100 * mean(hits),
    }


def case(chance: random.Random, nodes: tuple[int, int], pods: tuple[int, int]) -> Case:
    """Racks lie within zones, or across them; nodes are more or less liked; one to three constraints."""
    zones, racks = chance.randint(2, 4), chance.randint(2, 10)
    nested = chance.random() < 0.6
    labels = {}
    for number in range(chance.randint(*nodes)):
        rack = chance.randrange(racks)
        zone = rack % zones if nested else chance.randrange(zones)
        labels[f"node-{number}"] = {ZONE: f"zone-{zone}", RACK: f"rack-{rack}", HOST: f"node-{number}"}
    weights = [chance.random() ** chance.choice((0, 1, 3)) for _ in labels]
    kind = workload(chance.sample(KEYS, chance.randint(1, len(KEYS))))
    places = chance.choices(list(labels), weights, k=chance.randint(*pods))
    running = [pod_on(node, number, kind) for number, node in enumerate(places)]
    share = chance.choice((0.3, 0.6, 1.0))
    drained = {node for node in labels if chance.random() < share}
    candidates = [pod for pod in running if pod.node in drained]
    if len(candidates) < 2:
        return case(chance, nodes, pods)
    return Case(labels, running, candidates, chance.randint(1, len(candidates) - 1))


def workload(keys: Iterable[str], app: str = "app") -> PodClass:
    constraints = tuple(SpreadConstraint(key, APP) for key in keys)
    return Interner().pod_class("default", {"app": app}, Tolerations(), spread=constraints)


def pod_on(node: str, number: int, kind: PodClass) -> Pod:
    return Pod(f"uid-{number:06}", f"pod-{number}", node, kind, 0.0, 1)


def leave(one: Case, counts: Counts, pod: Pod, by: int = 1) -> None:
    for key, domains in zip(one.keys, counts, strict=True):
        domains[one.labels[pod.node][key]] -= by


def skews(counts: Counts) -> list[int]:
    return [max(domains.values()) - min(domains.values()) for domains in counts]


def skews_left(one: Case, order: Order) -> list[int]:
    return skews(one.counts(order(one)))


def least_skew(one: Case) -> int:
    """The lowest sum of skews that any choice of so many candidates leaves."""
    choices = itertools.combinations(one.candidates, one.leaving)
    return min(sum(skews(one.counts(gone))) for gone in choices)


def shuffled(seed: int) -> Order:
    return lambda one: random.Random(seed).sample(one.candidates, one.leaving)


def by_spread(one: Case) -> list[Pod]:
    spread = Spread(lambda node: one.labels[node])
    group = spread.group()
    for pod in one.pods:
        spread.came(pod)
    for pod in one.candidates:
        group.add(pod)
    gone = []
    for _ in range(one.leaving):
        pod = group.first()
        group.remove(pod)
        spread.leave(pod)
        gone.append(pod)
    return gone


def greedily(rank: Callable[[Case, Counts, Pod], tuple[float, ...]]) -> Order:
    """The candidate that ranks lowest, again and again, each time asking for all of them."""

    def order(one: Case) -> list[Pod]:
        staying, gone, counts = list(one.candidates), [], one.counts()
        for _ in range(one.leaving):
            pod = min(staying, key=lambda pod: (*rank(one, counts, pod), pod.uid))
            staying.remove(pod)
            gone.append(pod)
            leave(one, counts, pod)
        return gone

    return order


def crowding(one: Case, counts: Counts, pod: Pod) -> tuple[float, ...]:
    labels = one.labels[pod.node]
    return (-sum(domains[labels[key]] for key, domains in zip(one.keys, counts, strict=True)),)


def skew_without(one: Case, counts: Counts, pod: Pod) -> tuple[float, ...]:
    leave(one, counts, pod)
    total = sum(skews(counts))
    leave(one, counts, pod, -1)
    return total, *crowding(one, counts, pod)


ORDERS: dict[str, Order] = {OURS: by_spread, BY_SUM: greedily(crowding), BY_TRIAL: greedily(skew_without)}


def cost(scale: float) -> dict[str, float]:
    """CPU time: counting all pods of a large cluster; then choosing among one large workload until all are replaced."""
    pods, nodes, members = (round(number * scale) for number in (LARGE_PODS, LARGE_NODES, GROUP))
    chance, kinds = random.Random(1), [workload((), f"other-{number}") for number in range(1_000)]
    running = [pod_on(f"node-{chance.randrange(nodes)}", number, chance.choice(kinds)) for number in range(pods)]
    tracemalloc.start()
    measured = Spread(dict)
    for pod in running:
        measured.came(pod)
    bytes_each = tracemalloc.get_traced_memory()[0] / pods
    tracemalloc.stop()
    gc.collect()
    gc.freeze()  # as the operator does once it knows the cluster
    spread = Spread(lambda node: {ZONE: f"zone-{int(node[5:]) % 3}", RACK: f"rack-{int(node[5:]) % 60}", HOST: node})
    counting = cpu_of(lambda: [spread.came(pod) for pod in running])
    one, group = workload(KEYS), spread.group()
    for number in range(members):
        pod = pod_on(f"node-{number % nodes}", pods + number, one)
        spread.came(pod)
        group.add(pod)

    def replace(number: int) -> None:
        pod = group.first()
        group.remove(pod)
        spread.leave(pod)
        spread.came(pod_on(f"node-{chance.randrange(nodes)}", pods + members + number, one))

    first = cpu_of(group.first)
    choosing = cpu_of(lambda: [replace(number) for number in range(members)])
    return {
        "pods": pods,
        "count_us_per_pod": counting / pods * 1e6,
        "count_bytes_per_pod": bytes_each,
        "candidates": members,
        "first_choice_ms": first * 1e3,
        "us_per_eviction": choosing / members * 1e6,
    }


def cpu_of(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began

"""The worst that one tenant with its own token, or one kubelet with its own credential, can do to evictions of others.

One story for any cluster: 450 pods of 1 MB are there before the replicas start, then the other attacks follow one after
the other, and during each of them pods of another namespace are evicted. A `Ground` says where: processes on a control
plane of the tests, or the installation on kind.
"""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import pytest

from controlplane import OPERATOR_NAMESPACE, ApiError, Client, Cluster, Json, Target, wait_until
from e2e.answered import lateness
from e2e.tenants import (
    LATEST_SECONDS,
    MOST_BYTES,
    THREADS,
    Tenant,
    at_once,
    change_labels,
    in_turn,
    large_pod,
    small_profile,
)

KEY, RECLAIMED = "example.com/attacked", "example.com/attacked-reclaimed"
GOOD, BAD = "980", "900"
POLICY, RECLAIM = "attacked", "attacked-reclaimed"
OTHERS, QUIET, LEAVING = "attacked-others", "attacked-quiet", "attacked-leaving"
SHARED = {"attacked": "true"}
"""The label of namespaces that the policies select: whatever else runs on the cluster is out of reach."""
REGION, ZONES, NODES_OF_ZONE = "attacked", "abc", 4
EXISTS = {"key": KEY, "operator": "Exists", "effect": "NoExecute"}
ABOVE = {"key": KEY, "operator": "Gt", "value": "950", "effect": "NoExecute"}
NEVER = {"key": KEY, "operator": "Gt", "value": "999999"}
ANNOTATION = {"taintwarden.io/tolerations": json.dumps([NEVER])}
LARGE_PODS, SMALL_PROFILES, RECREATED, OF_KUBELET, FLIPPED = 450, 1_000, 120, 60, 55
GUARD_PODS = 50
"""As many may leave within ten minutes: more than all victims, fewer than each of the crowds."""
VICTIMS, FIRST_SECONDS, EVERY_SECONDS, PATIENCE_SECONDS = 7, 8, 1, 60
SAMPLE_SECONDS, STAY_SECONDS = 0.5, 0.5
FLIP_SECONDS = 4.0
"""The guard waits 2 s for the rest of a wave."""


class Ground(Protocol):
    """Where the story is played."""

    target: Target
    kubelet_node: str
    """A node whose kubelet is compromised. It exists."""

    def start(self) -> None:
        """Start all replicas anew, and wait until one of them leads."""

    def kubelet(self) -> Client:
        """A client with the credential of the kubelet of that node. Close it."""

    def logs(self) -> list[Json]:
        """What all replicas have logged since their start."""

    def peak_bytes(self) -> list[int]:
        """The most memory that each replica has had since its start."""


@dataclass
class Seen:
    """What happened during one attack."""

    done: int = 0
    """How many requests of the attacker were accepted."""
    lateness: list[float] = field(default_factory=list)
    """Seconds, of each victim that was evicted."""
    tripped: set[str] = field(default_factory=set)
    """Messages of guards that halted a policy."""
    held: set[str] = field(default_factory=set)
    """Messages of guards that held a namespace."""
    zones: set[str] = field(default_factory=set)
    """Zones that were in another state than Normal, with that state."""


@dataclass
class Scene:
    """What attackers find."""

    ground: Ground
    tenant: Tenant
    """With a namespace that only this attack uses."""
    healthy: Sequence[str]
    """Nodes with a good value."""
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def admin(self) -> Cluster:
        return self.ground.target.client


@dataclass(frozen=True)
class Attack:
    """What one attacker prepares, and what it does until `Scene.ended`, which returns how often it did it."""

    act: Callable[[Scene], int]
    prepare: Callable[[Scene], None] = lambda _: None
    holds: str = ""
    """What the guard holds because of it, if it does: nothing else."""


# -- attacks ----------------------------------------------------------------------------------------------------------


def prepare_profiles(scene: Scene) -> None:
    at_once(scene.tenant, [small_profile(scene.tenant, number) for number in range(SMALL_PROFILES)])


def label_profiles(scene: Scene) -> int:
    return change_labels(scene.tenant, SMALL_PROFILES, scene.ended)


def tolerate_nothing(scene: Scene) -> int:
    """One pod at a time whose annotation no value satisfies, on each healthy node in turn, for a moment."""
    made, client, namespace = 0, scene.tenant.client, scene.tenant.namespace
    for node in in_turn(scene.healthy, scene.ended):
        made += create(client, pod("odd", node, annotations=ANNOTATION), namespace)
        scene.ended.wait(STAY_SECONDS)
        discard(client, "pods", "odd", namespace)
    return made


def prepare_reclaimed(scene: Scene) -> None:
    add_node(scene.admin, LEAVING, "a", [{"key": RECLAIMED, "effect": "NoExecute"}])


def come_back(scene: Scene) -> int:
    """Pods that are created again on a node that is reclaimed, as soon as they are evicted."""
    names = [f"again-{number}" for number in range(RECREATED)]

    def again(number: int, threads: int) -> int:
        client, made = scene.tenant.another_client(), 0
        for name in in_turn(names[number::threads], scene.ended):
            made += create(client, pod(name, LEAVING), scene.tenant.namespace)
        client.close()
        return made

    with ThreadPoolExecutor(4) as pool:
        return sum(pool.map(again, range(4), [4] * 4))


def prepare_kubelet(scene: Scene) -> None:
    """Pods of the others on its node. A volume that does not exist keeps a real kubelet from starting them."""
    volume = {"name": "none", "secret": {"secretName": "none"}}
    for number in range(OF_KUBELET):
        body = pod(f"on-kubelet-{number}", scene.ground.kubelet_node, volumes=[volume])
        scene.admin.create("pods", body, OTHERS)


def annotate_through_status(scene: Scene) -> int:
    client, done = scene.ground.kubelet(), 0
    for name in (f"on-kubelet-{number}" for number in range(OF_KUBELET)):
        body = {"metadata": {"annotations": ANNOTATION}}
        done += client.patch("pods", name, body, OTHERS, subresource="status")["metadata"]["name"] == name
    client.close()
    scene.ended.wait()
    return done


def prepare_crowd(scene: Scene) -> None:
    def creation(number: int) -> Any:
        body = pod(f"crowd-{number}", scene.healthy[number % len(scene.healthy)])
        return lambda client: client.create("pods", body, scene.tenant.namespace)

    at_once(scene.tenant, [creation(number) for number in range(FLIPPED)])


def flip(scene: Scene) -> int:
    """A profile that makes all pods leave, and is gone again, in turn."""
    tenant, made = scene.tenant, 0
    while not scene.ended.is_set():
        tenant.profile("flip", NEVER)
        made += 1
        scene.ended.wait(FLIP_SECONDS)
        tenant.client.delete("tolerationprofiles", "flip", tenant.namespace)
        scene.ended.wait(FLIP_SECONDS)
    return made


ATTACKS = {
    "profiles": Attack(label_profiles, prepare_profiles),
    "tolerates-nothing": Attack(tolerate_nothing),
    "reclaimed": Attack(come_back, prepare_reclaimed),
    "kubelet": Attack(annotate_through_status, prepare_kubelet, holds=f"{OTHERS} on node "),
    "flip": Attack(flip, prepare_crowd, holds="attacked-flip"),
}
"""Beside the large pods, which are there all the time."""


# -- objects ----------------------------------------------------------------------------------------------------------


def add_node(admin: Cluster, name: str, zone: str, taints: Sequence[Json]) -> None:
    """A node without a kubelet, which takes none of the cluster's own pods. It may be in no zone."""
    labels = {"topology.kubernetes.io/region": REGION, "topology.kubernetes.io/zone": zone} if zone else {}
    admin.create_node(name, labels, taints)
    admin.patch("nodes", name, {"spec": {"unschedulable": True}})


def taint(value: str) -> Json:
    return {"key": KEY, "value": value, "effect": "NoExecute"}


def pod(name: str, node: str, *, annotations: Json | None = None, **spec: Any) -> Json:
    """A pod that is bound already, stays by Kubernetes' rules, and ends at once."""
    container = {"name": "main", "image": "registry.example.com/none"}
    bound = {"nodeName": node, "containers": [container], "tolerations": [EXISTS], "terminationGracePeriodSeconds": 0}
    metadata = {"name": name, "annotations": annotations or {}}
    return {"metadata": metadata, "spec": bound | {"automountServiceAccountToken": False} | spec}


def create(client: Client, body: Json, namespace: str) -> bool:
    """Create a pod unless it is there. Whether it was not."""
    try:
        client.create("pods", body, namespace)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
        return False
    return True


def policy(name: str, key: str, **spec: Any) -> Json:
    selected = {"taints": [{"key": key}], "namespaceSelector": {"matchLabels": SHARED}}
    kind = {"apiVersion": "taintwarden.io/v1alpha1", "kind": "TaintEvictionPolicy"}
    return kind | {"metadata": {"name": name}, "spec": selected | spec}


# -- the story --------------------------------------------------------------------------------------------------------


@dataclass
class Story:
    """What was seen of all of it."""

    attacks: dict[str, Seen] = field(default_factory=dict)
    terms: set[tuple[str, int]] = field(default_factory=set)
    """Holder and number of transitions of the Lease, whenever it was looked at."""
    bytes_at_most: list[int] = field(default_factory=list)


@contextmanager
def played(ground: Ground) -> Iterator[Story]:
    """Play it, and remove what it made in the end."""
    admin, story = ground.target.client, Story()
    with ExitStack() as stack:
        healthy = stack.enter_context(furnished(admin, ground.kubelet_node))
        large = stack.enter_context(tenant(ground, "attacked-large"))
        stack.callback(remove_large_pods, large)
        at_once(large, [large_pod(large, number, QUIET) for number in range(LARGE_PODS)])
        ground.start()
        for number, (name, attack) in enumerate(ATTACKS.items()):
            with tenant(ground, f"attacked-{name}") as attacker:
                scene = Scene(ground, attacker, healthy)
                story.attacks[name] = play(story, scene, attack, f"victim-{name}", ZONES[number % len(ZONES)])
            wait_until(lambda: not holding(admin), PATIENCE_SECONDS, f"what is held after {name} to be free again")
        story.bytes_at_most = ground.peak_bytes()
        tell(story)
        yield story


@contextmanager
def furnished(admin: Cluster, kubelet_node: str) -> Iterator[list[str]]:
    """The policies, the namespace of the others, and healthy nodes in three zones, whose names it gives."""
    healthy = [f"attacked-{zone}-{number}" for zone in ZONES for number in range(NODES_OF_ZONE)]
    before = admin.get("nodes", kubelet_node)["spec"].get("taints", [])
    admin.create_namespace(OTHERS, SHARED)
    try:
        for name in healthy:
            add_node(admin, name, name.split("-")[1], [taint(GOOD)])
        add_node(admin, QUIET, "", [])
        admin.set_taints(kubelet_node, [*before, taint(GOOD)])
        guard = {"guard": {"minPods": GUARD_PODS, "maxPods": GUARD_PODS}}
        admin.create("taintevictionpolicies", policy(POLICY, KEY, limits=guard))
        admin.create("taintevictionpolicies", policy(RECLAIM, RECLAIMED, reclaim={"deadlineSeconds": 600}))
        yield healthy
    finally:
        for name in (POLICY, RECLAIM):
            discard(admin, "taintevictionpolicies", name)
        admin.set_taints(kubelet_node, before)
        admin.remove_namespace(OTHERS)
        for name in (QUIET, LEAVING, *healthy, *map(evicting, ATTACKS)):
            discard(admin, "nodes", name)


@contextmanager
def tenant(ground: Ground, namespace: str) -> Iterator[Tenant]:
    made = Tenant(ground.target, namespace, SHARED)
    try:
        yield made
    finally:
        made.close()
        ground.target.client.remove_namespace(namespace)


def evicting(attack: str) -> str:
    """The node from which pods are evicted during an attack."""
    return f"attacked-evicting-{attack}"


def discard(client: Client, resource: str, name: str, namespace: str = "") -> None:
    with suppress(ApiError):
        client.delete(resource, name, namespace, grace_seconds=0)


def remove_large_pods(of: Tenant) -> None:
    """One by one: the API server takes longer for all of them than a client waits."""
    names = [f"large-{number}" for number in range(LARGE_PODS)]
    at_once(of, [lambda client, name=name: discard(client, "pods", name, of.namespace) for name in names])


def holding(admin: Cluster) -> set[str]:
    """What the guard of the policy holds."""
    seen = Seen()
    look(seen, admin.get("taintevictionpolicies", POLICY).get("status", {}))
    return seen.tripped | seen.held


def play(story: Story, scene: Scene, attack: Attack, victim: str, zone: str) -> Seen:
    seen, admin, node = Seen(), scene.admin, evicting(victim.removeprefix("victim-"))
    add_node(admin, node, zone, [taint(GOOD)])
    for number in range(VICTIMS):
        above = ABOVE | {"violationGraceSeconds": FIRST_SECONDS + number * EVERY_SECONDS}
        annotations = {"taintwarden.io/tolerations": json.dumps([above])}
        body = {"tolerations": [EXISTS], "annotations": annotations, "grace_seconds": 0}
        admin.create_pod(f"{victim}-{number}", OTHERS, node, **body)
    attack.prepare(scene)
    with ThreadPoolExecutor(2) as pool:
        acting, watching = pool.submit(attack.act, scene), pool.submit(watch, story, seen, scene)
        try:
            admin.set_taints(node, [taint(BAD)])
            with suppress(TimeoutError):  # a victim that stays has no lateness
                last = f"{victim}-{VICTIMS - 1}"
                wait_until(lambda: not admin.find("pods", last, OTHERS), PATIENCE_SECONDS, f"{last} to be evicted")
                if attack.holds:  # a busy machine makes the attacker slow
                    wait_until(lambda: seen.held, PATIENCE_SECONDS, "something to be held")
        finally:
            scene.ended.set()
        seen.done = acting.result()
        watching.result()
    seen.lateness = lateness(scene.ground.logs, f"{OTHERS}/{victim}-", VICTIMS)
    admin.delete_all("pods", OTHERS)
    return seen


def watch(story: Story, seen: Seen, scene: Scene) -> None:
    """Look at the Lease and the two policies until the end."""
    while True:
        lease = scene.admin.get("leases", "taintwarden", OPERATOR_NAMESPACE)["spec"]
        story.terms.add((lease["holderIdentity"], lease["leaseTransitions"]))
        for name in (POLICY, RECLAIM):
            look(seen, scene.admin.get("taintevictionpolicies", name).get("status", {}))
        if scene.ended.wait(SAMPLE_SECONDS):
            return


def look(seen: Seen, status: Json) -> None:
    for one in status.get("conditions", []):
        if one["type"] == "GuardTripped":
            if one["status"] == "True":
                seen.tripped.add(one["message"])
            elif one["reason"] == "HoldsNamespace":
                seen.held.add(one["message"])
    seen.zones |= {f"{one['zone']} {one['state']}" for one in status.get("zones", []) if one["state"] != "Normal"}


def tell(story: Story) -> None:
    """Print the figures that docs/security.md has."""
    for name, seen in story.attacks.items():
        latest = max(seen.lateness, default=-1)
        print(f"{name}: {seen.done} done, {len(seen.lateness)} evicted, late by {latest:.2f} s, held {seen.held}")  # noqa: T201
    print(f"terms {story.terms}, MiB {[one >> 20 for one in story.bytes_at_most]}")  # noqa: T201


# -- judgements -------------------------------------------------------------------------------------------------------


class Judgements:
    """The tests of the story, which a fixture `story` of the module plays on its ground.

    Each says what it saw: assertions outside of test modules show no values.
    """

    @pytest.mark.parametrize("attack", ATTACKS)
    def test_evictions_of_others_are_in_time(self, story: Story, attack: str) -> None:
        lateness = story.attacks[attack].lateness
        assert len(lateness) == VICTIMS, lateness
        assert max(lateness) < LATEST_SECONDS, lateness

    @pytest.mark.parametrize("attack", ATTACKS)
    def test_guards_and_zones_of_others_do_not_change(self, story: Story, attack: str) -> None:
        """No guard halts a policy or holds another namespace, or another node, and every zone is Normal."""
        seen, holds = story.attacks[attack], ATTACKS[attack].holds
        assert not seen.tripped, seen.tripped
        assert all(holds and holds in message for message in seen.held), seen.held
        assert not seen.zones, seen.zones

    @pytest.mark.parametrize("attack", ATTACKS)
    def test_the_attacker_did_it(self, story: Story, attack: str) -> None:
        """It was what it says, and was seen where it is held."""
        seen = story.attacks[attack]
        # Of labels and of odd pods as many as the API server takes beside all else, which a busy machine makes few.
        least = {"profiles": THREADS, "tolerates-nothing": 5, "reclaimed": RECREATED, "kubelet": OF_KUBELET}
        assert seen.done >= least.get(attack, 1), seen.done
        assert bool(seen.held) == bool(ATTACKS[attack].holds), seen.held

    def test_leadership_is_kept(self, story: Story) -> None:
        assert len(story.terms) == 1, story.terms

    def test_memory_is_bounded(self, story: Story) -> None:
        assert story.bytes_at_most
        assert max(story.bytes_at_most) < MOST_BYTES, story.bytes_at_most

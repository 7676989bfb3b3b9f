"""Two ways to the same nodes: the extender decides as the engine does, and labels never allow more nodes than it.

Where labels allow fewer, the author of the pod or the administrator of the node is warned.
"""

import asyncio
import json
from typing import Any, NamedTuple

import msgspec
from hypothesis import event, given
from hypothesis import strategies as st

from admission.patching import patched
from placement.affinity_law import matches, weight
from placement.node_selector import holds
from scheduling.scene import READ, Scene, pod_json
from taintwarden.engine.evaluate import judge
from taintwarden.engine.model import Effect, Taint, Toleration, Tolerations
from taintwarden.engine.operators import ALL_GATES, Match, match
from taintwarden.engine.policy import Policy, TaintSelector, TolerationSecondsMode
from taintwarden.kube.wire.kinds import NodeObject
from taintwarden_placement.admission.injection import NO_NODE, additions
from taintwarden_placement.admission.placing import ConcerningPolicies
from taintwarden_placement.node_labels import node_labels, version_labels
from taintwarden_placement.scheduling.demands import UnboundPod
from taintwarden_placement.scheduling.extender import ExtenderArgs, PreemptionArgs
from taintwarden_placement.scheduling.feasibility import Demand

KEYS, LABEL = ("sla", "cni"), "example.com/kubelet"
REPELLING = (Effect.NO_SCHEDULE, Effect.NO_EXECUTE)
POLICY = Policy(name="placed", taints=tuple(TaintSelector(key, tuple(REPELLING), placement=True) for key in KEYS))
VALUES = st.sampled_from(
    ["", "0", "949", "950", "0950", "951", "gold", "1.28.0", "v1.28.0-rc.1", "v1.28.0-rc.2", "1.10000.0"]
)
VERSIONS = st.sampled_from(["1.28.0", "v1.28", "1.28.0-rc.1", "1.28.0-rc.2", "1.27.9", "1.10000.0"])
TAINTS = st.lists(
    st.builds(Taint, st.sampled_from(KEYS), VALUES, st.sampled_from(list(Effect))),
    max_size=3,
    unique_by=lambda one: (one.key, one.effect),
)


def toleration(operator: str, value: str, key: str, effect: str) -> dict[str, str]:
    given = {"key": key, "operator": operator, "value": value, "effect": effect}
    return {name: text for name, text in given.items() if text}


TOLERATIONS = st.lists(
    st.one_of(
        st.builds(toleration, st.just("Exists"), st.just(""), st.sampled_from(KEYS), st.sampled_from(["", *Effect])),
        st.builds(toleration, st.just("Equal"), VALUES, st.sampled_from(KEYS), st.sampled_from(["", *Effect])),
        st.builds(
            toleration,
            st.sampled_from(["Gt", "Lt"]),
            st.sampled_from(["0", "949", "950"]),
            st.sampled_from(KEYS),
            st.sampled_from(["", *Effect]),
        ),
        st.builds(
            toleration,
            st.sampled_from(["SemverGt", "SemverLt", "SemverEq"]),
            VERSIONS,
            st.sampled_from(KEYS),
            st.sampled_from(["", *Effect]),
        ),
    ),
    max_size=3,
)
REQUIREMENTS = st.one_of(
    st.builds(
        lambda operator, value: {"key": LABEL, "operator": operator, "values": [value]},
        st.sampled_from(["SemverGt", "SemverLt", "SemverEq"]),
        VERSIONS,
    ),
    st.sampled_from(
        [{"key": LABEL, "operator": "Exists"}, {"key": "zone", "operator": "NotIn", "values": ["a"]}],
    ),
)
TERMS = st.lists(
    st.fixed_dictionaries({"matchExpressions": st.lists(REQUIREMENTS, min_size=1, max_size=2)}), max_size=2
)
LABELS = st.fixed_dictionaries({}, optional={LABEL: VERSIONS | st.just("latest"), "zone": st.sampled_from(["a", "b"])})


class World(NamedTuple):
    """A pod as its author wrote it, and a node."""

    tolerations: list[dict[str, str]]
    terms: list[Any]
    taints: list[Taint]
    labels: dict[str, str]

    def pod(self) -> dict[str, Any]:
        terms = {"nodeSelectorTerms": self.terms}
        affinity = {"requiredDuringSchedulingIgnoredDuringExecution": terms} if self.terms else None
        return pod_json(tolerations=self.tolerations, affinity=affinity, native=())


class Outcome(NamedTuple):
    """Results for the pod on the node by labels and by the extender, and whether there was a warning."""

    demand: Demand
    by_labels: bool
    by_extender: bool
    natively: bool
    is_warned: bool


def played(world: World) -> Outcome:
    scene = Scene()
    scene.node_changes.wait_until = lambda _: asyncio.sleep(0)  # no scheduler is waiting
    written = [{"key": one.key, "value": one.value, "effect": one.effect} for one in world.taints]
    stored_node = {"metadata": {"labels": world.labels}, "spec": {"taints": written}}
    scene.nodes["a"] = READ(msgspec.convert(stored_node, NodeObject))
    pod = world.pod()
    asked, acting = scene.demands.of(msgspec.convert(pod, UnboundPod)), ConcerningPolicies((POLICY,), (POLICY,))
    injected = additions(pod, asked, acting, (LABEL,), ALL_GATES).response()
    stored = patched(pod, injected.patch)
    args = ExtenderArgs(msgspec.convert(stored, UnboundPod), ["a"])
    demand = scene.demands.of(args.pod)
    by_extender = asyncio.run(scene.extender.filter(args)).node_names == ["a"]
    victims = {"a": msgspec.Raw(b"{}")}
    assert bool(scene.extender.preempt(PreemptionArgs(args.pod, victims)).node_name_to_meta_victims) == by_extender
    repeated, versions = node_labels(world.taints, POLICY.taints), version_labels(world.labels, (LABEL,))
    labels = world.labels | repeated.labels | versions.labels
    is_warned = bool(injected.warnings or repeated.faults or versions.faults)
    return Outcome(demand, places(stored, labels), by_extender, is_native(stored, world.taints), is_warned)


def places(pod: dict[str, Any], labels: dict[str, str]) -> bool:
    """Return True if the stored affinity and selector of the pod match, as the scheduler reads them."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    selects = NO_NODE.keys().isdisjoint(pod["spec"].get("nodeSelector", {}))
    return selects and (required is None or holds(required["nodeSelectorTerms"], labels))


def is_native(pod: dict[str, Any], taints: list[Taint]) -> bool:
    """Return True if the scheduler's own plugin admits the pod; extended tolerations do not count for it."""
    native = msgspec.convert(pod["spec"].get("tolerations", []), tuple[Toleration, ...])
    repelling = (taint for taint in taints if taint.effect in REPELLING)
    return all(any(match(one, taint) is Match.HOLDS for one in native) for taint in repelling)


def is_tolerated(tolerations: Tolerations, taints: list[Taint]) -> bool:
    mode = TolerationSecondsMode.AFTER_VIOLATION
    repelling = (taint for taint in taints if taint.effect in REPELLING)
    return all(judge(tolerations.relevant_to(taint.key), taint, mode).tolerated for taint in repelling)


WORLDS = st.builds(World, TOLERATIONS, TERMS, TAINTS, LABELS)


@given(WORLDS)
def test_the_extender_labels_and_the_engine_agree(world):
    """Labels may allow less than the extender, and then there is a warning."""
    found = played(world)
    affinities = all(matches(one.affinity, world.labels) for one in found.demand.affinities)
    tolerated = is_tolerated(found.demand.tolerations, world.taints)
    # Without anything extended the scheduler alone decides.
    assert found.by_extender == (found.demand.is_native or (tolerated and affinities))
    assert found.by_extender or not (found.by_labels and found.natively)
    if found.by_extender and not found.demand.is_native and tolerated:
        assert found.natively, "the webhook adds the toleration without which the scheduler would never ask"
    if found.by_extender and found.natively and not found.by_labels:
        assert found.is_warned
        event("left out and reported")


@given(WORLDS)
def test_preferences_agree_with_the_engine(world):
    scene = Scene()
    preferred = [{"weight": 5, "preference": term} for term in world.terms]
    affinity = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    demand = scene.demands.of(msgspec.convert(pod_json(affinity=json.dumps(affinity)), UnboundPod))
    expected = sum(weight(one.affinity, world.labels) for one in demand.affinities)
    assert scene.filters.for_demand(demand).preferences((), world.labels).weight == expected

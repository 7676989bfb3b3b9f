"""The answers to schedulers."""

import msgspec
import pytest

from scheduling.scene import ABOVE, EXISTS, NEWER, Scene, node, pod, preferred, required, sla
from taintwarden.engine.model import Gates
from taintwarden_placement.scheduling.extender import REASONS, WITHOUT_VALUES, ExtenderArgs, PreemptionArgs, node_scores
from taintwarden_placement.scheduling.feasibility import AnyOf, Preferences

pytestmark = pytest.mark.looptime  # refusals wait for a change of the node

PREFER = "PreferNoSchedule"


@pytest.fixture
def scene() -> Scene:
    made = Scene()
    made.nodes |= {
        "good": node(sla(980), kubelet="v1.32.0"),
        "bad": node(sla(940), kubelet="v1.31.4"),
        "plain": node(),
    }
    return made


async def filtered(scene: Scene, *names: str, **parts: object) -> tuple[list[str], dict[str, str]]:
    result = await scene.extender.filter(ExtenderArgs(pod(**parts), list(names or scene.nodes)))
    return result.node_names or [], result.failed_and_unresolvable_nodes


def scores(scene: Scene, **parts: object) -> dict[str, int]:
    return {one.host: one.score for one in scene.extender.prioritize(ExtenderArgs(pod(**parts), list(scene.nodes)))}


async def test_nodes_whose_taint_is_not_tolerated_fail_with_the_reason(scene):
    assert await filtered(scene, tolerations=[ABOVE]) == (
        ["good", "plain"],
        {"bad": "taint sla=940:NoSchedule is not tolerated (sla Gt '950':NoSchedule does not hold)"},
    )


async def test_nodes_whose_labels_do_not_match_fail_with_the_reason(scene):
    fitting, failed = await filtered(scene, affinity=required(NEWER))
    assert fitting == ["good"]
    assert failed["bad"].endswith("does not match (kubelet SemverGt '1.31.99' does not hold for 'v1.31.4')")
    assert failed["plain"].endswith("does not match (kubelet SemverGt '1.31.99': the node has no such label)")


async def test_without_shows_values_reasons_name_no_taint_label_or_threshold():
    """Any client of the port may send a pod with any toleration, and name the namespace of another tenant's profile."""
    scene = Scene(shows_values=False)
    scene.nodes |= {"bad": node(sla(940), kubelet="v1.31.4")}
    reasons = []
    for parts in ({"tolerations": [ABOVE]}, {"affinity": required(NEWER)}, {"affinity": "[]"}):
        reasons += (await filtered(scene, "bad", **parts))[1].values()
    reasons += (await filtered(scene, "missing", tolerations=[ABOVE]))[1].values()
    assert reasons == [
        "a taint is not tolerated",
        "the node affinity does not match",
        "the node affinity cannot be read",
        "taintwarden does not know the node yet",
    ]


async def test_each_reason_has_a_text_without_values():
    assert WITHOUT_VALUES.keys() == set(REASONS)


async def test_the_order_of_pre_releases_counts(scene):
    scene.nodes["rc"] = node(kubelet="v1.32.0-rc.2")
    newer = {"key": "kubelet", "operator": "SemverGt", "values": ["1.32.0-rc.1"]}
    assert (await filtered(scene, "rc", "bad", affinity=required(newer)))[0] == ["rc"]


async def test_a_pod_with_only_native_demands_fits_every_node_even_unknown_ones(scene):
    assert await filtered(scene, "bad", "new") == (["bad", "new"], {})


async def test_an_unknown_node_is_refused_to_pods_with_extended_demands(scene):
    assert await filtered(scene, "new", tolerations=[ABOVE]) == ([], {"new": "taintwarden does not know the node yet"})


async def test_only_the_given_nodes_are_answered(scene):
    assert await filtered(scene, "good", tolerations=[ABOVE]) == (["good"], {})


async def test_an_affinity_that_cannot_be_read_is_the_reason_on_every_node(scene):
    fitting, failed = await filtered(scene, affinity="{")
    assert (fitting, len(failed)) == ([], 3)
    assert all("is invalid, so no node matches" in reason for reason in failed.values())


async def test_refusals_are_counted_by_their_cause(scene):
    await filtered(scene, "good", "bad", "new", tolerations=[ABOVE])
    await filtered(scene, affinity=required(NEWER))
    await filtered(scene, affinity="{")
    assert scene.counted == [("taint", 1), ("node-unknown", 1), ("node-affinity", 2), ("invalid-node-affinity", 3)]


async def test_operators_can_be_switched_off():
    scene = Scene(Gates(numeric_operators=False))
    scene.nodes["good"] = node(sla(980))
    assert "is switched off" in (await filtered(scene, tolerations=[ABOVE]))[1]["good"]


async def test_a_value_is_compared_once_for_nodes_that_are_alike(scene, monkeypatch):
    asked, holds = [], AnyOf.holds
    monkeypatch.setattr(AnyOf, "holds", lambda self, value: asked.append(value) or holds(self, value))
    scene.nodes |= {f"n{number}": node(sla(980), host=str(number)) for number in range(50)}
    for _ in range(3):
        await filtered(scene, tolerations=[ABOVE])
    assert sorted(asked) == ["940", "980"]


async def test_the_stored_demands_are_bounded():
    scene = Scene(max_demands=3, max_comparisons=15)
    for number in range(10):
        scene.nodes[f"n{number}"] = node(sla(number))
        await filtered(scene, tolerations=[ABOVE | {"value": str(number)}])
        scores(scene, tolerations=[ABOVE | {"value": str(number)}])
        assert len(scene.filters) <= 3
        assert scene.filters.comparisons <= 15 + len(scene.nodes)


def test_a_taint_that_is_preferably_avoided_lowers_the_score(scene):
    scene.nodes.clear()
    scene.nodes |= {"low": node(sla(940, PREFER)), "high": node(sla(960, PREFER))}
    assert scores(scene, tolerations=[ABOVE | {"effect": PREFER}]) == {"low": 0, "high": 10}


def test_preferred_labels_raise_the_score(scene):
    assert scores(scene, affinity=preferred(50, NEWER)) == {"good": 10, "bad": 0, "plain": 0}


def test_without_a_preference_all_nodes_score_alike(scene):
    assert set(scores(scene, tolerations=[ABOVE]).values()) == {0}
    assert set(scores(scene).values()) == {0}


def test_an_unknown_node_scores_like_one_without_taints_and_labels(scene):
    (found,) = scene.extender.prioritize(ExtenderArgs(pod(affinity=preferred(50, NEWER)), ["new"]))
    assert (found.host, found.score) == ("new", 0)


def test_both_preferences_weigh_as_the_plugins_of_the_scheduler():
    taints, labels = Preferences(0, 0), Preferences(2, 100)
    assert node_scores([taints, labels, Preferences(1, 50), Preferences(0, 100)]) == [6, 4, 5, 10]
    assert node_scores([]) == []


def test_nothing_is_preempted_on_a_node_that_the_pod_does_not_fit(scene):
    victims = {name: msgspec.Raw(b"{}") for name in ("good", "bad")}
    args = PreemptionArgs(pod(tolerations=[ABOVE]), victims)
    assert list(scene.extender.preempt(args).node_name_to_meta_victims) == ["good"]


def test_preemption_for_pods_with_native_demands_is_not_changed(scene):
    victims = {"bad": msgspec.Raw(b"{}"), "new": msgspec.Raw(b"{}")}
    assert scene.extender.preempt(PreemptionArgs(pod(native=[EXISTS]), victims)).node_name_to_meta_victims == victims

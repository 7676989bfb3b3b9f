"""The webhooks as API servers reach them: through the Service, by kube-proxy's rules, to pods on other nodes."""

import itertools
import json
import time

from controlplane import ApiError, wait_until
from kind.installation import WEBHOOK, Installation
from kind.scene import KEY, Scene, above

BAD_NUMBER = {"taintwarden.io/tolerations": json.dumps([above(value="0950")])}
INJECTED = {"taintwarden.io/inject": "true"}
MIRRORED_SECONDS = 30
AWAY_SECONDS = 20


def create(scene: Scene, name: str, annotations: dict[str, str]) -> None:
    template = scene.template()
    template["metadata"] |= {"name": name, "annotations": annotations}
    scene.cluster.create("pods", template, scene.name)


def test_one_replica_that_is_gone_makes_no_difference(scene: Scene) -> None:
    """A call that meets it ends in milliseconds, and no call does once the Service leads to the others alone."""
    webhook = Installation(scene.cluster, WEBHOOK)
    webhook.crash(webhook.pods()[0])
    numbers = itertools.count()

    def refuses() -> bool:
        began, said = time.monotonic(), ""
        try:
            create(scene, f"web-{next(numbers)}", BAD_NUMBER)
        except ApiError as error:
            said = str(error)
        assert time.monotonic() - began < 3
        return "leading zeros" in said

    wait_until(lambda: all(refuses() for _ in range(5)), AWAY_SECONDS, "the others to answer every call")


def test_a_replacement_lands_where_it_may_stay(scene: Scene, operator: Installation) -> None:
    """Placement and injection on: the scheduler reads the labels that the operator writes, and the affinity it adds."""
    cluster = scene.cluster
    cluster.patch("namespaces", scene.name, {"metadata": {"labels": INJECTED}})
    scene.policy(taints=[{"key": KEY, "valueType": "Integer", "placement": True}])
    scene.wait_enforcing()
    first, *others = scene.workers
    scene.taint(first, "980")
    for node in others:
        scene.taint(node, "900")

    def mirrored(**values: str) -> bool:
        labels = {node: cluster.get("nodes", node)["metadata"]["labels"] for node in values}
        return all(labels[node].get(f"value.taintwarden.io/{KEY}") == value for node, value in values.items())

    wait_until(lambda: mirrored(**{first: "980", others[0]: "900", others[1]: "900"}), MIRRORED_SECONDS, "the labels")
    template = scene.template(grace_seconds=1)
    extended = json.dumps([above()])
    template["metadata"]["annotations"] = {"taintwarden.io/tolerations": extended}
    probe = {**template, "metadata": {**template["metadata"], "name": "probe"}}
    is_placed = lambda: "affinity" in cluster.create("pods", probe, scene.name, dryRun="All")["spec"]  # noqa: E731
    wait_until(lambda: all(is_placed() for _ in range(5)), MIRRORED_SECONDS, "each replica to know the policy")
    scene.workload("deployments", "web", template, replicas=2)
    assert set(scene.wait_running(2).values()) == {first}
    scene.taint(others[0], "990")
    wait_until(lambda: mirrored(**{others[0]: "990"}), MIRRORED_SECONDS, "the new label")
    scene.taint(first, "940")
    assert set(scene.wait_running(2, off=first).values()) == {others[0]}

"""Node affinity with versions, with the real scheduler: by labels that repeat versions as numbers.

From the annotation of pods, from profiles, and from the annotation of volumes.
"""

import json
from collections.abc import Iterator
from functools import partial

import pytest

from controlplane import Json, WorkingCluster
from e2e.placement_scenes import PlacementScene, placing
from e2e.stories import PATIENCE_SECONDS, Stories, Story, Told
from taintwarden.engine.placement.labels import label_version_label

DRIVER = "example.com/driver"
VERSIONS = "versions"
POLICIES = {VERSIONS: {"versionLabels": [DRIVER]}}
AFFINITY = "taintwarden.io/node-affinity"
STORIES = Stories()
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
OF_ITS_VOLUME = ("didn't match PersistentVolume's node affinity", "volume node affinity conflict")
"""What newer and older schedulers say."""
NO_NODE = "didn't match Pod's node affinity/selector"

pytestmark = pytest.mark.timeout(600)  # the first test waits for the cluster, and each for its story


@pytest.fixture(scope="module")
def told(
    request: pytest.FixtureRequest, own_working_cluster: WorkingCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Told]:
    with placing(request, own_working_cluster, tmp_path_factory.mktemp("versions"), STORIES, POLICIES) as told:
        yield told


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story(told: Told, story: Story) -> None:
    told.judge(story)


def test_the_shipped_rights_suffice(told: Told) -> None:
    told.judge_rights()


def term(operator: str, value: str, key: str = DRIVER) -> Json:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": [value]}]}


def required(*terms: Json) -> Json:
    return {REQUIRED: {"nodeSelectorTerms": list(terms)}}


def preferred(*terms: Json) -> Json:
    entries = [{"weight": 50, "preference": one} for one in terms]
    return {"preferredDuringSchedulingIgnoredDuringExecution": entries}


def annotated(affinity: Json | str) -> Json:
    return {"annotations": {AFFINITY: affinity if isinstance(affinity, str) else json.dumps(affinity)}}


def begin(scene: PlacementScene, **versions: str) -> dict[str, str]:
    """Nodes with these drivers, whose versions are repeated, in a namespace whose pods are completed."""
    nodes = {name: scene.place_node(name, labels={DRIVER: version}) for name, version in versions.items()}
    scene.cluster.patch("namespaces", scene.namespace, {"metadata": {"labels": {"taintwarden.io/inject": "true"}}})
    scene.wait(partial(is_completed, scene), PATIENCE_SECONDS, "pods to be completed by the webhook")
    label = label_version_label(DRIVER)

    def repeated() -> bool:
        return all(label in scene.cluster.get("nodes", node)["metadata"]["labels"] for node in nodes.values())

    scene.wait(repeated, PATIENCE_SECONDS, "versions to be repeated")
    return nodes


def is_completed(scene: PlacementScene) -> bool:
    return "affinity" in rehearsed(scene, required(term("SemverGt", "0.0.1")))


def rehearsed(scene: PlacementScene, affinity: Json | str) -> Json:
    """The spec with which a pod with this annotation would be stored."""
    body = {"containers": [{"name": "main", "image": "none"}], "automountServiceAccountToken": False}
    pod = {"metadata": {"name": "rehearsed", **annotated(affinity)}, "spec": body}
    return scene.cluster.create("pods", pod, scene.namespace, dryRun="All")["spec"]


@STORIES.under(VERSIONS)
def pods_are_placed_by_the_version_in_a_label(scene: PlacementScene) -> None:
    nodes = begin(scene, old="v3.9.0", new="v3.27.2")
    scene.place("newer", **annotated(required(term("SemverGt", "3.10"))))
    scene.place("older", **annotated(required(term("SemverLt", "3.10"))))
    scene.place("same", **annotated(required(term("SemverEq", "3.27.2"))))
    scene.place("newest", **annotated(required(term("SemverGt", "4.0.0"), term("SemverEq", "3.9.1"))))
    scene.wait_placed("newer", nodes["new"])
    scene.wait_placed("older", nodes["old"])
    scene.wait_placed("same", nodes["new"])
    scene.wait_pending("newest", NO_NODE)
    scene.cluster.patch("nodes", nodes["old"], {"metadata": {"labels": {DRIVER: "v4.1.0"}}})
    scene.wait_placed("newest", nodes["old"])


@STORIES.under(VERSIONS)
def a_preferred_version_is_used_first(scene: PlacementScene) -> None:
    nodes = begin(scene, old="1.9.0", new="1.10.0")
    for number in range(3):
        scene.place(f"web-{number}", **annotated(preferred(term("SemverGt", "1.9.9"))))
        scene.wait_placed(f"web-{number}", nodes["new"])
    scene.cordon([nodes["new"]])
    scene.place("last", **annotated(preferred(term("SemverGt", "1.9.9"))))
    scene.wait_placed("last", nodes["old"])


@STORIES.under(VERSIONS)
def what_a_profile_requires_counts_as_well(scene: PlacementScene) -> None:
    nodes = begin(scene, old="1.9.0", new="1.10.0")
    scene.cordon([nodes["new"]])  # or the pod could be there by chance
    kind = {"apiVersion": "taintwarden.io/v1alpha1", "kind": "TolerationProfile", "metadata": {"name": "newer"}}
    profile = {**kind, "spec": {"nodeAffinity": required(term("SemverGt", "1.9.9"))}}
    scene.cluster.create("tolerationprofiles", profile, scene.namespace)
    scene.wait(lambda: "affinity" in scene.rehearsed(), PATIENCE_SECONDS, "the profile to count")
    scene.place("web")
    scene.wait_pending("web", NO_NODE)
    scene.cordon([nodes["new"]], off=True)
    scene.wait_placed("web", nodes["new"])


@STORIES.under(VERSIONS)
def a_pod_goes_where_its_volume_may_be_used(scene: PlacementScene) -> None:
    """The claim is bound, as the controller for volumes writes it, which does not run here."""
    nodes = begin(scene, old="1.9.0", new="1.10.0")
    name = f"{scene.namespace}-disk"
    size = {"storage": "1Gi"}
    scene.cluster.create(
        "persistentvolumes",
        {
            "metadata": {"name": name, **annotated({"required": required(term("SemverGt", "1.9.9"))[REQUIRED]})},
            "spec": {
                "capacity": size,
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "none",
                "csi": {"driver": "none.example.com", "volumeHandle": name},
                "claimRef": {"namespace": scene.namespace, "name": "disk"},
            },
        },
    )
    claim = scene.cluster.create(
        "persistentvolumeclaims",
        {
            "metadata": {"name": "disk", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "none",
                "volumeName": name,
                "resources": {"requests": size},
            },
        },
        scene.namespace,
    )
    reference = {"claimRef": {"uid": claim["metadata"]["uid"]}}
    scene.cluster.patch("persistentvolumes", name, {"spec": reference})
    scene.cluster.patch("persistentvolumes", name, {"status": {"phase": "Bound"}}, subresource="status")
    bound = {"status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": size}}
    scene.cluster.patch("persistentvolumeclaims", "disk", bound, scene.namespace, subresource="status")
    scene.cordon([nodes["new"]])
    volumes = [{"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}]
    scene.place("web", spec={"volumes": volumes})
    scene.wait_pending("web", *OF_ITS_VOLUME)
    scene.cordon([nodes["new"]], off=True)
    scene.wait_placed("web", nodes["new"])
    scene.cluster.delete("persistentvolumes", name)


@STORIES.under(VERSIONS)
def what_cannot_be_written_places_a_pod_on_no_node(scene: PlacementScene) -> None:
    """A pod of a controller, whose author sees no warning: it is not refused."""
    begin(scene, any="1.0.0")
    uid = scene.cluster.create("configmaps", {"metadata": {"name": "owner"}}, scene.namespace)["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
    for affinity in ("{", required(term("SemverGt", "1.0.0", "unpublished"))):
        scene.place("web", **annotated(affinity), owner=owner)
        scene.wait_pending("web", NO_NODE)
        scene.cluster.delete("pods", "web", scene.namespace)
    assert rehearsed(scene, required(term("SemverGt", "1.0.0", "unpublished")))["nodeSelector"] == {
        "taintwarden.io/node-affinity": "cannot-be-met"
    }

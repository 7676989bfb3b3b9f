"""What a PersistentVolume gets before it is stored."""

import json
from typing import Any

from admission.patching import patched
from taintwarden.engine.operators import ALL_GATES
from taintwarden_placement.admission.injection import NO_NODE
from taintwarden_placement.admission.own_objects import check_change
from taintwarden_placement.admission.response import AdmissionResponse
from taintwarden_placement.admission.volume_review import inject_volume

KEY = "example.com/driver"
Json = dict[str, Any]
SSD = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
NEWER = {"key": "example.com.label-version.taintwarden.io/driver", "operator": "Gt", "values": ["30027000000001"]}


def selector(*terms: Json) -> Json:
    return {"required": {"nodeSelectorTerms": list(terms)}}


def newer(key: str = KEY) -> str:
    return json.dumps(selector({"matchExpressions": [{"key": key, "operator": "SemverGt", "values": ["3.27.0"]}]}))


def volume(text: object = None, affinity: Json | None = None) -> Json:
    annotations = {} if text is None else {"taintwarden.io/node-affinity": text}
    spec = {"capacity": {"storage": "1Gi"}} | ({} if affinity is None else {"nodeAffinity": affinity})
    return {"kind": "PersistentVolume", "metadata": {"name": "v", "annotations": annotations}, "spec": spec}


def injected(obj: Json, old: Json | None = None) -> AdmissionResponse:
    return inject_volume(obj, old, (KEY,), ALL_GATES)


def affinity_of(obj: Json) -> object:
    return patched(obj, injected(obj).patch)["spec"].get("nodeAffinity")


def test_versions_become_numbers():
    assert affinity_of(volume(newer())) == selector({"matchExpressions": [NEWER]})


def test_its_own_affinity_still_has_to_match():
    expected = selector({"matchExpressions": [*SSD["matchExpressions"], NEWER]})
    assert affinity_of(volume(newer(), selector(SSD))) == expected


def test_a_volume_without_the_annotation_stays_as_it_is():
    assert injected(volume()) == injected(volume(affinity=selector(SSD))) == AdmissionResponse()


def test_asking_again_adds_nothing():
    once = patched(volume(newer()), injected(volume(newer())).patch)
    assert injected(once, once) == AdmissionResponse()


def test_a_volume_that_has_no_affinity_yet_gets_it_later():
    assert [step.path for step in injected(volume(newer()), volume()).patch] == ["/spec/nodeAffinity"]


def test_a_volume_that_has_one_keeps_it_and_that_is_told():
    response = injected(volume(newer(), selector(SSD)), volume(affinity=selector(SSD)))
    assert response.patch == ()
    assert response.warnings[0].endswith("create it again")


def test_what_labels_cannot_express_matches_no_node_and_is_told():
    obj = volume(newer("other"))
    (key, value) = next(iter(NO_NODE.items()))
    expected = {"key": key, "operator": "In", "values": [value]}
    assert affinity_of(obj) == selector({"matchExpressions": [expected]})
    assert "no policy lists the label other under versionLabels" in injected(obj).warnings[0]


def test_an_annotation_that_cannot_be_read_adds_nothing():
    assert injected(volume("{")) == injected(volume(7)) == AdmissionResponse()


def refused(obj: Json, old: Json | None = None) -> list[str]:
    return [fault.path for fault in check_change(obj, old, "", "PersistentVolume").refusals]


def test_it_is_refused_instead():
    assert refused(volume("{")) == ["metadata.annotations[taintwarden.io/node-affinity]"]
    assert refused(volume(newer())) == refused(volume()) == []


def test_what_did_not_change_is_not_refused():
    assert refused(volume("{"), volume("{")) == []

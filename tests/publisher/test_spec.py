"""Valid specs of a TaintPublisher, and the faults of invalid ones."""

import pytest

from publisher.scene import body
from taintwarden_publisher.spec import annotation, read_spec


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"key": "example.com/sla"},
        {"steps": None, "round": 10},
        {"effects": ["NoSchedule", "NoExecute"]},
        {"maxChangedNodes": 3},
        {"maxChangedNodes": "25%"},
        {"url": "https://thanos.example.com:443/query/"},
        {"auth": {}},
        {"nodeSelector": {"matchLabels": {"pool": "spot"}}},
    ],
)
def test_a_valid_spec_is_accepted(fields):
    spec, fault = read_spec(body(**fields))
    assert fault == ""
    assert spec is not None


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"key": "node.kubernetes.io/unreachable"}, "must not be a key of Kubernetes"),
        ({"key": "kubernetes.io/x"}, "must not be a key of Kubernetes"),
        ({"key": "readiness.k8s.io/x"}, "must not be a key of Kubernetes"),
        ({"key": "value.taintwarden.io/sla"}, "must not be a key of Kubernetes or Taintwarden"),
        ({"key": "a b"}, "spec.key"),
        ({"key": f"{'a' * 229}/x"}, "no more than 228 characters"),
        ({"round": 10}, "exactly one of steps and round"),
        ({"steps": None}, "exactly one of steps and round"),
        ({"steps": []}, "exactly one of steps and round"),
        ({"steps": [900, 940]}, "spec.steps[0]: Invalid value: 900: must be 0 in the first step"),
        ({"steps": [0, 940, 940]}, "must be greater than the step before it (940)"),
        ({"effects": []}, "spec.effects"),
        ({"effects": ["NoExecute", "NoExecute"]}, "spec.effects"),
        ({"maxChangedNodes": "0%"}, "spec.maxChangedNodes"),
        ({"maxChangedNodes": 0}, "spec.maxChangedNodes"),
        ({"url": "http://user:secret@prometheus"}, "spec.url"),
        ({"url": "file:///etc/passwd"}, "spec.url"),
        ({"url": "http://prometheus?x=1"}, "spec.url"),
        ({"hysteresis": -1}, "spec.hysteresis"),
        ({"interval": "30s"}, "unknown field"),
        ({"query": ""}, "spec.query"),
    ],
)
def test_an_invalid_spec_is_refused_with_its_fault(fields, said):
    spec, fault = read_spec(body(**fields))
    assert spec is None
    assert said in fault


def test_a_value_that_is_no_object_is_refused():
    assert read_spec({"spec": [1]})[0] is None
    assert read_spec({})[0] is None


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("sla", "published.taintwarden.io/sla"),
        ("example.com/sla", "example.com.published.taintwarden.io/sla"),
    ],
)
def test_each_key_has_an_annotation_of_its_own(key, name):
    assert annotation(key) == name

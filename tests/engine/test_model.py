"""Values of the engine as text, which people read and histories are stored under."""

import pytest

from taintwarden.engine.affinity import NodeAffinity, NodeOperator, NodeRequirement, Preference
from taintwarden.engine.model import DeviceId, DeviceOrigin, Taint, Toleration

DEVICE = DeviceId("gpu.example.com", "n1", "gpu-0")
TEXTS = {
    Taint("sla", "940"): "sla=940:NoExecute",
    Taint("sla", effect="NoSchedule"): "sla:NoSchedule",
    Taint("sla", origin=DeviceOrigin(DEVICE)): "sla:NoExecute of device gpu.example.com/n1/gpu-0",
    Toleration("sla", value="940"): "sla Equal '940'",
    Toleration("", "Exists", effect="NoExecute", toleration_seconds=30): "* Exists:NoExecute for 30s",
    Toleration("sla", "In", values=("a", "b")): "sla In ('a', 'b')",
    NodeRequirement("zone", NodeOperator.EXISTS): "zone Exists",
    NodeRequirement("zone", NodeOperator.IN, ("a",)): "zone In 'a'",
    NodeRequirement("zone", NodeOperator.IN, ("a", "b")): "zone In ('a', 'b')",
}


@pytest.mark.parametrize(("value", "text"), TEXTS.items(), ids=TEXTS.values())
def test_it_reads_as_in_kubernetes(value, text):
    assert str(value) == text


def test_each_origin_of_a_devices_taint_has_a_name():
    origins = [DeviceOrigin(DEVICE, rule, number) for rule in ("", "broken") for number in (0, 1)]
    assert [one.name.removeprefix(str(DEVICE)) for one in origins] == ["", " #1", " by broken", " by broken #1"]


@pytest.mark.parametrize("values", [{}, {"values": ["a", "b"]}])
def test_a_requirement_on_labels_is_written_as_in_the_api(values):
    operator = NodeOperator.IN if values else NodeOperator.EXISTS
    written = NodeRequirement("zone", operator, tuple(values.get("values", ()))).as_json()
    assert written == {"key": "zone", "operator": operator.value, **values}


def test_an_affinity_names_the_labels_that_it_requires_or_prefers_once():
    asked = [(NodeRequirement(key, NodeOperator.EXISTS),) for key in ("zone", "pool")]
    assert NodeAffinity((asked[0],), (Preference(1, asked[1]), Preference(2, asked[0]))).keys == ("zone", "pool")

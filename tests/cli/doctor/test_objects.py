"""Objects that cannot be read cost no other."""

import json

from cli.doctor.scene import KINDS
from cli.world import NOON, pod, toleration
from taintwarden_cli.doctor.inventory import Inventory

GOOD = json.dumps(pod(toleration("Exists"))).encode()


def test_unreadable_object_is_reported_with_its_name():
    odd = json.dumps(pod(spec={"priority": "high"})).encode()
    inventory = Inventory(NOON)
    inventory.add_pods([odd, GOOD, b"{}", b"no JSON"])
    inventory.close()
    assert [str(one) for one, _ in inventory.unreadable] == ["Pod shop/web", "Pod unknown"]
    assert [str(one.subject) for one in inventory.groups] == ["Pod shop/web"]


def test_unreadable_template_is_reported():
    inventory = Inventory(NOON)
    odd = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"template": {"spec": {"tolerations": "all"}}}}
    inventory.add_workloads(KINDS["Deployment"], [json.dumps(odd).encode()])
    assert [str(one) for one, _ in inventory.unreadable] == ["Deployment shop/web"]

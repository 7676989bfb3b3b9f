"""Taints of devices on the command line: they concern the pods that have the device, and no node."""

import json

import pytest
import yaml

from cli.devices import GPU_0, GPU_1, KEY, claim, for_devices, rule, serve, sick, slice_of
from cli.policies import POLICIES, Run, condition, empty_cluster, set_status
from cli.world import Json, answers, explained, namespace, node, only_taint, pod, policy, reasons, taint
from limits_off import LIMITS_OFF
from localcluster import LocalCluster
from taintwarden_cli.explain.explanation import Fate
from taintwarden_cli.explain.explanation_table import parts
from taintwarden_cli.rendering import render
from taintwarden_devices.objects import DEVICES_PATH

SICK = slice_of(gpu_0=[sick()], gpu_1=[])
EXISTS: Json = {"key": KEY, "operator": "Exists", "effect": "NoSchedule"}
NO_LIMITS = LIMITS_OFF


# -- explain pod, from files -----------------------------------------------------------------------------------------


def test_a_pod_leaves_because_of_its_device():
    answer = explained(pod(), node(), for_devices(), SICK, claim())
    assert (answer.fate, answer.policy) == (Fate.LEAVES, "gpu")
    assert answer.reason == f"taint {KEY}=79:NoSchedule of device {GPU_0} is not tolerated (no toleration for it)"
    (found,) = answer.taints
    assert (found.key, found.device, found.rule, found.verdict) == (KEY, GPU_0, "", "Violated")
    assert not found.clock_recorded
    assert answer.notes == [
        f"it is not recorded since when the node has {KEY}=79:NoSchedule of device {GPU_0}: its time counts from now"
    ]


def test_a_taint_names_the_rule_that_adds_it():
    answer = explained(pod(), node(), for_devices(), slice_of(gpu_0=[]), claim(), rule(device="gpu-0"))
    (found,) = answer.taints
    assert (found.device, found.rule, found.value) == (GPU_0, "bad", "1")
    text = render(*parts(answer))
    assert (f"device      {GPU_0}" in text, "DeviceTaintRule bad" in text) == (True, True)


@pytest.mark.parametrize("other", [claim(uids=("other",)), claim(device=GPU_1)])
def test_devices_of_other_pods_and_other_devices_of_its_node_do_not_concern_it(other):
    answer = explained(pod(), node(), for_devices(), SICK, other)
    assert (answer.fate, answer.taints) == (Fate.STAYS, [])


def test_tolerations_of_claim_and_annotation_are_explained():
    extended = [{"key": KEY, "operator": "NotIn", "values": ["79"]}]
    spared = [{"key": KEY, "operator": "NotIn", "values": ["43", "31"]}]
    bad = only_taint(pod(extended=extended), node(), for_devices(), SICK, claim(EXISTS))
    good = only_taint(pod(extended=spared), node(), for_devices(), SICK, claim(EXISTS))
    assert [source for _, source, _ in answers(bad)] == ["claim", "annotation"]
    assert answers(bad)[0][2] == "does not count, since the annotation names this key"
    assert (bad.verdict, good.verdict) == ("Violated", "Tolerated")


def test_what_the_pod_tolerates_of_nodes_does_not_count():
    native = {"key": KEY, "operator": "Exists"}
    found = only_taint(pod(native), node(), for_devices(), SICK, claim())
    assert (found.verdict, answers(found)) == ("Violated", [])


def test_the_claim_tolerates_it():
    found = only_taint(pod(), node(), for_devices(), SICK, claim(EXISTS))
    assert (found.verdict, [(source, answer) for _, source, answer in answers(found)]) == (
        "Tolerated",
        [("claim", "holds")],
    )


def test_a_device_of_two_claims_leaves_by_the_one_that_does_not_tolerate():
    both = (claim(EXISTS), claim(name="other"))
    assert only_taint(pod(), node(), for_devices(), SICK, *both).verdict == "Violated"


def test_the_time_of_a_device_is_recorded_by_its_driver():
    since = slice_of(gpu_0=[sick(timeAdded="2026-01-31T11:00:00Z")])
    found = only_taint(pod(), node(), for_devices(timing={"violationGraceSeconds": 7200}), since, claim())
    assert (found.clock_recorded, found.seconds_left) == (True, 3601)


def test_why_a_policy_does_not_act_on_a_device():
    other = policy("other", devices=[{"key": KEY, "effects": ["NoExecute"]}])
    found = only_taint(pod(), node(), other, SICK, claim())
    assert found.verdict == "NotSelected"
    assert reasons(found)["other"] == "it selects this key only with effect NoExecute"


def test_a_taint_of_the_node_with_the_same_key_is_another():
    answer = explained(pod(), node(taint("79", KEY)), for_devices(), SICK, claim())
    assert [(one.device, one.verdict) for one in answer.taints] == [("", "NotSelected"), (GPU_0, "Violated")]


# -- on a cluster ----------------------------------------------------------------------------------------------------


@pytest.fixture
def cluster() -> LocalCluster:
    """Pods web-0 and web-1 have a device each on node n1; spare is without pods."""
    cluster = empty_cluster()
    cluster.create("namespaces", namespace())
    for name in ("n1", "spare"):
        cluster.store.create("nodes", {"metadata": {"name": name}, "spec": {}})
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": True}
    for number in range(2):
        uid = f"web-{number}"
        cluster.store.create("pods", pod(metadata={"name": uid, "uid": uid, "ownerReferences": [owner]}))
    return cluster


def fill(cluster: LocalCluster, *kinds: str, gpu_0: list[Json] | None = None) -> None:
    """Serve and create the objects that describe devices."""
    serve(cluster, *kinds)
    cluster.create("resourceslices", slice_of(gpu_0=gpu_0 or [], gpu_1=[]))
    for number, device in enumerate((GPU_0, GPU_1)):
        uid = f"web-{number}"
        cluster.create("resourceclaims", claim(device=device, uids=(uid,), name=uid))


async def run_json(run: Run, *args: str) -> Json:
    result = await run(*args, "-o", "json")
    assert result.exit_code in (0, 10, 11), result.output
    found: Json = json.loads(result.stdout)
    return found


COMMANDS = [
    ("explain", "pod", "shop/web-0"),
    ("explain", "node", "n1"),
    ("plan",),
    ("doctor", "--only", "rights-missing"),
]


@pytest.mark.parametrize("command", COMMANDS)
async def test_devices_are_not_read_unless_a_policy_selects_them(cluster, run, command):
    fill(cluster)
    cluster.create(POLICIES, policy())
    await run(*command)
    assert cluster.faults.count("GET", DEVICES_PATH) == 0


async def test_a_pod_and_the_pods_of_a_node_of_a_cluster(cluster, run):
    fill(cluster, gpu_0=[sick()])
    cluster.create(POLICIES, for_devices())
    assert (await run_json(run, "explain", "pod", "shop/web-0"))["fate"] == "Leaves"
    assert (await run_json(run, "explain", "pod", "shop/web-1"))["fate"] == "Stays"
    assert cluster.faults.count("GET", "namespaces/shop/resourceclaims") == 2
    found = await run_json(run, "explain", "node", "n1")
    assert (found["leaving"], found["taints"]) == (1, [])
    assert [one["pod"]["name"] for one in found["pods"] if one["fate"] == "Leaves"] == ["web-0"]


async def test_device_api_that_is_not_served_is_noted(cluster, run):
    cluster.create(POLICIES, for_devices())
    found = await run_json(run, "explain", "pod", "shop/web-0")
    assert found["fate"] == "Stays"
    assert found["notes"][0].startswith("policy gpu: no taint of a device evicts a pod: the API server does not serve ")


async def test_without_rules_the_taints_of_slices_evict(cluster, run):
    fill(cluster, "ResourceSlice", "ResourceClaim", gpu_0=[sick()])
    cluster.create(POLICIES, for_devices())
    assert (await run_json(run, "explain", "pod", "shop/web-0"))["fate"] == "Leaves"
    assert (await run_json(run, "plan"))["leaving"] == 1


@pytest.mark.parametrize("what", ["resourceslices", "resourceclaims", "devicetaintrules"])
async def test_without_a_right_no_device_evicts(cluster, run, what):
    fill(cluster, gpu_0=[sick()])
    cluster.create(POLICIES, for_devices())
    cluster.faults.answer(403, path=what, times=5)
    found = await run_json(run, "explain", "pod", "shop/web-0")
    assert found["fate"] == "Stays"
    assert f"no taint of a device evicts a pod: you may not read {what}" in found["notes"][0]


async def test_an_object_that_cannot_be_read_counts_as_absent(cluster, run):
    fill(cluster, gpu_0=[sick()])
    broken = slice_of("n2", gpu_0=[]) | {"spec": {"devices": "none"}}  # of no node
    cluster.create("resourceslices", broken)
    cluster.create(POLICIES, for_devices())
    found = await run_json(run, "explain", "pod", "shop/web-0")
    assert found["fate"] == "Leaves"
    assert any(one.startswith("ResourceSlice slice-n2 cannot be read") for one in found["notes"])


async def test_slices_of_other_nodes_are_not_read_to_explain_a_pod(cluster, run):
    """A kubelet may write any number of them."""
    fill(cluster, gpu_0=[sick()])
    cluster.create("resourceslices", slice_of("n2", gpu_0=[]) | {"spec": {"devices": "none", "nodeName": "n2"}})
    cluster.create(POLICIES, for_devices())
    found = await run_json(run, "explain", "pod", "shop/web-0")
    assert found["fate"] == "Leaves"
    assert not any("ResourceSlice" in one for one in found["notes"])


# -- plan ------------------------------------------------------------------------------------------------------------


async def test_plan_lists_pods_that_leave_because_of_a_device(cluster, run):
    fill(cluster, gpu_0=[sick()])
    cluster.create(POLICIES, for_devices(limits=NO_LIMITS))
    plan = await run_json(run, "plan")
    assert [(one["name"], one["replacedOn"]) for one in plan["pods"]] == [("web-0", "spare")]
    assert plan["notes"] == [
        "a pod that leaves because of a device is assumed to get another device, on any node that accepts it"
    ]


async def test_the_replacement_may_get_another_device_of_the_same_node(cluster, run):
    fill(cluster, gpu_0=[sick()])
    cluster.store.delete("nodes", "spare")
    cluster.create(POLICIES, for_devices(limits=NO_LIMITS))
    plan = await run_json(run, "plan")
    assert [(one["name"], one["replacedOn"], one["returnsTo"]) for one in plan["pods"]] == [("web-0", "n1", None)]


async def test_plan_notes_devices_that_are_not_known(cluster, run):
    cluster.create(POLICIES, for_devices())
    plan = await run_json(run, "plan")
    assert plan["notes"][-1].startswith("no taint of a device evicts a pod: the API server does not serve resource")


# -- what is about nodes does not take them for taints of a node -------------------------------------------------------


async def test_a_taint_of_a_device_keeps_no_pod_off_its_node(cluster, run):
    fill(cluster, gpu_0=[sick()])
    cluster.create(POLICIES, for_devices(limits=NO_LIMITS))
    cluster.store.create("pods", pod(metadata={"name": "new", "uid": "new"}, spec={"nodeName": ""}))
    found = await run_json(run, "explain", "pod", "shop/new")
    assert [one["refusals"] for one in found["nodes"]] == [[], []]


async def test_a_sweep_counts_nodes_alone(cluster, run):
    fill(cluster, gpu_0=[sick()])
    cluster.create(POLICIES, for_devices("NoSchedule"))
    found = await run_json(run, "plan", "--sweep", f"{KEY}=79,80:NoSchedule")
    assert (found["nodes"], found["policies"]) == (0, [])


async def test_init_writes_no_policy_for_a_taint_of_a_device(cluster, run):
    fill(cluster, gpu_0=[sick()])
    cluster.create(POLICIES, for_devices())
    result = await run("init")
    assert "kind: TaintEvictionPolicy" not in result.stdout
    assert KEY not in result.stdout


def test_validate_checks_policies_for_devices(cli, tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text(yaml.safe_dump(for_devices()))
    assert cli("validate", str(path)).exit_code == 0
    path.write_text(yaml.safe_dump(for_devices("Never")))
    assert cli("validate", str(path)).exit_code == 1


# -- status ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "message", "problems"),
    [
        (
            "False",
            "no taint of a device evicts a pod: 403 Forbidden",
            [("403 Forbidden", "no taint of a device evicts a pod")],
        ),
        ("True", "2 pods with devices", []),
    ],
)
async def test_status_names_devices_that_are_not_known(cluster, run, status, message, problems):
    cluster.create(POLICIES, for_devices())
    known = [condition("Accepted", "True"), condition("DevicesKnown", status, message)]
    set_status(cluster, "gpu", conditions=known)
    (found,) = (await run_json(run, "status"))["policies"]
    assert [(one["cause"], one["effect"]) for one in found["problems"]] == problems

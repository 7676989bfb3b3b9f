"""`doctor` answers for objects of any content, with each finding in form, and fits the page."""

import json

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from cli.doctor.scene import KINDS, diagnosed
from cli.terminals import terminal
from cli.test_explain_is_total import POLICY, PROFILE, TAINTS, TOLERATION, VALUES
from cli.world import NOON, budget, namespace, node, pod
from taintwarden.engine.model import Gates
from taintwarden.kube.calls.lease import LeaseObject, LeaseSpec
from taintwarden_cli.doctor.checks import CATALOGUE
from taintwarden_cli.doctor.doctor_snapshot import BuiltIn, MissingRights, OperatorSettings
from taintwarden_cli.doctor.examining import select_checks
from taintwarden_cli.doctor.findings_table import parts
from taintwarden_cli.doctor.inventory import Inventory
from taintwarden_cli.rendering import render

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["web", "db", "web-1"])
KIND = st.sampled_from([*KINDS])
LABELS = st.sampled_from([{}, {"app": "web"}, {"app": "db", "taintwarden.io/inject": "false"}])
ANNOTATIONS = st.dictionaries(
    st.sampled_from(["taintwarden.io/tolerations", "taintwarden.io/do-not-evict", "taintwarden.io/other", "else"]),
    st.text(max_size=20) | st.lists(TOLERATION | JSON, max_size=2).map(json.dumps),
    max_size=2,
)
LABELLED = [
    "value-or-max.taintwarden.io/sla",
    "effect.taintwarden.io/sla",
    "version.taintwarden.io/other",
    "label-version.taintwarden.io/web",
]
EXPRESSION = st.fixed_dictionaries(
    {},
    optional={
        "key": NAMES | st.sampled_from(LABELLED),
        "operator": st.text(max_size=6) | st.sampled_from(["In", "Gt", "Exists"]),
        "values": st.lists(VALUES),
    },
)
AFFINITY = st.lists(EXPRESSION, max_size=2).map(
    lambda one: {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": one}]}
        }
    }
)
SPEC = st.fixed_dictionaries(
    {"tolerations": st.lists(TOLERATION, max_size=3)},
    optional={"nodeSelector": LABELS, "affinity": AFFINITY, "priority": st.integers(-(2**31), 2**31 - 1)},
)
OWNER = st.builds(
    lambda kind, name: {
        "apiVersion": "apps/v1",
        "kind": kind,
        "name": name,
        "uid": f"{kind}-{name}",
        "controller": True,
    },
    KIND,
    NAMES,
)
PODS = st.builds(
    lambda name, spec, labels, annotations, owners: pod(
        metadata={"name": name, "labels": labels, "annotations": annotations, "ownerReferences": owners}, spec=spec
    ),
    NAMES,
    SPEC,
    LABELS,
    ANNOTATIONS,
    st.lists(OWNER, max_size=1),
)
REFUSED = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes"}
PENDING = PODS.map(
    lambda one: {
        **one,
        "spec": {**one["spec"], "nodeName": ""},
        "status": {"phase": "Pending", "conditions": [REFUSED]},
    }
)
CARRIED = st.dictionaries(st.sampled_from(LABELLED), st.sampled_from(["None", "950", ""]), max_size=2)
WORKLOADS = st.builds(
    lambda kind, name, owners, template, annotations: {
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": f"{kind}-{name}",
            "ownerReferences": owners,
            "annotations": annotations,
        },
        "spec": {"template": template, "jobTemplate": {"spec": {"template": template}}},
    },
    KIND,
    NAMES,
    st.lists(OWNER, max_size=1),
    st.fixed_dictionaries(
        {"metadata": st.fixed_dictionaries({"labels": LABELS, "annotations": ANNOTATIONS}), "spec": SPEC}
    )
    | JSON,
    ANNOTATIONS,
)
BUDGETS = st.builds(
    lambda name, spec: budget(name, **spec),
    NAMES,
    st.sampled_from([{}, {"maxUnavailable": 0}, {"minAvailable": "100%"}, {"selector": {}}, {"selector": None}]),
)
STATUS = JSON | st.just({"observedGeneration": 1, "conditions": [{"type": "Enforcing", "reason": "Paused"}]})
POLICIES = st.builds(lambda made, status: made | {"status": status}, POLICY, STATUS)
CONTEXT = st.fixed_dictionaries(
    {},
    optional={
        "built_in_for_devices": st.sampled_from(list(BuiltIn)),
        "devices_unserved": st.sampled_from(["", "the API server does not serve resourceslices"]),
        "built_in": st.sampled_from(list(BuiltIn)),
        "webhook_problem": st.sampled_from(["", "no replica is ready"]),
        "operator": st.builds(
            OperatorSettings, NAMES, st.builds(Gates, st.booleans(), st.booleans()), st.integers(0, 2)
        ),
        "lease": st.builds(
            LeaseObject, st.just({}), st.builds(LeaseSpec, st.none() | NAMES, renew_time=st.text() | st.none())
        ),
        "rights": st.just(MissingRights("a/b")),
    },
)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(PODS | PENDING, max_size=3),
    st.lists(WORKLOADS, max_size=3),
    TAINTS,
    CARRIED,
    st.lists(POLICIES, max_size=2, unique_by=lambda one: one["metadata"]["name"]),
    st.lists(PROFILE, max_size=2),
    st.lists(BUDGETS, max_size=2),
    LABELS | st.just({"taintwarden.io/inject": "true"}),
    CONTEXT,
)
def test_doctor_answers_for_any_objects(pods, workloads, taints, carried, policies, profiles, budgets, labels, context):
    objects = [*pods, *workloads, node(*taints, labels=carried), *policies, *profiles, *budgets, namespace(**labels)]
    found = diagnosed(*objects, **context)
    ids = [check.id for check in CATALOGUE]
    assert all(one.check in ids and one.message and one.remedy and one.name for one in found.findings)
    assert found.errors + found.warnings == len(found.findings)
    assert found.checks == len(CATALOGUE)
    with terminal():
        assert max(map(cell_len, render(*parts(found, select_checks(()), None)).splitlines())) <= 100
    msgspec.json.encode(found)


@given(st.lists(JSON.map(lambda one: json.dumps(one).encode()) | st.binary(max_size=30), max_size=3))
def test_inventory_accepts_any_objects(raw):
    inventory = Inventory(NOON)
    inventory.add_pods(raw)
    for listing in KINDS.values():
        inventory.add_workloads(listing, raw)
    inventory.close()
    assert len(inventory.unreadable) <= len(raw) * (2 + len(KINDS))

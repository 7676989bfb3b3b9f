"""`explain` answers for any pod, node and policy, is consistent, and fits the page."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.terminals import terminal
from cli.world import NOON, explained, history, node, pod, policy, profile, taint
from taintwarden_cli.explain.explanation import Fate
from taintwarden_cli.explain.explanation_table import parts
from taintwarden_cli.rendering import render

VALUES = st.sampled_from(["", "900", "950", "980", "0950", "high", "1.2.3", "v1.14"])
EFFECTS = st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"])
OPERATORS = st.sampled_from(["", "Equal", "Exists", "Gt", "Lt", "SemverGt", "SemverLt", "SemverEq", "Near"])
SECONDS = st.none() | st.integers(-(2**63), 2**63 - 1)
TOLERATION = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["", "sla", "other"]),
        "operator": OPERATORS,
        "value": VALUES,
        "tolerationSeconds": SECONDS,
    },
    optional={"effect": EFFECTS},
)
TAINTS = st.lists(
    st.builds(taint, VALUES, st.sampled_from(["sla", "other"]), EFFECTS),
    unique_by=lambda one: (one["key"], one["effect"]),
    max_size=4,
)
PLACES = st.just({}) | st.just({"taints": [{"key": "sla", "placement": True}], "versionLabels": ["web"]})
POLICY = st.builds(
    lambda name, key, places, **spec: policy(name, key, **{**spec, **places}),
    st.sampled_from(["a", "b"]),
    st.sampled_from(["sla", "*", "other"]),
    PLACES,
    mode=st.sampled_from(["Enforce", "DryRun"]),
    paused=st.booleans(),
    exclude=st.just({}) | st.just({"namespaces": ["shop"]}),
)
PROFILE = st.builds(
    lambda name, tolerations, labels: profile(name, *tolerations, **labels),
    st.sampled_from(["a", "b"]),
    st.lists(TOLERATION, max_size=2),
    st.just({}) | st.just({"app": "web"}) | st.just({"app": "db"}),
)
HISTORY = st.lists(st.tuples(VALUES, st.integers(0, 5000)), min_size=1, max_size=4).map(
    lambda values: history(*sorted(values, key=lambda value: -value[1]))
)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(TOLERATION, max_size=3),
    st.none() | st.lists(TOLERATION, max_size=3),
    TAINTS,
    st.just("") | HISTORY,
    st.lists(POLICY, max_size=2),
    st.lists(PROFILE, max_size=2),
)
def test_explain_answers_for_any_objects(native, extended, taints, recorded, policies, profiles):
    objects = [*policies, *profiles]
    answer = explained(pod(*native, extended=extended), node(*taints, recorded=recorded), *objects, now=NOON)
    assert len(answer.taints) == len(taints)
    deadlines = [one.deadline for one in answer.taints if one.mode == "Enforce" and one.deadline]
    assert (answer.fate is Fate.LEAVES) == bool(deadlines)
    if deadlines:
        assert answer.deadline == min(deadlines)
    assert all((one.policy is None) == (one.verdict == "NotSelected") for one in answer.taints)
    with terminal():
        assert max(map(len, render(*parts(answer)).splitlines())) <= 100
    msgspec.json.encode(answer)

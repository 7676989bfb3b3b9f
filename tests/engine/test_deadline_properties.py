"""Deadlines from histories: the engine against the naive model, over generated values, tolerations and timings."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from simulated import policy
from simulated.world import when
from taintwarden.engine.evaluate import Evaluator, grounds_of
from taintwarden.engine.history import MAX_SPANS, TaintHistory, decode_histories, encode_histories
from taintwarden.engine.interning import Interner
from taintwarden.engine.model import Taint, Toleration, Tolerations

MOMENT = 0.002

timings = st.fixed_dictionaries(
    {
        "tolerationSecondsMode": st.sampled_from(["AfterViolation", "Kubernetes"]),
        "onInvalidValue": st.sampled_from(["Hold", "Evict"]),
        "violationGraceSeconds": st.sampled_from([0, 5]),
        "stabilizationWindowSeconds": st.sampled_from([0, 8]),
    }
)
comparisons = st.fixed_dictionaries(
    {"key": st.just("sla"), "operator": st.sampled_from(["Gt", "Lt"]), "value": st.sampled_from(["950", "930"])},
    optional={"tolerationSeconds": st.sampled_from([0, 4, 30]), "violationGraceSeconds": st.sampled_from([0, 6])},
)
plain = st.fixed_dictionaries(
    {"key": st.just("sla"), "operator": st.sampled_from(["Equal", "Exists"]), "value": st.sampled_from(["980", "940"])},
    optional={"tolerationSeconds": st.sampled_from([-1, 4, 30])},
)


def changes(values: st.SearchStrategy[str], max_size: int) -> st.SearchStrategy[list[tuple[float, str]]]:
    """A taint's values, each with the time it began; never the same value twice in a row."""
    steps = st.lists(st.tuples(st.floats(0.01, 20).map(lambda s: round(s, 2)), values), min_size=1, max_size=max_size)

    def add_up(pairs: list[tuple[float, str]]) -> list[tuple[float, str]]:
        at, found = 0.0, []
        for seconds, value in pairs:
            at = round(at + seconds, 2)
            if not found or found[-1][1] != value:
                found.append((at, value))
        return found

    return steps.map(add_up)


few_values = changes(st.sampled_from(["980", "960", "940", "920", "high"]), MAX_SPANS)
jitter = changes(st.integers(900, 999).map(str), 60)


def deadline(values: list[tuple[float, str]], tolerations: list[dict[str, Any]], timing: Any, bound: float) -> Any:
    history = TaintHistory.begin(values[0][1], values[0][0])
    for at, value in values[1:]:
        history = history.observe(value, at)
    history = decode_histories(encode_histories({"sla:NoExecute": history}))["sla:NoExecute"]
    camel = {"tolerationSeconds": "toleration_seconds", "violationGraceSeconds": "violation_grace_seconds"}
    structs = tuple(Toleration(**{camel.get(k, k): v for k, v in entry.items()}) for entry in tolerations)
    pod_class = Interner().pod_class("default", {}, Tolerations(structs))
    taints = [(Taint("sla", history.value), history)]
    verdicts = Evaluator().verdicts(pod_class, pod_class.tolerations, taints, (policy(timing=timing),))
    return next((grounds.first(bound)[0] for grounds in grounds_of(verdicts)), None)


def due(values: list[tuple[float, str]], tolerations: list[dict[str, Any]], bound: float, timing: Any) -> float | None:
    """The deadline that the rules of the judge have, which share no code with the engine."""
    rules = when.Rules({"metadata": {"name": "p"}, "spec": {"timing": timing}})
    steps = [when.Step(at, at, True, when.Taint("sla", value, "NoExecute", None)) for at, value in values]
    found = when.due(rules, when.tolerations_in(tolerations), steps, (bound, bound))
    return None if found is None or found.late == when.NEVER else found.early


@given(few_values, st.lists(comparisons | plain, max_size=3), timings, st.sampled_from([0.0, 50.0]))
@settings(max_examples=300, deadline=None)
def test_deadline_is_the_models(values, tolerations, timing, bound):
    ours = deadline(values, tolerations, timing, bound)
    expected = due(values, tolerations, bound, timing)
    assert (ours is None) == (expected is None)
    if ours is not None:
        assert expected - MOMENT <= ours <= expected + MOMENT


@given(jitter, st.lists(comparisons, max_size=2), timings)
@settings(max_examples=200, deadline=None)
def test_a_jittering_value_moves_no_deadline_of_a_comparison(values, tolerations, timing):
    ours = deadline(values, tolerations, timing, 0.0)
    expected = due(values, tolerations, 0.0, timing)
    assert (ours is None) == (expected is None)
    if ours is not None:
        assert expected - MOMENT <= ours


@given(jitter, st.lists(comparisons | plain, max_size=3), timings)
@settings(max_examples=200, deadline=None)
def test_what_is_forgotten_never_makes_anybody_leave_early(values, tolerations, timing):
    ours = deadline(values, tolerations, timing, 0.0)
    expected = due(values, tolerations, 0.0, timing)
    assert (ours is None) == (expected is None)
    if ours is not None:
        assert ours >= expected - MOMENT


def test_a_long_jitter_below_the_threshold_does_not_restart_the_grace():
    values = [(0.0, "980")] + [(float(at), str(900 + at * 7 % 40)) for at in range(1, 200)]
    tolerations = [{"key": "sla", "operator": "Gt", "value": "950", "violationGraceSeconds": 600}]
    timing = {"tolerationSecondsMode": "AfterViolation"}
    assert deadline(values, tolerations, timing, 0.0) == 601.0

"""Deadlines from histories, by all values that there were: never before they are due, and late by a seventh at most."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulated import policy
from simulated.world import when
from taintwarden.engine.evaluate import Concern, Evaluator, grounds_of
from taintwarden.engine.history import MAX_SPANS, MAX_VALUES, Span, TaintHistory, decode_histories, encode_histories
from taintwarden.engine.interning import Interner
from taintwarden.engine.model import Taint, Toleration, Tolerations

MOMENT = 0.002
Values = list[tuple[float, str]]
CAMEL = {"tolerationSeconds": "toleration_seconds", "violationGraceSeconds": "violation_grace_seconds"}

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


def changes(values: st.SearchStrategy[str], max_size: int) -> st.SearchStrategy[Values]:
    """A taint's values, each with the time it began; never the same value twice in a row."""
    steps = st.lists(st.tuples(st.floats(0.01, 20).map(lambda s: round(s, 2)), values), min_size=1, max_size=max_size)

    def add_up(pairs: Values) -> Values:
        at, found = 0.0, []
        for seconds, value in pairs:
            at = round(at + seconds, 2)
            if not found or found[-1][1] != value:
                found.append((at, value))
        return found

    return steps.map(add_up)


def observed(values: Values) -> TaintHistory:
    history = TaintHistory.begin(values[0][1], values[0][0])
    for at, value in values[1:]:
        history = history.with_value(value, at)
    assert len(history.spans) <= MAX_SPANS
    return decode_histories(encode_histories({"sla:NoExecute": history}))["sla:NoExecute"]


def deadline(values: Values, tolerations: Sequence[dict[str, Any]], timing: Any, bound: float = 0.0) -> Any:
    return of_history(observed(values), tolerations, timing, bound)


def of_history(history: TaintHistory, tolerations: Sequence[dict[str, Any]], timing: Any, bound: float = 0.0) -> Any:
    structs = tuple(Toleration(**{CAMEL.get(k, k): v for k, v in entry.items()}) for entry in tolerations)
    pod_class = Interner().pod_class("default", {}, Tolerations(structs))
    taints = [Concern(Taint("sla", history.value), history)]
    verdicts = Evaluator().verdicts(pod_class, pod_class.tolerations, taints, (policy(timing=timing),))
    return next((grounds.first(bound)[0] for grounds in grounds_of(verdicts)), None)


def due(values: list[tuple[float, str]], tolerations: list[dict[str, Any]], bound: float, timing: Any) -> float | None:
    """The deadline that the rules of the judge have, which share no code with the engine."""
    rules = when.Rules({"metadata": {"name": "p"}, "spec": {"timing": timing}})
    steps = [when.Step(at, at, True, when.Taint("sla", value, "NoExecute", None)) for at, value in values]
    found = when.due(rules, when.tolerations_in(tolerations), steps, (bound, bound))
    return None if found is None or found.late == when.NEVER else found.early


@given(
    changes(st.sampled_from(["980", "960", "940", "920", "high"]), 40),
    st.lists(comparisons | plain, max_size=3),
    timings,
    st.sampled_from([0.0, 50.0]),
)
@settings(deadline=None)
def test_of_few_values_nothing_is_lost(values, tolerations, timing, bound):
    ours = deadline(values, tolerations, timing, bound)
    expected = due(values, tolerations, bound, timing)
    assert (ours is None) == (expected is None)
    if ours is not None:
        assert expected - MOMENT <= ours <= expected + MOMENT


# -- values that processes write --------------------------------------------------------------------------------------

Process = Callable[[int], str]
PROCESSES: st.SearchStrategy[Process] = st.one_of(
    st.tuples(st.integers(-300, 1_200), st.integers(-7, 7)).map(lambda a: lambda at: str(a[0] + a[1] * at)),  # drift
    st.tuples(st.integers(2, 40), st.integers(-90, 90)).map(lambda a: lambda at: str(900 + at // a[0] * a[1])),
    st.integers(0, 1_000_000).map(lambda first: lambda at: str(first + at)),  # counter
    st.just(lambda at: f"2026-11-27T{at // 3600 % 24:02}.{at // 60 % 60:02}.{at % 60:02}"),  # time stamp
    st.tuples(st.integers(1, 97), st.integers(1, 97)).map(lambda a: lambda at: str(900 + at * a[0] * a[0] % a[1])),
    st.lists(st.sampled_from(["31", "43", "79", "48", "63", "error"]), min_size=2, max_size=6).map(
        lambda codes: lambda at: codes[at % len(codes)]  # rotating codes
    ),
    st.tuples(st.integers(1, 30), st.integers(1, 30)).map(lambda a: lambda at: f"1.{at // a[0]}.{at % a[1]}-k3s{a[0]}"),
)


def flapping(process: Process, every: int) -> Process:
    """An exporter that often cannot tell."""
    return lambda at: ["unknown", "error"][at % 2] if at % every == 0 else process(at)


WRITERS = st.one_of(PROCESSES, st.builds(flapping, PROCESSES, st.integers(2, 4)))
SEGMENTS = st.lists(
    st.tuples(WRITERS, st.integers(1, 140), st.sampled_from([0.5, 5.0, 30.0, 600.0])), min_size=1, max_size=3
)


def written(segments: list[tuple[Process, int, float]]) -> Values:
    """Values that these processes write one after the other: `number` each, one every `seconds` seconds."""
    at, found = 0.0, []
    for process, number, seconds in segments:
        for index in range(number):
            value = process(index)
            if not found or found[-1][1] != value:
                found.append((at, value))
            at += seconds
    return found


def integer(text: str) -> int | None:
    return int(text) if text.removeprefix("-").isdigit() else None


ASKED = st.one_of(
    st.just(()),
    st.tuples(st.sampled_from(["Gt", "Lt"]), st.sampled_from(["-5", "90", "500", "880", "903", "950", "1000000"])),
    st.tuples(st.sampled_from(["In", "NotIn"]), st.sampled_from([("31", "43"), ("900",), ("unknown", "31")])),
    st.tuples(st.just("Equal"), st.sampled_from(["901", "31", "1.2.3-k3s5"])),
    st.tuples(st.sampled_from(["VersionGt", "VersionLt"]), st.sampled_from(["1.3", "902", "2026-11-27T00.01"])),
)


def answers(asked: Any, value: str) -> bool | None:
    """True if a toleration holds; None: it cannot compare. (All values that are written have a place as versions.)"""
    if not asked:
        return False
    operator, wanted = asked
    if operator in ("In", "NotIn"):
        return (value in wanted) is (operator == "In")
    if operator in ("Gt", "Lt"):
        number = integer(value)
        return None if number is None else (number > int(wanted) if operator == "Gt" else number < int(wanted))
    return value == wanted


def since(values: Values, answer: Callable[[str], bool | None], *, hold: bool) -> float | None:
    """Since when no toleration holds: by all values that there were."""
    state, found = (None if hold else False), values[0][0]
    for at, value in values:
        holds = answer(value)
        if holds is None and hold:
            continue
        if not holds and state is not False:
            found = at
        state = bool(holds)
    return found if state is False else None


def check(values: Values, entries: list[dict[str, Any]], answer: Callable[[str], bool | None], policy_on: str) -> None:
    timing = {"onInvalidValue": policy_on}
    expected = since(values, answer, hold=policy_on == "Hold")
    ours = deadline(values, entries, timing)
    assert (ours is None) == (expected is None)
    if ours is not None:
        late = max(1.0, (values[-1][0] - expected) / 7)
        assert expected - MOMENT <= ours <= expected + late + MOMENT


@given(SEGMENTS, ASKED.filter(lambda one: not one or "Version" not in one[0]), st.sampled_from(["Hold", "Evict"]))
@settings(max_examples=32, deadline=None)
def test_whatever_writes_a_value_no_eviction_is_early_and_none_later_than_a_seventh(segments, asked, on_invalid):
    values = written(segments)
    if asked and asked[0] in ("In", "NotIn", "Equal"):
        values = newest(values)
    entries = []
    if asked:
        wanted = {"values": asked[1]} if isinstance(asked[1], tuple) else {"value": asked[1]}
        entries = [{"key": "sla", "operator": asked[0]} | wanted]
    check(values, entries, lambda value: answers(asked, value), on_invalid)


def newest(values: Values) -> Values:
    """The last values, at most as many as equality can tell apart."""
    found: dict[str, None] = {}
    for number, (_, value) in enumerate(reversed(values)):
        found[value] = None
        if len(found) > MAX_VALUES // 2:
            return values[-number:]
    return values


@given(SEGMENTS, st.integers(1, 3), st.sampled_from(["VersionGt", "VersionLt", "SemverGt"]))
@settings(max_examples=15, deadline=None)
def test_versions_as_well(segments, wanted, operator):
    """A process of whole numbers and versions: their order is that of the first two numbers."""
    values = [
        (at, ".".join([*value.split(".")[:2], "0"]) if value.startswith("1.") else "0.1.0")
        for at, value in written(segments)
    ]
    values = [one for index, one in enumerate(values) if index == 0 or values[index - 1][1] != one[1]]

    def answer(value: str) -> bool:
        mine, other = tuple(map(int, value.split("."))), (1, wanted, 0)
        return mine < other if operator == "VersionLt" else mine > other

    check(values, [{"key": "sla", "operator": operator, "value": f"1.{wanted}.0"}], answer, "Evict")


@given(SEGMENTS)
@settings(max_examples=20, deadline=None)
def test_the_last_valid_value_stays_known(segments):
    values = written(segments)
    known = [value for _, value in values if integer(value) is not None]
    made = observed(values)
    assert next((value for value in made.values if integer(value) is not None), None) == (known[-1] if known else None)


@pytest.mark.parametrize("on_invalid", ["Hold", "Evict"])
@pytest.mark.parametrize(
    "values",
    [
        ["980", "940", "980", "high"],
        ["940", "980", "940", "high"],
        ["940", "980", "high", "error", "930"],
        ["high", "940", "980", "error", "high", "920", "error"],
    ],
)
def test_what_is_joined_still_says_which_value_was_the_last_valid_one(values, on_invalid):
    """Bursts, each shorter than the last."""
    at, written = 0.0, [(0.0, "960")]
    for seconds in range(900, 0, -20):
        for index, value in enumerate(values):
            at += seconds if index == 0 or value in ("high", "error") else 0.01
            if value != written[-1][1]:
                written.append((at, value))
    entries = [{"key": "sla", "operator": "Gt", "value": "950"}]
    for number in range(65, len(written)):
        check(written[:number], entries, lambda value: answers(("Gt", "950"), value), on_invalid)


@pytest.mark.parametrize(
    ("values", "on_invalid", "since"),
    [
        (("980", "940", "960"), "Hold", 300.0),
        (("980", "940", "960"), "Evict", 200.0),
        (("980", "960", "940"), "Hold", 200.0),
    ],
)
def test_the_last_of_values_that_were_joined_is_held(values, on_invalid, since):
    history = TaintHistory((Span(100.0, values), Span(200.0, ("high",)), Span(300.0, ("930",))))
    entries = [{"key": "sla", "operator": "Gt", "value": "950"}]
    assert of_history(history, entries, {"onInvalidValue": on_invalid}) == since


@pytest.mark.parametrize(("on_invalid", "since"), [("Hold", 300.0), ("Evict", 200.0)])
def test_joined_values_of_which_one_is_held_count_from_their_end(on_invalid, since):
    """The invalid value may have come first, and held the tolerated one before it."""
    history = TaintHistory((Span(100.0, ("980",)), Span(200.0, ("high", "940")), Span(300.0, ("930",))))
    entries = [{"key": "sla", "operator": "Gt", "value": "950"}]
    assert of_history(history, entries, {"onInvalidValue": on_invalid}) == since


@pytest.mark.parametrize(("operator", "since"), [("Gt", 200.0), ("In", 300.0)])
def test_a_value_that_is_stored_no_more_may_be_the_one_that_a_pod_names_but_is_no_threshold(operator, since):
    history = TaintHistory((Span(100.0, ("980",)), Span(200.0, (None, "940")), Span(300.0, ("930",))))
    entries = [{"key": "sla", "operator": "Gt", "value": "950"}, {"key": "sla", "operator": "In", "values": ("980",)}]
    assert of_history(history, [one for one in entries if one["operator"] == operator], {}) == since


@pytest.mark.parametrize("days", [0, 1, 30, 365])
def test_the_age_of_a_taint_makes_nothing_later(days):
    """The taint had 99 values, and then one that a pod tolerates: a violation of it counts as on a new taint."""
    at, values = days * 86_400.0, [(0.0, "980")]
    for value in [str(990 - at % 30) for at in range(99)] + [str(949 - at) for at in range(200)]:
        at += 30
        values.append((at, value))
        if at % 150 == 0:
            check(values, [{"key": "sla", "operator": "Gt", "value": "950"}], lambda one: int(one) > 950, "Hold")


@pytest.mark.parametrize("codes", [6, 12, 60, 120])
def test_rotating_codes_make_no_list_of_values_later(codes):
    values = [(0.0, "31"), *[(60.0 + at, str(100 + at * 7 % codes)) for at in range(1_200)]]
    for number in range(100, len(values), 50):
        check(
            values[:number], [{"key": "sla", "operator": "In", "values": ("31", "43")}], lambda one: one == "31", "Hold"
        )

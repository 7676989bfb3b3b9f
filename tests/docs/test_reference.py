"""Tables that people write are those of the code: Events, logs, rights, limits, conditions, scenarios."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

import taintwarden_placement.node_labels.notices  # noqa: F401 - it adds its rows
from docs.pages import BY_NAME, PAGES, ROOT, Table, only_span, spans
from taintwarden.controller.effector import WRITE_WARNINGS
from taintwarden.controller.words.issues import CHANGES, EVENTS
from taintwarden.controller.words.notifier import ROWS
from taintwarden.engine.limits import refusal
from taintwarden.engine.outcomes import OUTCOMES, Outcome

POLICIES, OPERATING, CONCEPTS, TROUBLESHOOTING = (
    BY_NAME[f"docs/{name}.md"] for name in ("policies", "operating", "concepts", "troubleshooting")
)
PACKAGE = ROOT / "operator" / "taintwarden"
CONDITION_TYPES = (
    "Accepted", "Ready", "Stalled", "Enforcing", "Progressing", "GuardTripped", "SourcesFound", "DevicesKnown",
    "ReplacesFirst",
)  # fmt: skip
LIMIT_NAMES = {value for name, value in vars(refusal).items() if name.isupper() and isinstance(value, str)}


def rows(table: Table) -> dict[str, dict[str, str]]:
    found = {only_span(row[0]): dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert len(found) == len(table.rows)
    return found


# -- limits and conditions ----------------------------------------------------------------------------------------


def test_every_limit_has_a_row():
    assert set(rows(CONCEPTS.table("Limits"))) == LIMIT_NAMES


def test_every_limit_has_a_remedy():
    table = TROUBLESHOOTING.table("A limit holds them")
    assert {name for cell in table.column("`limits[].limit`") for name in spans(cell)} == LIMIT_NAMES


def test_the_conditions_are_those_that_are_written():
    table = POLICIES.table("Conditions")
    types = [only_span(cell) for cell in table.column("type") if cell]
    assert types == list(CONDITION_TYPES)
    source = (PACKAGE / "controller" / "status" / "summary.py").read_text()
    reasons = {span for cell in table.column("reasons") for span in re.findall(r"`([A-Z]\w+)`", cell)}
    by_mode = {"DryRun", "Paused"}  # the reason is the mode itself
    written = {text for text in _strings(source) if re.fullmatch(r"[A-Z][A-Za-z]+", text)}
    assert reasons - by_mode <= written
    assert written - reasons - set(CONDITION_TYPES) - {"True", "False", "Unknown"} == set()


# -- Events and logs ----------------------------------------------------------------------------------------------


def _strings(source: str) -> set[str]:
    return {
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def _texts(node: ast.expr, function: ast.AST) -> set[str]:
    """The texts that an expression may be: a literal, one or the other, or a local name given one of these."""
    if isinstance(node, ast.Constant):
        return {node.value}
    if isinstance(node, ast.IfExp):
        return _texts(node.body, function) | _texts(node.orelse, function)
    given = [
        one.value
        for one in ast.walk(function)
        if isinstance(one, ast.Assign) and isinstance(node, ast.Name) and ast.unparse(one.targets[0]) == node.id
    ]
    return {text for value in given for text in _texts(value, function)}


def event_reasons() -> set[str]:
    """Those of rows, and the third argument of what records an Event without one."""
    listed = {reason for row in ROWS.values() for reason in row.reasons}
    return listed | {reason for reason, _ in EVENTS.values()} | set(CHANGES.values()) | _recorded()


def _recorded() -> set[str]:
    tree = ast.parse((PACKAGE / "controller" / "words" / "notifier.py").read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return {
        text
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "self.record"
        for text in _texts(node.args[2], function)
    }


def test_the_events_are_those_that_are_written():
    assert set(rows(OPERATING.table("Events"))) == event_reasons()


def test_events_named_anywhere_exist():
    named = {name for page in PAGES for name in re.findall(r"reason=([A-Za-z]+)", page.text)}
    assert named - event_reasons() == {"TaintManagerEviction"}  # the built-in controller's


def logged(path: Path) -> Iterator[tuple[str, str]]:
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("log."):
            level = ast.unparse(node.func).removeprefix("log.")
            for text in _texts(node.args[0], tree):
                yield text, level


def test_the_log_events_are_those_that_are_written():
    rooms = ("app.py", "controller", "serving", "kube", "telemetry")
    places = [*(PACKAGE / room for room in rooms), ROOT / "packages" / "devices", ROOT / "packages" / "placement"]
    files = [file for place in places for file in ([place] if place.is_file() else place.rglob("*.py"))]
    listed = {(line, row.level) for row in ROWS.values() for line in row.lines}
    of_tables = {(line, "warning") for line in (*EVENTS, *WRITE_WARNINGS.values())}
    written = {pair for file in files for pair in logged(file)} | listed | of_tables
    table = OPERATING.table("Logs")
    listed = {
        (name, level)
        for cell, level in zip(table.column("event"), table.column("level"), strict=True)
        for name in spans(cell)
    }
    assert listed == written


# -- rights, outcomes, scenarios ----------------------------------------------------------------------------------


def test_the_rights_are_those_of_the_role():
    documents = yaml.safe_load_all((ROOT / "deploy" / "base" / "rbac.yaml").read_text())
    roles = [document for document in documents if "rules" in document]
    others = {role["metadata"]["name"] for role in roles} - {"taintwarden"}
    assert {name for name in others if f"`{name}`" not in OPERATING.text} == set()
    rules = [rule for role in roles if role["metadata"]["name"] == "taintwarden" for rule in role["rules"]]
    granted = sorted(
        (group or "core", resource, tuple(rule["verbs"]))
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    )
    listed = sorted(
        (row[0].strip("`"), only_span(row[1]), tuple(spans(row[2]))) for row in OPERATING.table("Rights").rows
    )
    assert listed == granted


def test_the_outcomes_are_those_of_the_engine():
    listed = {name for cell in CONCEPTS.table("Calls").column("outcome") for name in spans(cell)}
    assert listed == {outcome.value for outcome in Outcome}


def test_the_delays_of_pods_are_those_of_the_engine():
    table = CONCEPTS.table("Calls")
    said = {
        name: wait
        for names, wait in zip(table.column("outcome"), table.column("waits"), strict=True)
        for name in spans(names)
    }
    for outcome, row in OUTCOMES.items():
        first, longest = row.back_off
        if first:
            assert said[outcome.value] == f"the pod, {first:g} s" + (f" to {longest:g} s" if longest > first else "")


def test_every_scenario_that_differs_is_explained():
    scenarios = json.loads((ROOT / "tests" / "vectors" / "scenarios.json").read_text())["scenarios"]
    differs = {scenario["id"] for scenario in scenarios if scenario.get("differs_from_upstream")}
    named = set(re.findall(r"\b[A-Z][0-9]{2}\b", BY_NAME["docs/differences.md"].text))
    assert named == differs
    everywhere = {name for page in PAGES for name in re.findall(r"\b[UQMNVIERZ][0-9]{2}\b", page.text)}
    assert everywhere <= {scenario["id"] for scenario in scenarios}

"""Pages that `make reference` writes are up to date, and complete by another reading of the sources."""

import json
import re
from collections.abc import Iterator
from typing import Any

import click
import pytest
import yaml

from deploy.chart_values import paths
from docs.pages import BY_NAME, PAGES, ROOT, only_span, spans
from reference.pages import made_files
from taintwarden.settings import PREFIX, Settings
from taintwarden.telemetry.metrics import Metrics
from taintwarden_cli.main import main
from telemetry.declared import declared

SELECTORS = ("nodeSelector", "podSelector", "namespaceSelector")
BOUNDS = ("minimum", "maximum", "minItems", "maxItems", "maxLength", "maxProperties")
SPEC_COLUMNS, STATUS_COLUMNS = ("field", "values", "default", "meaning"), ("field", "values", "meaning")
README = "deploy/chart/taintwarden/README.md"
Json = dict[str, Any]


@pytest.fixture
def made() -> dict[str, str]:
    """The pages as they should be."""
    return made_files()


def test_the_files_are_as_make_reference_writes_them(made):
    stale = [name for name, text in made.items() if not (ROOT / name).exists() or (ROOT / name).read_text() != text]
    assert stale == [], "run `make reference` and commit what it writes"


def test_nothing_else_is_there(made):
    pages = {page.name for page in PAGES if page.name.startswith("docs/reference/")}
    assert pages == {name for name in made if name.startswith("docs/reference/")}


# -- values of the chart ------------------------------------------------------------------------------------------


def test_every_value_has_a_row_with_its_default_and_its_meaning():
    rows = {only_span(row[0]): row[1:] for row in BY_NAME[README].table("Values").rows}
    values = {path: value for path, value, _ in paths()}
    assert rows.keys() == values.keys()
    shown = {path: json.loads(default.strip("`")) for path, (default, _) in rows.items() if default.startswith("`")}
    assert shown == {path: values[path] for path in shown}
    assert {path for path, value in values.items() if not isinstance(value, (dict, list))} <= shown.keys()
    assert [path for path, (_, meaning) in rows.items() if not meaning] == []


# -- fields -------------------------------------------------------------------------------------------------------


def fields(schema: Json, path: str = "") -> Iterator[tuple[str, Json, bool]]:
    """Every field that a person writes or reads: path, schema, whether it is required. Plain groups are no field."""
    for name, inner in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        required = name in schema.get("required", ())
        items = inner.get("items", {})
        if here in SELECTORS:
            yield here, inner, required
        elif inner.get("type") == "array" and "properties" in items:
            yield from fields(items, f"{here}[]")
        elif "properties" in inner:
            yield from fields(inner, here)
        else:
            yield here, inner, required


def schemas(plural: str) -> Json:
    definition = yaml.safe_load((ROOT / "crds" / f"{plural}.yaml").read_text())
    found: Json = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    return found


def rows(page: str, columns: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """The rows of all tables with these columns, by field. Groups explain themselves and are left out."""
    tables = [table for table in BY_NAME[f"docs/reference/{page}.md"].every_table if table.columns == columns]
    cells = [dict(zip(columns, row, strict=True)) for table in tables for row in table.rows]
    return {only_span(row["field"]): row for row in cells if not re.match(r"group|list of groups", row["values"])}


KINDS = {"policy": schemas("taintevictionpolicies"), "profile": schemas("tolerationprofiles")}
WRITTEN = {
    page: [*fields(found["spec"]), *fields(found["spec"]["properties"]["podSelector"])] for page, found in KINDS.items()
}
CASES = [(page, *facts) for page, found in WRITTEN.items() for facts in found]


@pytest.mark.parametrize("page", KINDS)
def test_every_field_has_a_row(page):
    assert set(rows(page, SPEC_COLUMNS)) == {path for path, _, _ in WRITTEN[page]}
    assert set(rows(page, STATUS_COLUMNS)) == {path for path, _, _ in fields(KINDS[page]["status"])}


def choices(schema: Json) -> list[str]:
    return schema.get("enum") or schema.get("items", {}).get("enum") or []


def bounds(schema: Json) -> set[str]:
    inner = schema.get("items") or schema.get("additionalProperties") or {}
    found = [one[name] for one in (schema, inner) for name in BOUNDS if name in one and "enum" not in one]
    return {f"{value:.5f}" if isinstance(value, float) else str(value) for value in found}


def test_a_field_has_its_values_and_default():
    for page, path, schema, required in CASES:
        row = rows(page, SPEC_COLUMNS)[path]
        if expected := choices(schema):
            assert spans(row["values"]) == [str(one) for one in expected]
        elif path not in SELECTORS:
            assert bounds(schema) - {"0", "1"} <= set(re.findall(r"-?[\d.]*\d", row["values"]))
        if required:
            assert row["default"] == "required"
        elif "default" in schema:
            assert yaml.safe_load(only_span(row["default"])) == schema["default"]
        else:
            assert row["default"] == "", path


def test_a_cel_rule_has_a_row_with_its_field():
    (table,) = [
        table for table in BY_NAME["docs/reference/policy.md"].every_table if "the server says" in table.columns
    ]
    assert ("`spec.windows`", "may not be specified together with reclaim, remove one of the two") in table.rows


def test_fields_named_in_the_prose_exist():
    spec = {path for path, _, _ in fields(KINDS["policy"]["spec"])}
    groups = {path.split(".")[0] for path in spec if "." in path and "[" not in path}
    named = {
        span.split(":")[0]
        for page in PAGES
        for span in page.code
        if re.match(rf"({'|'.join(groups)})\.[a-zA-Z]+(:.*)?$", span)
    }
    parts = {path.rsplit(".", 1)[0] for path in spec}
    assert named - spec - parts == set()
    assert len(named) > 10


# -- metrics ------------------------------------------------------------------------------------------------------


def exposed() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Type and labels of every metric, by the name under which it is queried."""
    return {one.name: (one.kind, one.labels) for one in declared(Metrics())}


def test_every_metric_has_a_row():
    (table,) = BY_NAME["docs/reference/metrics.md"].every_table
    listed = {only_span(name): (kind, tuple(spans(labels))) for name, kind, labels, _, _ in table.rows}
    assert listed == exposed()


def test_metrics_named_anywhere_exist():
    named = {name for page in PAGES for name in re.findall(r"(?<![/\w])taintwarden_[a-z_]+", page.text)}
    assert {re.sub("_bucket$", "", name) for name in named} - set(exposed()) == {"taintwarden_build_info"}


# -- the command line ---------------------------------------------------------------------------------------------


def test_every_command_has_its_help():
    headings = BY_NAME["docs/reference/command-line.md"].anchors
    assert {f"taintwarden-{name}" for name in main.entries} <= headings


def settings_table():
    (table,) = BY_NAME["docs/reference/command-line.md"].tables("taintwarden run")
    return table


def test_the_table_of_flags_is_that_of_run():
    table = settings_table()
    listed = [(tuple(spans(row[0])), only_span(row[1])) for row in table.rows]
    run = main.get_command(click.Context(main), "run")
    assert listed == [((*one.opts, *one.secondary_opts), PREFIX + str(one.name).upper()) for one in run.params]


def test_the_defaults_of_flags_are_those_of_the_settings():
    for variable, default in zip(*map(settings_table().column, ("variable", "default")), strict=True):
        value = getattr(Settings(), only_span(variable).removeprefix(PREFIX).lower())
        if value in (None, ""):
            assert default.strip(), f"{variable}: words are needed"
        else:
            shown = yaml.safe_load(only_span(default))
            assert shown == value or str(value) == shown

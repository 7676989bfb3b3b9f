"""The page about a CustomResourceDefinition: every field, and the rules in addition to types and bounds."""

from collections.abc import Iterator

from reference.markdown import code, plain, table
from reference.schemas import Schema, default, is_selector, values

FIELD_COLUMNS = ("field", "values", "default", "meaning")
STATUS_COLUMNS = ("field", "values", "meaning")


def definition_page(definition: Schema) -> str:
    """Return the body of the page, without title and note."""
    spec = definition["spec"]
    (version,) = spec["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    names = ", ".join(code(name) for name in spec["names"].get("shortNames", ()))
    head = (
        f"{plain(schema['description'])} {code(spec['group'] + '/' + version['name'])}, "
        f"{'cluster-scoped' if spec['scope'] == 'Cluster' else 'namespaced'}, short name {names}.\n"
    )
    parts = [head, *_sections("spec", schema["properties"]["spec"], FIELD_COLUMNS)]
    if selector := next((one for one in _schemas(schema["properties"]["spec"]) if is_selector(one)), None):
        about = "A label selector of Kubernetes. All requirements must hold; an empty one selects everything.\n"
        parts += ["## Selectors\n", about, table(FIELD_COLUMNS, _rows(selector, "", FIELD_COLUMNS))]
    refused: dict[str, list[str]] = {}
    for path, message in _refusals(schema["properties"]["spec"], "spec"):
        refused.setdefault(message, []).append(path)
    if refused:
        parts += ["## What the API server refuses\n", "In addition to types, choices and bounds:\n"]
        rows = [(", ".join(dict.fromkeys(paths)), message) for message, paths in refused.items()]
        parts.append(table(("field", "the server says"), rows))
    parts += _sections("status", schema["properties"]["status"], STATUS_COLUMNS)
    return "\n".join(parts)


def _sections(title: str, schema: Schema, columns: tuple[str, ...]) -> list[str]:
    """Return a table of single fields, then a heading and a table for each group of fields."""
    required = schema.get("required", ())
    single = [
        _row(name, inner, columns, required=name in required)
        for name, inner in schema["properties"].items()
        if not _is_group(inner)
    ]
    parts = [f"## {title}\n", f"{plain(schema['description'])}\n"]
    if single:
        parts.append(table(columns, single))
    for name, inner in schema["properties"].items():
        if _is_group(inner):
            needed = " Required." if name in required else ""
            parts += [f"### {title}.{name}\n", f"{plain(inner['description'])}{needed}\n"]
            parts.append(table(columns, _rows(_inside(inner), _path(name, inner), columns)))
    return parts


def _rows(schema: Schema, path: str, columns: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield a row for every field and group below a schema."""
    for name, inner in schema["properties"].items():
        here = f"{path}.{name}" if path else name
        yield _row(_path(here, inner), inner, columns, required=name in schema.get("required", ()))
        if _is_group(inner):
            yield from _rows(_inside(inner), _path(here, inner), columns)


def _row(path: str, schema: Schema, columns: tuple[str, ...], *, required: bool) -> tuple[str, ...]:
    cells = {
        "field": code(path),
        "values": values(schema),
        "default": default(schema, required=required),
        "meaning": plain(schema["description"]),
    }
    return tuple(cells[column] for column in columns)


def _is_group(schema: Schema) -> bool:
    return "properties" in _inside(schema) and not is_selector(schema)


def _inside(schema: Schema) -> Schema:
    inside: Schema = schema.get("items", schema)
    return inside


def _path(path: str, schema: Schema) -> str:
    return f"{path}[]" if "properties" in schema.get("items", {}) else path


def _schemas(schema: Schema) -> Iterator[Schema]:
    yield schema
    for inner in (*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else ())):
        yield from _schemas(inner)


def _refusals(schema: Schema, path: str) -> Iterator[tuple[str, str]]:
    """Yield field and message of each CEL rule. Rules of selectors are left out."""
    for rule in schema.get("x-kubernetes-validations", ()):
        message = rule.get("message") or rule.get("messageExpression")
        yield code(path + rule.get("fieldPath", "")), plain(message)
    if "properties" in schema:
        for name, inner in schema["properties"].items():
            if not is_selector(inner):
                yield from _refusals(inner, f"{path}.{name}")
    if "items" in schema:
        yield from _refusals(schema["items"], f"{path}[]")

"""The shipped dashboard: its panels, and their queries with values in place of Grafana's variables."""

import json
from dataclasses import dataclass
from typing import Any

from monitoring.rules import ROOT

SOURCE = ROOT / "deploy" / "components" / "dashboard" / "taintwarden.json"


@dataclass(frozen=True)
class Panel:
    """One panel that shows data."""

    title: str
    kind: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    """Expressions as they are shipped, each with the format of its legend."""
    states: dict[str, tuple[str, str]]
    """Text and colour of each value, for a panel of states."""


def document() -> Any:
    """The dashboard that Grafana imports."""
    return json.loads(SOURCE.read_text("utf-8"))


def panels() -> list[Panel]:
    """All but the titles of rows, in the order of the page."""
    return [_panel(one) for one in document()["panels"] if one["type"] != "row"]


def filled(expression: str, interval: str, policy: str = ".+") -> str:
    """The expression as Grafana sends it."""
    return expression.replace("$__rate_interval", interval).replace("$policy", policy)


def _panel(one: Any) -> Panel:
    defaults = one["fieldConfig"]["defaults"]
    states = {
        value: (shown["text"], shown["color"])
        for mapping in defaults.get("mappings", [])
        for value, shown in mapping["options"].items()
    }
    queries = tuple((target["expr"], target["legendFormat"]) for target in one["targets"])
    return Panel(one["title"], one["type"], defaults["unit"], queries, states)

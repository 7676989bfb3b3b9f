"""The list of all pages and files, with their sources."""

from collections.abc import Callable
from pathlib import Path

import yaml

from reference.chart import chart_readme, chart_sources
from reference.commands import commands_page
from reference.dashboard import dashboard_json
from reference.definitions import definition_page
from reference.metrics import metrics_page

DASHBOARD = "deploy/components/dashboard/taintwarden.json"
ROOT = Path(__file__).resolve().parents[2]
PAGES: dict[str, tuple[str, str, Callable[[], str]]] = {
    "policy": ("TaintEvictionPolicy", "crds/taintevictionpolicies.yaml", lambda: _definition("taintevictionpolicies")),
    "profile": ("TolerationProfile", "crds/tolerationprofiles.yaml", lambda: _definition("tolerationprofiles")),
    "publisher": ("TaintPublisher", "crds/taintpublishers.yaml", lambda: _definition("taintpublishers")),
    "metrics": ("Metrics", "operator/taintwarden/telemetry/metrics.py", metrics_page),
    "command-line": ("Command line", "packages/cli/src/taintwarden_cli/main.py", commands_page),
}
"""Name of a page -> its title, its source in the repository, and a function that returns its body."""


def made_pages() -> dict[str, str]:
    """Return every page by its path in the repository."""
    pages = {f"docs/reference/{name}.md": _page(*facts) for name, facts in PAGES.items()}
    return {**pages, "deploy/chart/taintwarden/README.md": chart_readme()}


def made_files() -> dict[str, str]:
    """Return every made file by its path: pages, dashboard, and the chart's copies of shipped files."""
    dashboard = dict.fromkeys((DASHBOARD, "deploy/chart/taintwarden/source/dashboard.json"), dashboard_json())
    return {**made_pages(), **dashboard, **chart_sources()}


def _page(title: str, source: str, body: Callable[[], str]) -> str:
    note = f"Made by `make reference` from [{source}](../../{source}): change it there. A test compares the two.\n"
    return "\n".join([f"# {title}\n", note, body()])


def _definition(plural: str) -> str:
    return definition_page(yaml.safe_load((ROOT / "crds" / f"{plural}.yaml").read_text("utf-8")))

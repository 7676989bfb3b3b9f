"""The shipped alerts, and which names their expressions use."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
COMPONENTS = ROOT / "deploy" / "components"
SOURCES = tuple(
    COMPONENTS / name / "alerts.yaml" for name in ("alerts", "scheduler-extender-alerts", "publisher-alerts")
)
"""Each is one PrometheusRule: the second is for those who install the scheduler extender, the third the publisher."""
RUNBOOKS = ROOT / "docs" / "runbooks"
TARGET_LABELS = {"instance", "job"}
"""Labels that Prometheus itself adds to every series."""
OF_THE_API_SERVER = {"apiserver_admission_webhook_fail_open_count": {"name", "type"}}
"""Metrics of the API server that alerts use, with their labels."""
METRIC = re.compile(r"\b(?:taintwarden|apiserver)_[a-z_]+\b")


@dataclass(frozen=True)
class Alert:
    """One rule as it is shipped."""

    name: str
    group: str
    expr: str
    seconds: int
    """Seconds for which the expression has to hold (``for``)."""
    labels: dict[str, str]
    annotations: dict[str, str]

    @property
    def page(self) -> Path:
        """The runbook."""
        return RUNBOOKS / self.annotations["runbook_url"].rpartition("/")[2]


def spec() -> Any:
    """The groups of all PrometheusRules."""
    documents = [yaml.safe_load(path.read_text("utf-8")) for path in SOURCES]
    return {"groups": [group for document in documents for group in document["spec"]["groups"]]}


def alerts() -> list[Alert]:
    """All of them, in the order of the file."""
    return [
        Alert(
            one["alert"], group["name"], one["expr"], seconds(one.get("for", "0s")), one["labels"], one["annotations"]
        )
        for group in spec()["groups"]
        for one in group["rules"]
    ]


def seconds(duration: str) -> int:
    """Seconds of a duration in one unit, as Prometheus writes it."""
    return int(duration[:-1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[duration[-1]]


def metrics(expr: str) -> set[str]:
    """The names of all series in an expression."""
    return set(METRIC.findall(expr))


def labels(expr: str) -> Iterator[tuple[set[str], str]]:
    """Each label with the metrics that may carry it: its own for a matcher, all of the expression for a grouping."""
    for name, matchers in re.findall(r"((?:taintwarden|apiserver)_[a-z_]+)\{([^}]*)\}", expr):
        yield from (({name}, label) for label in re.findall(r"(\w+) *(?:=~|!~|!=|=)", matchers))
    for grouping in re.findall(r"\b(?:by|on|without|ignoring|group_left) *\(([^)]*)\)", expr):
        yield from ((metrics(expr), label.strip()) for label in grouping.split(",") if label.strip())

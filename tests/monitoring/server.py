"""A real Prometheus that scrapes the processes of a test every two seconds, with the shipped alerts.

Time runs faster for the alerts: the minutes of each `for` are seconds here. Expressions and their ranges are as they
are shipped.
"""

import datetime
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode

import urllib3
import yaml

from controlplane.api_server import LOOPBACK, free_port
from controlplane.health import is_healthy
from controlplane.processes import Process
from controlplane.waiting import wait_until
from monitoring.promtool import tool
from monitoring.rules import spec

READY_SECONDS = 60
NOTICED_SECONDS = 60.0
Sample = tuple[dict[str, str], float]


@dataclass(frozen=True)
class Found:
    """An alert as Prometheus has it."""

    name: str
    state: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    active_at: float
    """Time since which its expression holds, in seconds since 1970."""

    def has(self, labels: Mapping[str, str]) -> bool:
        return labels.items() <= self.labels.items()


class Prometheus:
    """One server with a folder of its own. `targets` are URLs of `/metrics` by the name of their instance."""

    def __init__(self, folder: Path, targets: Mapping[str, str], more: Iterable[Mapping[str, Any]] = ()) -> None:
        folder.mkdir(exist_ok=True)
        port = free_port()
        self.url = f"http://{LOOPBACK}:{port}"
        config, rules = folder / "prometheus.yaml", folder / "rules.yaml"
        rules.write_text(yaml.safe_dump(_faster(spec())))
        jobs = [_job(name, url) for name, url in targets.items()]
        every = {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "1s"}
        config.write_text(
            yaml.safe_dump({"global": every, "rule_files": [rules.name], "scrape_configs": [*jobs, *more]})
        )
        flags = [
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={LOOPBACK}:{port}",
            "--log.level=warn",
        ]
        self.process = Process("prometheus", [tool("prometheus"), *flags], folder / "prometheus.log")

    def __enter__(self) -> Self:
        self.process.start()
        try:
            self.process.wait_ready(lambda: is_healthy(f"{self.url}/-/ready"), READY_SECONDS)
        except BaseException:
            self.process.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stop()

    def query(self, expression: str) -> list[Sample]:
        """Current values of an expression: labels and value of each series."""
        result = self._get("query", query=expression)["result"]
        return [(one["metric"], float(one["value"][1])) for one in result]

    def over(self, expression: str, begin: float, end: float, step: float = 1.0) -> list[tuple[dict[str, str], Any]]:
        """Values of an expression over a time: labels, and pairs of time and value."""
        result = self._get("query_range", query=expression, start=begin, end=end, step=step)["result"]
        return [(one["metric"], [(float(at), float(value)) for at, value in one["values"]]) for one in result]

    def alerts(self) -> list[Found]:
        """All alerts that are pending or fire."""
        return [_found(one) for one in self._get("alerts")["alerts"]]

    def firing(self) -> list[Found]:
        return [one for one in self.alerts() if one.state == "firing"]

    def wait_firing(self, name: str, labels: Mapping[str, str], seconds: float = NOTICED_SECONDS) -> Found:
        """Wait until an alert with these labels fires."""
        hits = lambda: [one for one in self.firing() if one.name == name and one.has(labels)]  # noqa: E731
        return wait_until(hits, seconds, f"{name} {dict(labels)} to fire")[0]

    def wait_over(self, name: str, labels: Mapping[str, str], seconds: float = NOTICED_SECONDS) -> None:
        """Wait until no alert with these labels is pending or fires."""
        hits = lambda: [one for one in self.alerts() if one.name == name and one.has(labels)]  # noqa: E731
        wait_until(lambda: not hits(), seconds, f"{name} {dict(labels)} to be over")

    def wait_scraped(self, names: Iterable[str]) -> None:
        """Wait until these instances answer."""
        wanted = set(names)
        up = lambda: {labels["instance"] for labels, value in self.query("up") if value == 1} >= wanted  # noqa: E731
        wait_until(up, READY_SECONDS, f"{wanted} to be scraped")

    def _get(self, what: str, **query: Any) -> Any:
        url = f"{self.url}/api/v1/{what}?{urlencode(query)}"
        answer = json.loads(urllib3.request("GET", url, retries=False, timeout=10).data)
        assert answer["status"] == "success", answer
        return answer["data"]


def _faster(rules: Any) -> Any:
    """Minutes of `for` as seconds."""
    return json.loads(re.sub(r'"for": "(\d+)m"', r'"for": "\1s"', json.dumps(rules)))


def _job(name: str, url: str) -> dict[str, Any]:
    host = url.removeprefix("http://")
    return {"job_name": name, "static_configs": [{"targets": [host], "labels": {"instance": name}}]}


def _found(one: Any) -> Found:
    labels = dict(one["labels"])
    began = datetime.datetime.fromisoformat(one["activeAt"])
    return Found(labels.pop("alertname"), one["state"], labels, one["annotations"], began.timestamp())

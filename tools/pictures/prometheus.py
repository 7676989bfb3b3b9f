"""A Prometheus that scrapes one operator, and its data for the panels of the dashboard."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import yaml

from pictures.charts import Chart, Series
from reference.dashboard import ROWS, Panel

ROOT = Path(__file__).resolve().parents[2]
BINARY = ROOT / ".cache" / "prometheus" / "bin" / "prometheus"
ALERTS = ROOT / "deploy" / "components" / "alerts" / "alerts.yaml"
STEP_SECONDS = 1
READY_SECONDS = 30


@contextlib.asynccontextmanager
async def prometheus(folder: Path, target: str) -> AsyncIterator[str]:
    """Scrape ``target``, a host and port, every second, with the shipped alerts. Yields the server's URL.

    Raises:
        RuntimeError: Prometheus is not built, or does not start.

    """
    if not BINARY.exists():
        msg = f"{BINARY} is not there: run `make prometheus` (needs Go)"
        raise RuntimeError(msg)
    every = {f"{what}_interval": f"{STEP_SECONDS}s" for what in ("scrape", "evaluation")}
    scrape = {"job_name": "taintwarden", "static_configs": [{"targets": [target]}]}
    rules, config = folder / "rules.yaml", folder / "prometheus.yaml"
    rules.write_text(yaml.safe_dump(yaml.safe_load(ALERTS.read_text("utf-8"))["spec"]), "utf-8")
    whole = {"global": {**every, "scrape_timeout": "1s"}, "rule_files": [rules.name], "scrape_configs": [scrape]}
    config.write_text(yaml.safe_dump(whole), "utf-8")
    address = f"127.0.0.1:{free_port()}"
    flags = [f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={address}"]
    with (folder / "prometheus.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(BINARY, *flags, stdout=log, stderr=log)
    try:
        await _ready(f"http://{address}")
        yield f"http://{address}"
    finally:
        process.terminate()
        await process.wait()


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


async def charts(server: str, titles: list[str], begin: float, end: float) -> list[Chart]:
    """Return the panels with these titles from ``begin`` to ``end``, with the queries that Grafana would send."""
    panels = {panel.title: panel for row in ROWS.values() for panel in row}
    async with aiohttp.ClientSession(server) as session:
        return [await _chart(session, panels[title], begin, end) for title in titles]


async def _chart(session: aiohttp.ClientSession, panel: Panel, begin: float, end: float) -> Chart:
    series = []
    for expression, legend in panel.queries:
        query = expression.replace("$__rate_interval", "5s").replace("$policy", ".+")
        parameters = {"query": query, "start": begin, "end": end, "step": STEP_SECONDS}
        async with session.get("/api/v1/query_range", params=parameters) as answer:
            found = (await answer.json())["data"]["result"]
        for one in found:
            points = [(float(at), float(value)) for at, value in one["values"]]
            name = legend
            for label, value in one["metric"].items():
                name = name.replace(f"{{{{{label}}}}}", value)
            if any(value for _, value in points) or panel.states:
                series.append(Series(name, points))
    return Chart(panel.title, series, {float(value): (text, colour) for value, text, colour in panel.states})


async def _ready(server: str) -> None:
    """Wait until the server answers."""
    async with aiohttp.ClientSession(server) as session:
        for _ in range(READY_SECONDS * 5):
            try:
                async with session.get("/-/ready") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.2)
    msg = f"Prometheus was not ready within {READY_SECONDS} s"
    raise RuntimeError(msg)

"""The page about metrics: each with type, labels and help text."""

from collections.abc import Iterator

from prometheus_client.metrics import MetricWrapperBase

from reference.markdown import code, plain, table
from taintwarden.telemetry.metrics import Metrics, Process

HEAD = """\
Served as Prometheus text under `/metrics`, port `http`, by each replica of the operator, the webhook, the scheduler
extender and the publisher. Followers report what they know (nodes, pods, pending); only the leader counts what is
done, and what limits, budgets and guards hold. No label holds the name of a pod or node. The usual `process_*` and
`python_gc_*` are there too, and `taintwarden_build_info`, always 1, whose label `version` is that of the build.
"""


def metrics_page() -> str:
    """Return the body of the page, without title and note."""
    rows = [
        (
            code(name),
            str(metric._type),
            ", ".join(map(code, metric._labelnames)),
            _of(name),
            plain(metric._documentation),
        )
        for name, metric in named_metrics().items()
    ]
    return "\n".join([HEAD, table(("metric", "type", "labels", "of", "meaning"), rows)])


def _of(name: str) -> str:
    """Return the processes that expose a metric."""
    having = [process.value for process in Process if any(name == one for one, _ in _exposed(Metrics(process)))]
    return "all" if len(having) == len(Process) else ", ".join(having)


def _exposed(metrics: Metrics) -> Iterator[tuple[str, MetricWrapperBase]]:
    exposed = set(metrics.registry._collector_to_names)
    return _named({name: one for name, one in vars(metrics).items() if one in exposed})


def named_metrics() -> dict[str, MetricWrapperBase]:
    """Return every metric by its name in queries, in the order of the source."""
    return dict(_named(vars(Metrics())))


def _named(found: dict[str, object]) -> Iterator[tuple[str, MetricWrapperBase]]:
    for metric in found.values():
        if isinstance(metric, MetricWrapperBase):
            yield metric._name + ("_total" if metric._type == "counter" else ""), metric

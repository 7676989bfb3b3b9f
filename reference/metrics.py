"""The page of the metrics: each with type, labels and the text that Prometheus gets."""

from collections.abc import Iterator

from prometheus_client.metrics import MetricWrapperBase

from reference.markdown import code, plain, table
from taintwarden.telemetry.metrics import Metrics

HEAD = """\
Served as Prometheus text under `/metrics`, port `http`, by each replica. Followers report what they know (nodes, pods,
pending); what is done is counted by the leader. No label holds the name of a pod or node. The usual `process_*` and
`python_gc_*` are there too, and `taintwarden_build_info`, always 1, whose label `version` is that of the build.
"""


def metrics_page() -> str:
    """The body of the page, below its title and note."""
    rows = [
        (code(name), str(metric._type), ", ".join(map(code, metric._labelnames)), plain(metric._documentation))
        for name, metric in named_metrics().items()
    ]
    return "\n".join([HEAD, table(("metric", "type", "labels", "meaning"), rows)])


def named_metrics() -> dict[str, MetricWrapperBase]:
    """Every metric by the name under which it is queried, in the order of the source."""
    return dict(_named(vars(Metrics())))


def _named(found: dict[str, object]) -> Iterator[tuple[str, MetricWrapperBase]]:
    for metric in found.values():
        if isinstance(metric, MetricWrapperBase):
            yield metric._name + ("_total" if metric._type == "counter" else ""), metric

"""The metrics that the product declares, even those that have no series yet."""

from typing import NamedTuple

from prometheus_client.metrics import MetricWrapperBase

from taintwarden.telemetry.metrics import Metrics


class Declared(NamedTuple):
    name: str
    """Name in queries."""
    kind: str
    labels: tuple[str, ...]
    collector: MetricWrapperBase


def declared(metrics: Metrics) -> list[Declared]:
    """The exposed metrics."""
    return [_read(one) for one in vars(metrics).values() if isinstance(one, MetricWrapperBase)]


def _read(one: MetricWrapperBase) -> Declared:
    (found,) = one.describe()
    name = f"{found.name}_total" if found.type == "counter" else found.name
    labels = one._labelnames  # the library tells them of series only
    return Declared(name, found.type, tuple(labels), one)

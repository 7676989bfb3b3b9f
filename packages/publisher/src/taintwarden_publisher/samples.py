"""From the series of an answer to one value for each node, and to what is wrong with the others."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

from taintwarden_publisher.nodes import Node
from taintwarden_publisher.spec import LARGEST_VALUE

INSTANCE = "instance"
"""The label that Prometheus gives each target: a host, and usually a port."""
_PORT = re.compile(r":\d+$")


class Series(msgspec.Struct, frozen=True):
    """One series of an instant vector."""

    labels: Mapping[str, str]
    at: float
    """In seconds since 1970, by the clock of Prometheus."""
    value: float


class Fault(StrEnum):
    """Why a series gives no node a value."""

    NO_LABEL = "without the label"
    NO_NODE = "of a node that does not exist"
    TWO_SERIES = "of a node with several series"
    NOT_A_NUMBER = "with the value NaN"
    INFINITE = "with an infinite value"
    OUT_OF_RANGE = "with a value that is negative or too large"


class Samples(msgspec.Struct, frozen=True):
    """What an answer says of nodes."""

    values: Mapping[str, float]
    """By the name of the node."""
    faults: Mapping[Fault, int]
    """Number of series by what is wrong with them."""


def samples(series: Iterable[Series], label: str, nodes: Sequence[Node]) -> Samples:
    """One value for each node that has exactly one series with a usable value.

    A label ``instance`` may also be an address of the node, and may end in a port. An address that two nodes have
    names none of them.
    """
    names = _names(nodes, by_address=label == INSTANCE)
    found: dict[str, list[float]] = defaultdict(list)
    faults: Counter[Fault] = Counter()
    for one in series:
        given = one.labels.get(label)
        node = None if given is None else names.get(given) or (names.get(_host(given)) if label == INSTANCE else None)
        if node is None:
            faults[Fault.NO_LABEL if given is None else Fault.NO_NODE] += 1
        else:
            found[node].append(one.value)
    values: dict[str, float] = {}
    for node, measured in found.items():
        fault = Fault.TWO_SERIES if len(measured) > 1 else _fault(measured[0])
        if fault is None:
            values[node] = measured[0]
        else:
            faults[fault] += len(measured)
    return Samples(values, dict(sorted(faults.items())))


def _fault(value: float) -> Fault | None:
    if math.isnan(value):
        return Fault.NOT_A_NUMBER
    if math.isinf(value):
        return Fault.INFINITE
    return None if 0 <= value <= LARGEST_VALUE else Fault.OUT_OF_RANGE  # a taint's value begins with no minus


def _names(nodes: Sequence[Node], *, by_address: bool) -> dict[str, str | None]:
    """The node by its name, and by addresses that no other node has."""
    names: dict[str, str | None] = {}
    for node in nodes if by_address else ():
        for address in {one.address for one in node.status.addresses}:
            names[address] = None if address in names else node.name
    return names | {node.name: node.name for node in nodes}


def _host(instance: str) -> str:
    """Without port, and without the brackets of an IPv6 address."""
    return _PORT.sub("", instance).removeprefix("[").removesuffix("]")

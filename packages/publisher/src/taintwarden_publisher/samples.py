"""Conversion of the series in an answer to one value for each node, and to faults of unused series."""

import ipaddress
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

from taintwarden_publisher.nodes import Node
from taintwarden_publisher.spec import LARGEST_VALUE

INSTANCE = "instance"
"""Label that Prometheus sets for each target. Its value is a host, usually with a port."""


class Series(msgspec.Struct, frozen=True):
    """One series of an instant vector."""

    labels: Mapping[str, str]
    at: float
    """Time of the sample in seconds since 1970, by the clock of Prometheus."""
    value: float


class Fault(StrEnum):
    """Reason why a series is not used."""

    NO_LABEL = "without the label"
    NO_NODE = "of a node that does not exist"
    SHARED_ADDRESS = "of an address that several nodes have"
    TWO_SERIES = "of a node with several series"
    NOT_A_NUMBER = "with the value NaN"
    INFINITE = "with an infinite value"
    OUT_OF_RANGE = "with a value that is negative or too large"


class Samples(msgspec.Struct, frozen=True):
    """The values of nodes in an answer."""

    values: Mapping[str, float]
    """Name of a node -> its value."""
    faults: Mapping[Fault, int]
    """Fault -> number of series."""
    shared: Mapping[str, tuple[str, ...]] = {}
    """Address in a series -> the several nodes that have this address."""


def samples(series: Iterable[Series], label: str, nodes: Sequence[Node]) -> Samples:
    """Return a value for each node that has exactly one series, with a usable value.

    The label ``instance`` may contain an IP address instead of the node's name, and may end with a port. An address
    that several nodes have is not used. Only IP addresses of nodes count, no host names: a kubelet writes the addresses
    of its node, and could write the name of another node.
    """
    names = {node.name for node in nodes}
    owners = _owners(nodes) if label == INSTANCE else {}
    found: dict[str, list[float]] = defaultdict(list)
    faults: Counter[Fault] = Counter()
    shared: dict[str, tuple[str, ...]] = {}
    for item in series:
        given = item.labels.get(label)
        if given is None:
            faults[Fault.NO_LABEL] += 1
            continue
        host = _host(given) if label == INSTANCE else given
        address = _address(host)
        owning = (host,) if host in names else tuple(sorted(owners.get(address, ())))
        if len(owning) == 1:
            found[owning[0]].append(item.value)
        elif owning:
            faults[Fault.SHARED_ADDRESS] += 1
            shared[address] = owning
        else:
            faults[Fault.NO_NODE] += 1
    values: dict[str, float] = {}
    for node, measured in found.items():
        fault = Fault.TWO_SERIES if len(measured) > 1 else _fault(measured[0])
        if fault is None:
            values[node] = measured[0]
        else:
            faults[fault] += len(measured)
    return Samples(values, dict(sorted(faults.items())), shared)


def _fault(value: float) -> Fault | None:
    if math.isnan(value):
        return Fault.NOT_A_NUMBER
    if math.isinf(value):
        return Fault.INFINITE
    return None if 0 <= value <= LARGEST_VALUE else Fault.OUT_OF_RANGE  # a taint's value cannot begin with a minus


def _owners(nodes: Sequence[Node]) -> dict[str, set[str]]:
    """Return the names of the nodes with each IP address."""
    owners: dict[str, set[str]] = defaultdict(set)
    for node in nodes:
        for listed in node.status.addresses:
            if address := _address(listed.address):
                owners[address].add(node.name)
    return owners


def _host(instance: str) -> str:
    """Return the host without port and without the brackets of an IPv6 address."""
    if instance.startswith("["):
        return instance[1:].partition("]")[0]
    host, _, rest = instance.partition(":")
    return instance if ":" in rest else host


def _address(text: str) -> str:
    """Return an IP address in canonical form; empty for other texts. A zone, which may be any text, is not accepted."""
    try:
        return "" if "%" in text else str(ipaddress.ip_address(text))
    except ValueError:
        return ""

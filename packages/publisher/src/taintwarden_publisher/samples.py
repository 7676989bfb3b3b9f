"""From the series of an answer to one value for each node, and to what is wrong with the others."""

import ipaddress
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

from taintwarden_publisher.nodes import Node
from taintwarden_publisher.spec import LARGEST_VALUE

INSTANCE = "instance"
"""The label that Prometheus gives each target: a host, and usually a port."""


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
    SHARED_ADDRESS = "of an address that several nodes have"
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
    shared: Mapping[str, tuple[str, ...]] = {}
    """The nodes of each address of a series that several nodes have."""


def samples(series: Iterable[Series], label: str, nodes: Sequence[Node]) -> Samples:
    """One value for each node that has exactly one series with a usable value.

    A label ``instance`` may also be an IP address of the node, and may end in a port. An address that several nodes
    have names none of them. A kubelet says which addresses its node has, so no other text counts as one: it could be
    the name of another node, or end in its port.
    """
    names = {node.name for node in nodes}
    owners = _owners(nodes) if label == INSTANCE else {}
    found: dict[str, list[float]] = defaultdict(list)
    faults: Counter[Fault] = Counter()
    shared: dict[str, tuple[str, ...]] = {}
    for one in series:
        given = one.labels.get(label)
        if given is None:
            faults[Fault.NO_LABEL] += 1
            continue
        host = _host(given) if label == INSTANCE else given
        address = _address(host)
        of = (host,) if host in names else tuple(sorted(owners.get(address, ())))
        if len(of) == 1:
            found[of[0]].append(one.value)
        elif of:
            faults[Fault.SHARED_ADDRESS] += 1
            shared[address] = of
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
    return None if 0 <= value <= LARGEST_VALUE else Fault.OUT_OF_RANGE  # a taint's value begins with no minus


def _owners(nodes: Sequence[Node]) -> dict[str, set[str]]:
    """The nodes that have an address."""
    owners: dict[str, set[str]] = defaultdict(set)
    for node in nodes:
        for one in node.status.addresses:
            if address := _address(one.address):
                owners[address].add(node.name)
    return owners


def _host(instance: str) -> str:
    """Without port, and without the brackets of an IPv6 address."""
    if instance.startswith("["):
        return instance[1:].partition("]")[0]
    host, _, rest = instance.partition(":")
    return instance if ":" in rest else host


def _address(text: str) -> str:
    """An IP address in its one form; empty if the text is none. A zone, which may be any text, is not accepted."""
    try:
        return "" if "%" in text else str(ipaddress.ip_address(text))
    except ValueError:
        return ""

"""Clients that connect and send little."""

import asyncio
from collections.abc import Iterable

Client = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def count_open(clients: Iterable[Client]) -> int:
    """Number of the connections whose end the clients have not received."""
    return sum(reader.exception() is None and not reader.at_eof() for reader, _ in clients)

"""Clients that connect and say little."""

import asyncio
from collections.abc import Iterable

Client = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def open_ones(clients: Iterable[Client]) -> int:
    """How many of these connections the server has not ended, as far as the clients have heard."""
    return sum(reader.exception() is None and not reader.at_eof() for reader, _ in clients)

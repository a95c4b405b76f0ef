"""Streams captured from real clients against Spark Thrift Server 4.3, and the ways to feed them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

VECTORS = Path(__file__).parents[1] / "proxy" / "wire" / "vectors"
CLIENTS = ("pyhive", "beeline")

Event = TypeVar("Event")


def captured(name: str) -> bytes:
    return bytes.fromhex((VECTORS / f"{name}.hex").read_text())


def whole(stream: bytes) -> Iterator[bytes]:
    yield stream


def byte_by_byte(stream: bytes) -> Iterator[bytes]:
    for index in range(len(stream)):
        yield stream[index : index + 1]


def in_sevens(stream: bytes) -> Iterator[bytes]:
    for index in range(0, len(stream), 7):
        yield stream[index : index + 7]


every_chunking = pytest.mark.parametrize("chunks", [whole, byte_by_byte, in_sevens])


def read_all(
    chunks: Iterator[bytes], feed: Callable[[bytes], None], next_event: Callable[[], Event | None]
) -> list[Event]:
    events = []
    for chunk in chunks:
        feed(chunk)
        while (event := next_event()) is not None:
            events.append(event)
    return events

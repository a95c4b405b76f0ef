"""The proxy's own account of a statement, by POST /explain on its admin port."""

import json
from base64 import b64encode
from dataclasses import dataclass
from typing import Any
from urllib.request import Request, urlopen

# POST /explain opens its session on the backend with these. Spark Thrift Server wants a password, and takes any.
_LOGIN = b64encode(b"demo:demo").decode()

# Covers slow key queries on a busy machine.
_SECONDS_MAX = 120


@dataclass(frozen=True)
class NarrowedScan:
    """A scan that is narrowed, with the number of its table's partitions that are kept, where that is known."""

    table: str
    kept: int | None
    total: int | None


@dataclass(frozen=True)
class Explained:
    """The narrowed scans of a statement, and the seconds of its key queries."""

    narrowed: list[NarrowedScan]
    key_queries_s: float


def explained(admin_url: str, database: str, sql: str) -> Explained:
    """Ask the proxy for its account of the statement now."""
    request = Request(
        f"{admin_url}/explain",
        data=json.dumps({"sql": sql, "database": database}).encode(),
        headers={"Content-Type": "application/json", "Authorization": f"Basic {_LOGIN}"},
    )
    with urlopen(request, timeout=_SECONDS_MAX) as answer:
        view: dict[str, Any] = json.load(answer)
    narrowed = [_narrowed(scan) for scan in view["scans"] if scan["predicate"] is not None]
    return Explained(narrowed, view["timings_ms"]["key_queries"] / 1000)


def _narrowed(scan: dict[str, Any]) -> NarrowedScan:
    partitions = scan["partitions"]
    return NarrowedScan(scan["table"], partitions["kept"], partitions["total"])

"""The texts of the statements that Spark ran, from its own interface: what a proxy made of what it was sent."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.request import urlopen

from demo.metrics import SparkUi

_SECONDS_MAX = 30
_HINT = "unix_millis(_metadata.file_modification_time) NOT IN"
_KEYS = re.compile(r"`(?:k1|k2|m|x|y)` (?:IN|=|>=|<=|>|<|BETWEEN)")


def texts_after(ui: SparkUi, tracked: int) -> list[str]:
    """The statements that were run since that execution."""
    with urlopen(f"{ui.url}/api/v1/applications", timeout=_SECONDS_MAX) as answer:
        (application,) = json.load(answer)
    query = "details=false&planDescription=false&offset=0&length=2147483647"
    with urlopen(f"{ui.url}/api/v1/applications/{application['id']}/sql?{query}", timeout=_SECONDS_MAX) as answer:
        tracked_statements: list[dict[str, Any]] = json.load(answer)
    return [one["description"] for one in tracked_statements if one["id"] > tracked]


def has_hint(text: str) -> bool:
    """Whether files are named in it that need not be read."""
    return _HINT in text


def has_keys(text: str) -> bool:
    """Whether it compares a key column as we write it: for partitions, row groups or buckets."""
    return bool(_KEYS.search(text))

"""The fact scans of a statement as the proxy explains them."""

import json
import re
import urllib.request
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pyhive import hive
from reach_corpus import DATABASE, FACTS, ReachStatement

from demo.hive import run
from demo.proxy_process import ProxyProcess
from rewriter import SkipReason

_SECONDS_MAX: Final = 120
_LOGIN: Final = b64encode(b"demo:secret").decode()
_SCAN: Final = re.compile(r"^Scan of (\S+)")
_LEFT_ALONE: Final = "  left alone   "
_PREDICATE: Final = "  predicate    "
_CODES: Final = {reason.sentence: reason.name for reason in SkipReason}


@dataclass(frozen=True)
class ExplainedScan:
    """A reference to a table: narrowed, or left alone for a reason."""

    table: str
    narrowed: bool
    reason: str | None


@dataclass(frozen=True)
class Explained:
    """A statement's scans, with the reason for which all of it is left alone, if there is one."""

    scans: Sequence[ExplainedScan]
    reason: str | None

    def narrowed(self, narrowable: int) -> int:
        """The number of narrowed scans. One that is narrowed by way of a CTE's name counts too."""
        return min(narrowable, sum(scan.narrowed for scan in self.scans))

    def left(self, narrowable: int) -> tuple[str, ...]:
        """A reason for each scan that could be narrowed and is not."""
        count = narrowable - self.narrowed(narrowable)
        reasons = [_reason(scan) for scan in self.scans if not scan.narrowed and _is_fact(scan)]
        unknown = self.reason or "NOT_EXPLAINED"
        return tuple([*reasons, *[unknown] * count][:count])


def explained(proxy: ProxyProcess, session: hive.Connection, statement: ReachStatement, target: str) -> Explained:
    """The explanation; of a statement over temporary views, in the session that has them."""
    sql = statement.sql(target)
    if statement.temporary_views:
        return _of_lines([str(line) for (line,) in run(session, f"EXPLAIN REWRITE {sql}")])
    body = json.dumps({"sql": sql, "database": DATABASE}).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Basic {_LOGIN}"}
    request = urllib.request.Request(f"{proxy.admin_url}/explain", data=body, headers=headers)
    with urllib.request.urlopen(request, timeout=_SECONDS_MAX) as response:
        answer = json.load(response)
    scans = [
        ExplainedScan(scan["table"], scan["predicate"] is not None, scan["skip_reason"])
        for scan in answer["scans"]
    ]
    return Explained(scans, answer["skip_reason"])


def _of_lines(lines: Sequence[str]) -> Explained:
    """The explanation of EXPLAIN REWRITE, whose reasons are sentences."""
    scans = list(_scans(lines))
    whole = (line.strip() for line in lines if not line.startswith(_LEFT_ALONE))
    return Explained(scans, next((_CODES[line] for line in whole if line in _CODES), None))


def _scans(lines: Sequence[str]) -> Iterator[ExplainedScan]:
    starts = [at for at, line in enumerate(lines) if _SCAN.match(line)]
    for at, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        found, block = _SCAN.match(lines[at]), lines[at + 1 : end]
        assert found is not None
        sentences = [line.removeprefix(_LEFT_ALONE) for line in block if line.startswith(_LEFT_ALONE)]
        narrowed = any(line.startswith(_PREDICATE) for line in block)
        yield ExplainedScan(found[1], narrowed, _CODES[sentences[0]] if sentences else None)


def _is_fact(scan: ExplainedScan) -> bool:
    name = scan.table.replace("`", "").rpartition(".")[2].lower()
    return name in FACTS and scan.reason != SkipReason.NOT_A_TABLE.name


def _reason(scan: ExplainedScan) -> str:
    return scan.reason or "NOT_EXPLAINED"

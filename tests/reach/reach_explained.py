"""The fact scans of a statement as the proxy explains them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyhive import hive
from reach_corpus import DATABASE, FACTS, ReachStatement
from support.explain_requests import explanation_of

from demo.hive import run
from demo.proxy_process import ProxyProcess
from rewriter import SkipReason

_SECONDS_MAX: Final = 120


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
        ((answer,),) = run(session, f"EXPLAIN REWRITE JSON {sql}")
        return _explained(json.loads(answer))
    return _explained(explanation_of(proxy.admin_url, "demo", _SECONDS_MAX, sql=sql, database=DATABASE))


def _explained(answer: Any) -> Explained:
    scans = [
        ExplainedScan(scan["table"], scan["predicate"] is not None, scan["skip_reason"])
        for scan in answer["scans"]
    ]
    return Explained(scans, answer["skip_reason"])


def _is_fact(scan: ExplainedScan) -> bool:
    name = scan.table.replace("`", "").rpartition(".")[2].lower()
    return name in FACTS and scan.reason != SkipReason.NOT_A_TABLE.name


def _reason(scan: ExplainedScan) -> str:
    return scan.reason or "NOT_EXPLAINED"

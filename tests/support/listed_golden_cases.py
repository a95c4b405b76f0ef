"""The golden cases in which Spark is asked which partitions of a list match: tables, lists and plans."""

import json
from collections.abc import Mapping, Sequence

from rewriter import Catalog, KeyQuery, Keys, PartitionIndexes, Plan, Rewrite, RewriteLimits, SkipReason, TableName
from rewriter import apply as applied
from rewriter.partitions.index import PartitionIndex
from support.golden_cases import FOLDER, Expected, catalog
from support.goldens import planned_with

KIND = "listed"
DATABASE = "golden_listed"
LIMITS = RewriteLimits()
_PARTITIONS = FOLDER / KIND / "partitions.json"


def recorded_partitions() -> dict[str, list[str]]:
    """The rows of SHOW PARTITIONS by table."""
    found = json.loads(_PARTITIONS.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def write_partitions(found: Mapping[str, Sequence[str]]) -> None:
    """Write them, for `--update-goldens`."""
    _ = _PARTITIONS.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def lists(names: Sequence[TableName], specs: Mapping[str, Sequence[str]] | None = None) -> PartitionIndexes:
    """The lists of some tables' partitions."""
    found, known = recorded_partitions() if specs is None else specs, catalog(KIND)
    indexes = {}
    for name in names:
        facts = known[name.parts[-1]]
        types = [column.type_name for column in facts.columns if facts.is_partition_column(column)]
        indexes[name] = PartitionIndex.of(facts.partition_columns, types, found[name.parts[-1]])
    return indexes


def _catalog(names: frozenset[TableName]) -> Catalog:
    known = catalog(KIND)
    return {name: known.get(name.parts[-1]) for name in names}


def planned(
    sql: str, limits: RewriteLimits = LIMITS, answers: Mapping[KeyQuery, Keys | SkipReason] | None = None
) -> Plan:
    """The plan of a statement with the lists that it wants, given some answers."""
    found = planned_with(sql, _catalog, limits)
    while wanted := found.wants_lists(answers or {}):
        known = {**found.partitions, **lists(wanted)}
        found = planned_with(sql, _catalog, limits, partitions=known)
    return found


def rewritten(sql: str, expected: Expected, limits: RewriteLimits = LIMITS) -> Rewrite:
    """The rewrite by recorded answers, by their key queries as users see them."""
    known = dict(zip(expected.key_queries, expected.answers, strict=True))
    answers: dict[KeyQuery, Keys | SkipReason] = {}
    found = planned(sql, limits)
    while pending := found.pending(answers):
        answers |= {question: question.read(known[shown(question)]) for question in pending}
        found = planned(sql, limits, answers)
    return applied(found, answers, limits)


def shown(question: KeyQuery) -> str:
    """A key query as users see it."""
    return getattr(question, "outline", "") or question.sql_with_repeats or question.sql

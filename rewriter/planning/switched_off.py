"""Catalog without the facts that must not be used: a table or a rule that is switched off counts as unknown."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import replace

from rewriter.catalog.table_facts import Catalog, TableFacts
from rewriter.domains.literals import TIMES
from rewriter.semijoins.limits import RewriteLimits
from rewriter.sql.statement import Statement
from rewriter.vocabulary.identifiers import TableName
from rewriter.vocabulary.rule import Rule


def without_switched_off(statement: Statement, catalog: Catalog, limits: RewriteLimits) -> Catalog:
    """The catalog without the facts that the statement or the limits forbid to use."""
    # A statement that shows the files of its rows must read all files.
    names_files = limits.has_file_index and statement.names_files
    no_files = names_files or {Rule.FILE_HINTS, Rule.RANGE_IN} <= limits.rules_off
    no_iceberg = statement.names_files or Rule.ICEBERG in limits.rules_off
    no_delta = statement.names_files or Rule.DELTA in limits.rules_off
    no_buckets = Rule.BUCKETS in limits.rules_off
    known = _without_layout(catalog, files=no_files, buckets=no_buckets, iceberg=no_iceberg, delta=no_delta)
    known = _without_unconverted(known, limits.unconverted_formats)
    return _with_tables_off(known, limits.tables_off, limits.only_tables)


def beside(catalog: Catalog, *, lost_times: bool, delta: bool) -> Catalog:
    """The catalog of a statement that may read a table of which a filter loses times, or that reads a Delta table.

    Keys of some types, and some keys, are not used there: from an equality Spark infers a filter for each table.
    """
    if not (lost_times or delta):
        return catalog
    return {
        name: replace(facts, is_beside_lost_times=lost_times, is_beside_delta=delta)
        if facts is not None and (delta or any(column.type_name in TIMES for column in facts.columns))
        else facts
        for name, facts in catalog.items()
    }


def with_written(statement: Statement, catalog: Catalog) -> Catalog:
    """The catalog in which the target of an INSERT is known as such, by any name that it may be read by.

    Neither it nor a view over it is a small side: soundness.md asks that a statement writes no small side.
    """
    if not statement.inserts:
        return catalog
    return {
        name: replace(facts, is_written=True)
        if facts is not None and any(map(statement.may_write, _names_behind(name, facts)))
        else facts
        for name, facts in catalog.items()
    }


def _names_behind(name: TableName, facts: TableFacts) -> list[tuple[str, ...]]:
    behind = facts.behind.tables if facts.behind is not None else ()
    return [table.parts for table in (name, *behind)]


def _without_layout(catalog: Catalog, *, files: bool, buckets: bool, iceberg: bool, delta: bool) -> Catalog:
    """The catalog without the facts of file indexes, buckets, or the bounds that Iceberg and Delta keep."""
    if not (files or buckets or iceberg or delta):
        return catalog

    def less(facts: TableFacts) -> TableFacts:
        is_unknown = iceberg if facts.iceberg is not None else delta if facts.delta is not None else files
        indexed, bucketed = () if is_unknown else facts.indexed_columns, () if buckets else facts.bucket_columns
        return replace(facts, indexed_columns=indexed, bucket_columns=bucketed)

    has_layout = {
        name for name, facts in catalog.items() if facts and (facts.indexed_columns or facts.bucket_columns)
    }
    return {name: less(facts) if facts and name in has_layout else facts for name, facts in catalog.items()}


def _without_unconverted(catalog: Catalog, formats: AbstractSet[str]) -> Catalog:
    """The catalog in which no table of Hive's format, which Hive's reader reads, has row groups to skip."""
    if not formats:
        return catalog
    return {
        name: replace(facts, converted_format="")
        if facts is not None and facts.converted_format in formats
        else facts
        for name, facts in catalog.items()
    }


def _with_tables_off(catalog: Catalog, names: frozenset[TableName], only: frozenset[TableName]) -> Catalog:
    """The catalog in which tables are switched off; see `RewriteLimits.tables_off` and `only_tables`."""
    if not (names or only):
        return catalog
    off, on = folded(names), folded(only)
    return {
        name: replace(facts, is_off=True)
        if facts is not None and (is_among(off, name, facts) or (on and not is_among(on, name, facts)))
        else facts
        for name, facts in catalog.items()
    }


def folded(names: Iterable[TableName]) -> frozenset[tuple[str, ...]]:
    """The parts of each name in lower case, as `is_among` compares them."""
    return frozenset(tuple(part.lower() for part in name.parts) for name in names)


def is_among(names: AbstractSet[tuple[str, ...]], name: TableName, facts: TableFacts) -> bool:
    """True if a table is among some, `folded`, that are named as in `RewriteLimits.tables_off`."""
    (parts,) = folded([facts.full_name or name])
    found = [parts[start:] for start in range(len(parts))]
    return any(part in names or (*part[:-1], "*") in names for part in found)

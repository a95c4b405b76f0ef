"""Generated statements at snapshots: cut out all that was inserted, and the client's text is left."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from grammar import random_query
from seeding import seeded, seeds
from sieve import LIMITS, Answers, Sieve
from snapshot_tables import SNAPSHOT, of_iceberg
from sqlglot import exp
from star_tables import Star, catalog, random_star

from rewriter import (
    Catalog,
    Plan,
    Rewrite,
    SkipReason,
    Statement,
    apply,
    catalog_at_snapshots,
    parse,
    pin_snapshots,
    plan,
)
from rewriter.predicates.named_columns import of_table
from rewriter.scopes.join_tree import table_name
from rewriter.sql.statement import parse_tree

STATEMENTS = 25
# Some of the tables stay as they are in most statements that name several.
PINNED_PART = 0.8
# The first fact has partitions to be pruned instead.
NOT_OF_ICEBERG = "f1"
PIN = re.compile(rf" VERSION AS OF {SNAPSHOT}")


def planned(statement: Statement, known: Catalog, star: Star) -> tuple[Plan, Catalog]:
    while (found := plan(statement, known, LIMITS)).missing:
        known = {**known, **catalog(star.schema, found.missing)}
    return found, known


def cut_out(found: Plan, result: Rewrite) -> str:
    """The text without the narrowed scans, and without the versions."""
    text = result.text
    # A scan with an alias of the client's may be the first part of one without.
    for outcome in sorted(result.scans, key=lambda outcome: outcome.scan.reference.has_alias):
        if outcome.predicate is not None:
            reference = outcome.scan.reference
            if outcome.scan.conjunct_start is not None:
                conjunct = f"{of_table(outcome.predicate, reference.alias_text(found.statement))} AND "
                assert conjunct in text
                text = text.replace(conjunct, "", 1)
                continue
            source = found.statement.text[reference.start : reference.stop]
            alias = "" if reference.has_alias else f" AS {reference.alias_text(found.statement)}"
            scan = f"(SELECT * FROM {source} WHERE {outcome.predicate}){alias}"
            assert scan in text
            text = text.replace(scan, source, 1)
    return PIN.sub("", text)


def answered(sieve: Sieve, found: Plan) -> Answers:
    """The key queries' answers: here every snapshot is what the tables hold."""
    return {query: sieve.keys(replace(query, sql=PIN.sub("", query.sql))) for query in found.key_queries}


def cases(star: Star, seed: int) -> Iterator[tuple[Statement, Plan, Catalog]]:
    """The statements of a seed of which key queries read something that can be pinned."""
    for index in range(STATEMENTS):
        statement = parse(random_query(star, seeded(seed, index)).sql, chars_max=100_000)
        if not isinstance(statement, SkipReason):
            found, known = planned(statement, {}, star)
            if found.pinnable:
                yield statement, found, known


@pytest.mark.parametrize("seed", seeds(quick=4, deep=200))
def test_without_what_was_inserted_the_clients_text_is_left(seed: int) -> None:
    star, rng = of_iceberg(random_star(seeded(seed)), NOT_OF_ICEBERG), seeded(seed, -1)
    sieve = Sieve(star)
    try:
        for statement, unpinned, known in cases(star, seed):
            chosen = [name for name in sorted(unpinned.pinnable, key=str) if rng.random() < PINNED_PART]
            snapshots = dict.fromkeys(chosen, SNAPSHOT)
            at_snapshots = pin_snapshots(statement, snapshots)
            assert (at_snapshots is None) == (not chosen)
            if at_snapshots is None:
                continue
            found, _ = planned(at_snapshots, catalog_at_snapshots(known, snapshots), star)
            result = apply(found, answered(sieve, found), LIMITS)
            assert result.skip is None
            assert cut_out(found, result) == statement.text
            # A version changes nothing else of what is inserted.
            plainly = apply(unpinned, answered(sieve, unpinned), LIMITS)
            assert PIN.sub("", result.text) == plainly.text
    finally:
        sieve.close()


@pytest.mark.parametrize("seed", seeds(quick=4, deep=200))
def test_a_key_query_tells_of_every_table_that_it_reads_and_that_can_change(seed: int) -> None:
    star = of_iceberg(random_star(seeded(seed)), NOT_OF_ICEBERG)
    for statement, unpinned, known in cases(star, seed):
        snapshots = dict.fromkeys(sorted(unpinned.pinnable, key=str)[:1], SNAPSHOT)
        at_snapshots = pin_snapshots(statement, snapshots)
        assert at_snapshots is not None
        found, _ = planned(at_snapshots, catalog_at_snapshots(known, snapshots), star)
        for query in (*unpinned.key_queries, *found.key_queries):
            tree = parse_tree(query.sql)
            assert tree is not None
            ctes = {cte.alias for cte in tree.find_all(exp.CTE)}
            tables = (table for table in tree.find_all(exp.Table) if table.db or table.name not in ctes)
            read_now = {table_name(table) for table in tables}
            assert query.tables == {name for name in read_now if name.snapshot_id is None}

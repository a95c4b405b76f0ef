"""Facts of the corpus' tables, as the server describes them and as catalog.json has them."""

from collections.abc import Iterator
from dataclasses import replace

from pyhive import hive
from reach_corpus import DATABASE, DIRECT, FOLDER, PROXIED, statements
from support import golden_cases

from demo.hive import run
from proxy.operations.query import ResultColumn, Rows
from proxy.session.catalog.describe import read_description, read_view_text
from proxy.session.catalog.table_sizes import read_size
from rewriter import Catalog, TableFacts, TableKind, TableName


def recorded() -> dict[str, TableFacts]:
    """The facts as they were last described, by the last part of the name."""
    return golden_cases.catalog(folder=FOLDER)


def record(facts: dict[str, TableFacts]) -> None:
    """Write the facts, for `--update-reach`."""
    golden_cases.write_catalog(facts, folder=FOLDER)


def described(session: hive.Connection) -> dict[str, TableFacts]:
    """The facts of all tables and views of the database, and of the temporary views that statements make."""
    names = sorted({*_names(session)} - {DIRECT, PROXIED})
    found = {name: facts for name in names if (facts := _described(session, name)) is not None}
    return golden_cases.without_full_names(found)


def recorded_catalog(names: frozenset[TableName]) -> Catalog:
    """The catalog of the given names: None for one that is no table, such as one that a statement makes."""
    known = recorded()
    return {name: known.get(name.parts[-1].lower()) for name in names}


def _names(session: hive.Connection) -> Iterator[str]:
    yield from (str(name).lower() for _, name, _ in run(session, f"SHOW TABLES IN {DATABASE}") if name)
    for statement in statements():
        for view, made in statement.temporary_views.items():
            run(session, made)
            yield view.lower()


def _described(session: hive.Connection, name: str) -> TableFacts | None:
    describe = f"DESCRIBE TABLE EXTENDED {name}"
    facts = read_description(_answer(session, describe))
    if facts is not None and facts.kind is TableKind.VIEW and facts.view is None:
        return replace(facts, view=read_view_text(_answer(session, f"{describe} AS JSON")))
    if facts is not None and facts.kind is TableKind.TABLE and facts.size_bytes is None:
        # Sizes of partitioned ones are not asked for: they are never small sides as a whole.
        cost = f"EXPLAIN COST SELECT * FROM {name}"
        return replace(facts, size_bytes=None if facts.partition_columns else read_size(_answer(session, cost)))
    return facts


def _answer(session: hive.Connection, sql: str) -> Rows:
    return Rows((ResultColumn("col_name", "string"),), tuple(tuple(row) for row in run(session, sql)), 0.0)

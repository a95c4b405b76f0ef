"""Statements over tables of many small files: with its scans grouped one answers as the original, bit by bit."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass

import pytest
from pyhive import hive
from seeding import how_to_run, seeded, seeds
from small_file_grammar import Made, random_statement
from small_file_tables import EACH_FILE_A_SPLIT, grouped_text, spark_statements
from support.profile import DEEP

from demo.hive import connect, run
from demo.thrift_server import ThriftServer

SEEDS = seeds(quick=1, deep=12)
# Each is run four times: a tenth of a second each on a quiet machine.
GROUPED_PER_SEED = 60 if DEEP else 10
STATEMENTS_PER_SEED = GROUPED_PER_SEED * 8
SIEVED = 20_000 if DEEP else 700
# The same rows in one order of files and in another.
ORDERS = {"in_order": False, "reordered": True}

Answer = list[tuple[str, ...]]


def statements(seed: int, count: int) -> Iterator[Made]:
    for index in range(count):
        # A statement can be made again without those before it.
        yield random_statement(seeded(seed, index))


@pytest.fixture(scope="module")
def sieved() -> list[tuple[Made, bool]]:
    """Statements, each with True if its scans are grouped."""
    return [(made, grouped_text(made.sql) is not None) for made in statements(1, SIEVED)]


def test_no_statement_is_grouped_of_which_a_part_depends_on_order_or_tasks(
    sieved: list[tuple[Made, bool]],
) -> None:
    assert [made.sql for made, is_grouped in sieved if is_grouped and made.depends] == []
    # The sieve does not hold by refusing all: statements that depend on neither are grouped.
    assert sum(is_grouped for _, is_grouped in sieved) > SIEVED / 5
    assert sum(made.depends for made, _ in sieved) > SIEVED / 10


def test_statements_of_most_kinds_are_grouped(sieved: list[tuple[Made, bool]]) -> None:
    shapes = {shape for made, is_grouped in sieved if is_grouped for shape in made.shapes}
    kinds = {"rows", "groups", "one row", "window", "distinct", "set operation", "aggregated twice"}
    sources = {"table", "alias", "derived table", "CTE", "join", "union", "lateral view", "texts"}
    groupings = {"ROLLUP", "CUBE", "GROUPING SETS", "ordinals", "ALL", "named window"}
    assert kinds | sources | groupings | {"ordered by all LIMIT", "hidden by an alias"} <= shapes


@pytest.mark.parametrize("table", ["collated", "variants", "seen"])
def test_tables_that_show_the_first_of_equal_rows_keep_their_splits(table: str) -> None:
    assert grouped_text(f"SELECT DISTINCT i FROM {table}") is None
    assert grouped_text("SELECT DISTINCT i FROM many") is not None


@dataclass(frozen=True)
class Sessions:
    """Sessions in databases of the same rows: one in each order, of which each file is a split."""

    of_orders: dict[str, hive.Connection]

    def answers(self, made: Made) -> dict[str, Answer | hive.Error]:
        """The answers to the statement and its grouped texts, over rows in one order and in the other."""
        found = {}
        for order, splits in zip(self.of_orders, (2, 3), strict=True):
            text = grouped_text(made.sql, splits)
            assert text is not None
            found[f"{order}, as it came"] = _answer(self.of_orders[order], made.sql)
            found[f"{order}, in {splits} splits"] = _answer(self.of_orders[order], text)
        return found


def _answer(session: hive.Connection, sql: str) -> Answer | hive.Error:
    """The rows of a statement, or its error. Each bit of a floating-point number shows in its text."""
    try:
        return [tuple(map(repr, row)) for row in run(session, sql)]
    except hive.Error as error:
        return error


def _compared(answer: Answer, made: Made) -> str:
    """The rows as a multiset, and as a list if they are ordered by all that they show: there, zeros are equal."""
    as_list = str(answer).replace("-0.0", "0.0") if made.is_ordered else ""
    return f"{sorted(answer)} {as_list}"


@pytest.fixture(scope="module")
def sessions(spark: ThriftServer) -> Iterator[Sessions]:
    with ExitStack() as stack:
        found = {}
        for order, is_reordered in ORDERS.items():
            found[order] = session = stack.enter_context(closing(connect(spark.endpoint)))
            for statement in (
                f"DROP DATABASE IF EXISTS small_files_{order} CASCADE",
                f"CREATE DATABASE small_files_{order}",
                f"USE small_files_{order}",
                *EACH_FILE_A_SPLIT,
                *spark_statements(reordered=is_reordered),
            ):
                run(session, statement)
        yield Sessions(found)
        for order, session in found.items():
            run(session, f"DROP DATABASE small_files_{order} CASCADE")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_grouped_statement_answers_as_the_original_in_any_order_of_rows(sessions: Sessions, seed: int) -> None:
    for session in sessions.of_orders.values():
        # Without ANSI, what passes a range is null instead of an error.
        run(session, f"SET spark.sql.ansi.enabled={str(seed % 2 == 1).lower()}")
    tried, answered = 0, 0
    for index, made in enumerate(statements(seed, STATEMENTS_PER_SEED)):
        if tried == GROUPED_PER_SEED:
            break
        if grouped_text(made.sql) is None:
            continue
        tried += 1
        answers = sessions.answers(made)
        if any(isinstance(answer, hive.Error) for answer in answers.values()):
            # Which row an error comes from is not promised, but that there is one.
            assert all(isinstance(answer, hive.Error) for answer in answers.values()), (made.sql, answers)
            continue
        answered += 1
        alike = {_compared(answer, made) for answer in answers.values() if isinstance(answer, list)}
        rerun = how_to_run("test_small_file_statements.py", seed)
        assert len(alike) == 1, f"seed {seed}, statement {index}: {rerun}\n{made.sql}\n{answers}"
    assert answered >= GROUPED_PER_SEED / 2


@pytest.mark.parametrize(
    "sql",
    [
        # Each of these was grouped once, and answers otherwise where rows come in another order.
        "SELECT i, max(z) AS c FROM many GROUP BY i",
        "SELECT i, max(array(z)) AS c FROM many GROUP BY i",
        "SELECT i, max(v) AS c FROM (SELECT i, -z AS v FROM texts) q GROUP BY i",
        "SELECT p, sum(m38) AS c FROM many GROUP BY p",
        "SELECT id FROM (SELECT id, i FROM many ORDER BY i LIMIT 4) q",
        "SELECT n, p, count(*) AS c FROM many GROUP BY n, p ORDER BY count(*) LIMIT 3",
    ],
)
def test_a_statement_that_answers_otherwise_in_another_order_keeps_its_splits(
    sessions: Sessions, sql: str
) -> None:
    for session in sessions.of_orders.values():
        run(session, "SET spark.sql.ansi.enabled=false")
    first, second = (_answer(session, sql) for session in sessions.of_orders.values())
    assert isinstance(first, list)
    assert isinstance(second, list)
    assert sorted(first) != sorted(second)
    assert grouped_text(sql) is None

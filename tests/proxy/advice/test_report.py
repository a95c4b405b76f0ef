"""The report as lines for a terminal."""

import doctest

from proxy.advice import commands, recorded, report
from proxy.advice.commands import Command
from proxy.advice.report import (
    Advice,
    ColumnOfJoins,
    HistoryPart,
    Measured,
    NotMeasured,
    NotProposed,
    Proposal,
    ScanOfStatement,
    text,
)

AS_IT_LIES = "an index of its files as they lie"
HISTORY = HistoryPart(7, 2, 30, 61.0, left_out=1, without_literals=1)
MEASURED = Measured("shop.sales", 200, 25_000_000_000, 1_000_000, 8, 50_000)
SHIP = ColumnOfJoins("ship", 1, 1, ["s.ship = d.k"], AS_IT_LIES, 0.9)
PAID = ColumnOfJoins("paid", 1, None, [], AS_IT_LIES, 0.0)


def test_a_proposal_says_what_is_spared_and_how_to_get_there() -> None:
    proposal = Proposal(
        measured=MEASURED,
        layout="files by ranges of values",
        column="ship",
        columns=[SHIP, PAID],
        statements=1,
        runs=20,
        seconds=60.0,
        read_bytes=500_000_000_000,
        spared_bytes=450_000_000_000,
        scans=[ScanOfStatement("01a2", 20, 60.0, 1.0, 0.1)],
        commands=[Command("sql", "CREATE TABLE .."), Command("shell", "starpruner pipeline index ..")],
        notes=["A note."],
    )
    assert text(Advice(HISTORY, [proposal], [], [], 0.1)).splitlines() == [
        "History of 7 days: 2 different statements, 30 runs, 61 s",
        "  1 more took less time and were not looked at (--statements)",
        "  1 more were kept without literals, or not as a whole",
        "",
        "1. shop.sales: files by ranges of values of ship",
        "   spares 450 GB of 500 GB (90 %) that recorded runs read of its files: 1 statement, 20 runs, 60 s",
        "   measured on 8 of 200 files (25.00 GB) and 50,000 of 1,000,000 rows",
        f"   ship: 1 statement, at most 1 key, s.ship = d.k; by it alone: {AS_IT_LIES}, 90 % spared",
        "   paid: 1 statement, filters alone; by it alone: nothing spared",
        "   statement 01a2: 100 % of the table today, 10 % then; 20 runs, 60 s",
        "   in Spark SQL:",
        "     CREATE TABLE ..;",
        "   in a shell:",
        "     starpruner pipeline index ..",
        "   A note.",
    ]


def test_tables_without_a_proposal_are_named_with_their_numbers_or_reasons() -> None:
    left = NotMeasured("shop.returns", "REDUCER_PARTITIONED", 2, ["sales: it is partitioned"])
    found = text(Advice(HISTORY, [], [NotProposed(MEASURED, [PAID], 0.03)], [left], 0.1)).splitlines()
    assert found[3:] == [
        "",
        "No layout would spare 10 % of what these statements read.",
        "",
        "Measured, and not proposed: less than 10 % would be spared",
        "  shop.sales: 3 %; measured on 8 of 200 files (25.00 GB) and 50,000 of 1,000,000 rows",
        "    paid: 1 statement, filters alone; by it alone: nothing spared",
        "",
        "Not measured",
        "  shop.returns: REDUCER_PARTITIONED (2 statements)",
        "    sales: it is partitioned",
    ]


def test_the_examples_in_the_docstrings_hold() -> None:
    for module in (commands, recorded, report):
        assert doctest.testmod(module).failed == 0

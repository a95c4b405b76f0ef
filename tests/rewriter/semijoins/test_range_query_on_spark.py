"""Range queries on the real server: their ranges hold every key, and leave the widest gaps out."""

import pytest
from pyhive import hive

from demo.hive import run
from rewriter import KeyRanges, KeySet
from rewriter.domains.literals import Key
from rewriter.semijoins.key_query import KeyColumn
from rewriter.semijoins.range_query import KeyRangesQuery, key_ranges_query

# Three clusters of each type, shuffled, with a duplicate and a null.
CLUSTERS: dict[str, list[list[Key]]] = {
    "tinyint": [[-128, -127], [1, 2, 3], [100, 127]],
    "int": [[-2147483648], [5, 6, 7, 8], [1000, 1001]],
    "bigint": [[-9223372036854775808], [0, 1, 2], [9223372036854775807]],
    "date": [["0001-01-01"], ["2026-01-01", "2026-01-02"], ["2026-11-01", "2026-11-02", "2026-11-03"]],
    "decimal(5,2)": [["-999.99", "-999.98"], ["0.00", "0.01"], ["999.99"]],
    "string": [["2024-02-28", "2024-02-29"], ["2025-01-01"], ["2026-06-01", "2026-06-02"]],
}


def asked(direct: hive.Connection, query: KeyRangesQuery) -> KeyRanges:
    rows = [tuple(v if v is None or isinstance(v, int) else str(v) for v in row) for row in run(direct, query.sql)]
    found = query.read(rows)
    assert isinstance(found, KeyRanges), found
    return found


def source_of(type_name: str, keys: list[Key]) -> str:
    literals = [text for ((text,),) in (KeySet.of((type_name,), [(key,)]).literals for key in keys)]
    rows = ", ".join(f"({text})" for text in [*literals[::-1], literals[0], "NULL"])
    return f"(SELECT * FROM VALUES {rows} AS v(k)) v"


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("type_name", CLUSTERS)
def test_the_widest_gaps_are_left_out(type_name: str, ansi: str, direct: hive.Connection) -> None:
    clusters = CLUSTERS[type_name]
    run(direct, f"SET spark.sql.ansi.enabled={ansi}")
    query = key_ranges_query(
        source=source_of(type_name, [key for cluster in clusters for key in cluster]),
        key="v.k",
        column=KeyColumn(type_name),
        ranges_max=3,
    )
    assert asked(direct, query) == KeyRanges(type_name, tuple((cluster[0], cluster[-1]) for cluster in clusters))


def test_strings_without_a_distance_are_cut_somewhere_and_none_is_lost(direct: hive.Connection) -> None:
    keys: list[Key] = [f"code {number}" for number in range(100)]
    query = key_ranges_query(
        source=source_of("string", keys), key="v.k", column=KeyColumn("string", null_safe=True), ranges_max=10
    )
    found = asked(direct, query)
    assert len(found.ranges) == 10
    cover = found.cover(["k"])
    assert all(cover.holds({"k": key}) for key in [*keys, None])
    assert not cover.holds({"k": "code"})


def test_keys_of_a_wider_type_are_cut_to_what_the_column_holds(direct: hive.Connection) -> None:
    query = key_ranges_query(
        source=source_of("bigint", [-5_000_000_000, 1, 2, 5_000_000_000]),
        key="v.k",
        column=KeyColumn("int"),
        ranges_max=3,
    )
    assert asked(direct, query).ranges == ((1, 2),)


def test_what_the_query_reads_of_the_session_is_assumed(direct: hive.Connection) -> None:
    query = key_ranges_query(
        source=source_of("int", [1, 2]),
        key="v.k",
        column=KeyColumn("int"),
        filters=["v.k < year(current_date())"],
        ranges_max=3,
    )
    ((function, literal),) = asked(direct, query).assumptions
    assert function == "current_date()"
    assert literal.startswith("DATE'2")


def test_without_a_key_there_is_no_range(direct: hive.Connection) -> None:
    query = key_ranges_query(
        source=source_of("int", [1]), key="v.k", column=KeyColumn("int"), filters=["v.k > 1"], ranges_max=3
    )
    assert asked(direct, query).ranges == ()

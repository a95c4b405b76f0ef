"""Keys of Iceberg tables: every key is in what is said, in lists and ranges that Iceberg and Spark digest."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cover_strategies import laws

from rewriter import (
    Column,
    IcebergFacts,
    KeyQuery,
    KeyRanges,
    Keys,
    KeySet,
    Plan,
    Rewrite,
    RewriteLimits,
    Rule,
    ScanOutcome,
    SkipReason,
    Statement,
    TableFacts,
    TableKind,
    TableName,
    ViewText,
    apply,
    parse,
    plan,
)
from rewriter.domains.consumers import ICEBERG, ICEBERG_LIST_MAX, ICEBERG_PAIRED_POINTS_MAX, METASTORES
from rewriter.domains.literals import Key
from rewriter.files.file_index import FileIndex
from rewriter.plan import KeyAnswer
from rewriter.predicates.data_columns import bucket_predicate, row_group_predicate
from rewriter.predicates.iceberg_predicate import iceberg_predicate
from rewriter.predicates.partition_predicate import Budget, partition_predicate
from rewriter.predicates.predicate import Predicate, Restriction
from rewriter.predicates.splice import is_one_condition

COLUMNS = (
    Column("id", "int"),
    Column("K", "int"),
    Column("l", "bigint"),
    Column("s", "string"),
    Column("price", "double"),
)
FACT = TableFacts(
    COLUMNS,
    provider="iceberg",
    full_name=TableName(("ice", "db", "f")),
    size_bytes=1_000_000,
    indexed_columns=("id", "K", "l", "s"),
    iceberg=IcebergFacts(1),
)
SMALL = TableFacts((Column("k", "int"), Column("l", "bigint"), Column("s", "string"), Column("g", "int")))
SMALL_IN_ICEBERG = replace(
    SMALL, provider="iceberg", indexed_columns=("k", "l", "s", "g"), size_bytes=1_000, iceberg=IcebergFacts(2)
)
PARTED = TableFacts((Column("id", "int"), Column("p", "int")), ("p",))
JOINED = "SELECT f.id FROM f JOIN small s ON f.k = s.k WHERE s.g = 1"
PAIRED = "SELECT f.id FROM f JOIN small s ON f.k = s.k AND f.l = s.l WHERE s.g = 1"
LIMITS = RewriteLimits()
CHARS_MAX = LIMITS.predicate_chars_max
LIST = re.compile(r"IN \(([^()]*)\)")


def planned(sql: str, tables: Mapping[str, TableFacts], limits: RewriteLimits = LIMITS) -> Plan:
    statement = parse(sql, chars_max=10_000)
    assert isinstance(statement, Statement)
    catalog = {TableName(tuple(name.split("."))): facts for name, facts in tables.items()}
    return plan(statement, catalog, limits)


def rewritten(
    sql: str,
    *keys: tuple[Key, ...] | Keys,
    tables: Mapping[str, TableFacts] | None = None,
    index: FileIndex | None = None,
    limits: RewriteLimits = LIMITS,
) -> Rewrite:
    found = planned(sql, tables or {"f": FACT, "small": SMALL}, limits)
    answers: dict[KeyQuery, KeyAnswer] = {}
    for query in found.key_queries:
        types = tuple(column.type_name for column in query.columns)
        given = [key for key in keys if isinstance(key, KeyRanges)]
        answers[query] = given[0] if given else KeySet.of(types, [k for k in keys if isinstance(k, tuple)])
    files = dict.fromkeys(found.wants_files(answers), index) if index is not None else None
    return apply(found, answers, limits, files=files)


def outcome(result: Rewrite) -> ScanOutcome:
    (found,) = [scan for scan in result.scans if scan.scan.alias == "f"]
    return found


def bounds(type_name: str, low: int, high: int) -> dict[str, str]:
    """The bounds of one column in a file, as an index has them."""
    return {"type": type_name, "low": f"{low}", "high": f"{high}"}


def index_of(*files: tuple[int, int, int], row_groups: int | None = None) -> FileIndex:
    """An index of files by their lowest and highest K, and their bytes, with so many row groups each."""
    rows = (
        (f"{number}", size, 1, 1, json.dumps({"k": {**bounds("int", low, high), "row_groups": row_groups}}), None)
        for number, (low, high, size) in enumerate(files)
    )
    return FileIndex.of_rows(rows, {"k": "int"})


def restriction(columns: Sequence[Column], rows: Iterable[tuple[Key | None, ...]]) -> Restriction:
    types = tuple(column.type_name for column in columns)
    return Restriction(tuple(columns), KeySet.of(types, rows, null_safe=(True,) * len(types)))


def said(
    restrictions: Sequence[Restriction], partitioning: Sequence[str] = (), index: FileIndex | None = None
) -> Predicate:
    found = iceberg_predicate(restrictions, partitioning, index, CHARS_MAX)
    assert found is not None
    assert is_one_condition(found.sql)
    return found


def of_k(*keys: int) -> Restriction:
    return restriction(COLUMNS[1:2], [(key,) for key in keys])


def test_a_scan_is_narrowed_by_one_condition_without_an_index() -> None:
    result = rewritten(JOINED, (5,), (50_001,))
    assert outcome(result).predicate == "(`K` IN (5, 50001) OR typeof(`K`) <> 'int')"
    assert outcome(result).exact
    assert outcome(result).rules == {Rule.INNER_JOIN, Rule.ICEBERG}
    assert "(SELECT * FROM f WHERE (`K` IN" in result.text


def test_without_a_key_nothing_is_read() -> None:
    assert outcome(rewritten(JOINED)).predicate == "FALSE"


def test_neighbours_are_one_range_but_where_rows_lie_in_buckets() -> None:
    keys = [of_k(*range(100, 150))]
    assert "`K` BETWEEN 100 AND 149" in said(keys).sql
    assert "BETWEEN" in said(keys, ["bucket(8, l)", "K"]).sql
    listed = said(keys, ["months(p)", "bucket(8, k)"]).sql
    assert "BETWEEN" not in listed
    assert listed.count(",") == 49


def test_more_keys_than_a_list_may_have_are_several_and_first_of_all_one() -> None:
    sql = said([of_k(*range(0, 3_000, 7))]).sql
    whole, *lists = LIST.findall(sql)
    assert whole.count(",") == 428
    assert [text.count(",") + 1 for text in lists] == [200, 200, 29]
    assert ", ".join(lists) == whole


@pytest.mark.parametrize(("name", "most"), [("K", 600), ("l", 2_000), ("s", 2_000)])
def test_how_many_keys_are_listed_is_a_matter_of_how_spark_looks_them_up(name: str, most: int) -> None:
    column = next(column for column in COLUMNS if column.name == name)
    for count, is_listed in ((most, True), (most + 1, False)):
        values: list[tuple[Key, ...]] = [(f"{7 * n:06}" if name == "s" else 7 * n,) for n in range(count)]
        found = said([restriction([column], values)])
        assert found.exact == is_listed
        assert (found.sql.count("BETWEEN") == 0) == is_listed


def test_keys_that_are_not_listed_leave_out_the_largest_gaps_of_the_files() -> None:
    keys = of_k(*range(0, 1_000, 10), *range(20_000, 30_000, 10))
    files = [(n * 100, n * 100 + 99, 10) for n in range(100)] + [(10_000, 19_999, 500), (20_000, 30_000, 50)]
    found = said([keys], index=index_of(*files))
    assert "BETWEEN 0 AND 990" in found.sql
    assert outcome(rewritten(JOINED, *((k,) for k in range(0, 1_000, 10)), index=index_of(*files))).files


def test_pairs_stay_paired() -> None:
    result = rewritten(PAIRED, (1, 1), (2, 2))
    assert outcome(result).predicate == (
        "(((`K` IN (1) AND `l` IN (1L)) OR (`K` IN (2) AND `l` IN (2L))) OR typeof(`K`) <> 'int'"
        " OR typeof(`l`) <> 'bigint')"
    )


def test_too_many_pairs_are_each_column_by_itself() -> None:
    found = said([restriction(COLUMNS[1:3], [(7 * n, 11 * n) for n in range(100)])])
    assert found.sql.count(" AND ") == 1
    assert [text.count(",") + 1 for text in LIST.findall(found.sql)] == [100, 100]
    assert not found.exact


def test_far_too_many_pairs_are_boxes_of_ranges() -> None:
    rows = [
        (
            f"{n}",
            100,
            1,
            1,
            json.dumps({"k": bounds("int", 700 * n, 700 * n + 699), "l": bounds("bigint", 0, n)}),
            None,
        )
        for n in range(50)
    ]
    index = FileIndex.of_rows(rows, {"k": "int", "l": "bigint"})
    pairs = [restriction(COLUMNS[1:3], [(7 * n, n // 1_000) for n in range(5_000)])]
    found = said(pairs, index=index)
    assert len(found.cover.boxes) > 1
    assert not found.cover.holds({"K": 0, "l": 4})
    for anyway in (found, said(pairs)):
        assert anyway.sql.count("BETWEEN") <= ICEBERG.ranges_max


def test_pairs_are_said_in_the_way_that_the_files_tell_more_of() -> None:
    pairs = restriction(COLUMNS[1:3], [(1_000 * n, 11 * n) for n in range(100)])
    files = index_of(*((n, n + 900, 10) for n in range(0, 100_000, 500)))
    assert said([pairs], index=files).cover.holds({"K": 1_000, "l": 22})


def test_several_restrictions_hold_together() -> None:
    several = [of_k(1, 2, 3), of_k(2, 3, 4), restriction(COLUMNS[2:3], [(7,)])]
    found = said(several)
    assert found.sql == (
        "((`K` BETWEEN 2 AND 3 AND `l` IN (7L)) OR typeof(`K`) <> 'int' OR typeof(`l`) <> 'bigint')"
    )
    assert found.exact


def test_null_matches_null_where_it_may() -> None:
    found = said([restriction(COLUMNS[1:2], [(1,), (None,)])])
    assert found.sql == "((`K` IN (1) OR `K` IS NULL) OR typeof(`K`) <> 'int')"


def test_ranges_of_keys_are_said_as_such() -> None:
    ranges = KeyRanges("int", tuple((n * 1_000, n * 1_000 + 500) for n in range(200)))
    found = outcome(rewritten(JOINED, ranges))
    assert found.predicate is not None
    assert found.predicate.count("BETWEEN") == ICEBERG.ranges_max
    assert found.exact is False


def test_a_condition_that_is_too_long_gives_way_to_a_shorter_one() -> None:
    keys = [of_k(*range(0, 3_000, 7))]
    short = iceberg_predicate(keys, (), None, 2_000)
    assert short is not None
    assert 0 < short.sql.count("BETWEEN") <= ICEBERG.ranges_max
    assert iceberg_predicate(keys, (), None, 10) is None


def test_what_lost_a_key_is_not_said(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = of_k(*range(0, 30_000, 7))
    assert said([keys]).cover.encloses(keys.cover)
    monkeypatch.setattr("rewriter.predicates.iceberg_predicate.widen", lambda *_: of_k(*range(0, 3_000, 7)).cover)
    assert iceberg_predicate([keys], (), None, CHARS_MAX) is None


# 8-4-4-4-12 is how they are written, but Java takes any five hexadecimal numbers.
UUIDS = ["a6a05680-8de1-4a21-b645-5bb15d46be36", "2adc784c-7a54-4b92-9146-72f52f24dd2e", "1-1-1-1-1"]


@pytest.mark.parametrize("uuid", UUIDS)
def test_what_could_be_a_uuid_stands_beside_what_cannot(uuid: str) -> None:
    listed = ", ".join(sorted([repr(uuid), repr("x")]))
    keys = restriction(COLUMNS[3:4], [(uuid,), ("x",)])
    assert said([keys]).sql == f"(`s` IN ({listed}) OR typeof(`s`) <> 'string' OR `s` IN (''))"
    assert "OR `s` IN ('')" not in said([restriction(COLUMNS[3:4], [("2026-01-01",)])]).sql


def test_ranges_and_pairs_of_what_could_be_uuids_stand_beside_what_cannot() -> None:
    ranges = Restriction(COLUMNS[3:4], KeyRanges("string", ((UUIDS[1], UUIDS[0]),)))
    pairs = restriction(COLUMNS[2:4], [(7, "a"), (8, UUIDS[0])])
    for keys in (ranges, pairs):
        assert said([keys]).sql.endswith(" OR `s` IN (''))")


def test_a_small_side_in_iceberg_is_told_from_uuids_whatever_the_fact_is() -> None:
    keys = restriction(COLUMNS[3:4], [(UUIDS[0],)])
    of_partitions = partition_predicate([keys], ["s"], Budget(METASTORES["derby"], CHARS_MAX), {})
    assert of_partitions is not None
    assert of_partitions.sql.endswith(" OR `s` IN (''))")
    of_row_groups = row_group_predicate(keys, None, CHARS_MAX)
    assert of_row_groups is not None
    assert of_row_groups.sql.endswith(" OR `s` IN (''))")
    bucketed = TableFacts(COLUMNS, bucket_columns=("s",), bucket_count=8)
    assert (bucket_predicate(bucketed, keys, CHARS_MAX) or "").endswith(" OR `s` IN (''))")


def test_what_is_left_is_counted_by_the_index() -> None:
    found = outcome(rewritten(JOINED, (5,), index=index_of(*((n, n + 9, 100) for n in range(0, 100, 10)))))
    assert found.files is not None
    assert (found.files.kept, found.files.total, found.files.kept_bytes) == (1, 10, 100)


def test_keys_in_nearly_every_file_narrow_nothing() -> None:
    files = index_of(*((0, 1_000, 100) for _ in range(10)))
    assert outcome(rewritten(JOINED, (5,), index=files)).skip is SkipReason.NOTHING_TO_SKIP
    bucketed = replace(FACT, iceberg=IcebergFacts(1, ("bucket(8, K)",)))
    found = outcome(rewritten(JOINED, (5,), index=files, tables={"f": bucketed, "small": SMALL}))
    assert found.predicate is not None
    assert found.files is None


WIDE = tuple((number, 1_000 - number, 100) for number in range(10))


def test_keys_in_every_file_are_sent_for_their_row_groups_where_files_are_sorted() -> None:
    files = index_of(*WIDE, row_groups=20).with_order_unknown("k")
    found = outcome(rewritten(JOINED, (50,), (900,), index=files))
    assert found.predicate == "(`K` IN (50, 900) OR typeof(`K`) <> 'int')"
    assert found.files is not None
    assert found.row_groups is not None
    assert (found.files.kept, found.row_groups.kept, found.row_groups.total) == (10, 20, 200)


@pytest.mark.parametrize("sorted_by", [None, "v"])
def test_row_groups_in_no_known_order_narrow_nothing(sorted_by: str | None) -> None:
    files = index_of(*WIDE, row_groups=20).with_order_unknown(sorted_by)
    assert outcome(rewritten(JOINED, (500,), index=files)).skip is SkipReason.NOTHING_TO_SKIP


def test_files_in_an_order_have_their_row_groups_in_it_too() -> None:
    # Of two halves each holds a key.
    files = index_of((0, 499, 100), (500, 999, 100), row_groups=10).with_order_unknown(None)
    found = outcome(rewritten(JOINED, (5,), (900,), index=files))
    assert found.row_groups is not None
    assert (found.row_groups.kept, found.row_groups.total) == (2, 20)


@pytest.mark.parametrize("row_groups", [1, None])
def test_files_of_one_row_group_are_read_whole_if_they_hold_keys(row_groups: int | None) -> None:
    files = index_of(*WIDE, row_groups=row_groups).with_order_unknown("k")
    assert outcome(rewritten(JOINED, (500,), index=files)).skip is SkipReason.NOTHING_TO_SKIP


def test_keys_in_nearly_every_row_group_narrow_nothing() -> None:
    files = index_of(*WIDE, row_groups=20).with_order_unknown("k")
    everywhere = [(k,) for k in range(0, 1_000, 20)]
    assert outcome(rewritten(JOINED, *everywhere, index=files)).skip is SkipReason.NOTHING_TO_SKIP


def test_bounds_of_one_of_two_columns_do_not_tell_that_nothing_is_skipped() -> None:
    files = index_of(*((0, 1_000, 100) for _ in range(10)))
    assert outcome(rewritten(PAIRED, (1, 1), (2, 2), index=files)).predicate is not None


def test_columns_of_types_without_keys_are_refused() -> None:
    found = planned("SELECT f.id FROM f JOIN small s ON f.price = s.k WHERE s.g = 1", {"f": FACT, "small": SMALL})
    assert {scan.skip for scan in found.scans if scan.alias == "f"} == {SkipReason.NOT_A_PARTITION_COLUMN}


@pytest.mark.parametrize(
    "name", ["_file", "_pos", "_deleted", "_spec_id", "_partition", "_ROW_ID", "_last_updated_sequence_number"]
)
def test_a_statement_that_names_a_hidden_column_of_icebergs_is_left_alone(name: str) -> None:
    sql = f"SELECT f.id, {name} FROM f JOIN small s ON f.k = s.k WHERE s.g = 1"
    found = planned(sql, {"f": FACT, "small": SMALL})
    assert {scan.skip for scan in found.scans if scan.alias == "f"} == {SkipReason.METADATA_IN_USE}
    assert found.key_queries == ()
    own = replace(FACT, columns=(*COLUMNS, Column(name.lower(), "string")))
    assert planned(sql, {"f": own, "small": SMALL}).key_queries


def test_icebergs_metadata_tables_are_left_alone() -> None:
    files = replace(FACT, full_name=TableName(("ice", "db", "f", "files")))
    found = planned(JOINED.replace("FROM f ", "FROM db.f.files f "), {"db.f.files": files, "small": SMALL})
    assert {scan.skip for scan in found.scans if scan.alias == "f"} == {SkipReason.ICEBERG_METADATA}


@pytest.mark.parametrize(
    "sql", [JOINED, JOINED.replace("f.id", "f.id, input_file_name()")], ids=["rule", "files are shown"]
)
def test_what_is_switched_off_or_shows_files_is_left_alone(sql: str) -> None:
    off = RewriteLimits(rules_off=frozenset({Rule.ICEBERG})) if sql == JOINED else RewriteLimits()
    found = planned(sql, {"f": FACT, "small": SMALL}, off)
    assert found.key_queries == ()
    assert {scan.skip for scan in found.scans if scan.alias == "f"} == {SkipReason.NOT_A_PARTITION_COLUMN}


def test_rules_about_the_file_index_say_nothing_about_iceberg() -> None:
    off = RewriteLimits(rules_off=frozenset({Rule.FILE_HINTS, Rule.RANGE_IN, Rule.BUCKETS}), has_file_index=True)
    assert outcome(rewritten(JOINED, (5,), limits=off)).predicate is not None


def test_with_strict_consistency_keys_that_may_change_are_not_used() -> None:
    found = planned(JOINED, {"f": FACT, "small": SMALL}, RewriteLimits(strict=True))
    assert {scan.skip for scan in found.scans if scan.alias == "f"} == {SkipReason.STRICT_KEYS}


def test_a_filter_of_the_statement_is_icebergs_own_business() -> None:
    sql = "SELECT f.id FROM f JOIN small s ON f.k = s.k WHERE s.g = 1 AND f.l = 7"
    found = planned(sql, {"f": FACT, "small": SMALL}, RewriteLimits(has_file_index=True))
    assert all(scan.own_cover.is_all for scan in found.scans)


def test_the_smaller_of_two_iceberg_tables_is_asked_and_joined_to_what_filters_it() -> None:
    tables = {"f": FACT, "small": SMALL_IN_ICEBERG, "other": SMALL_IN_ICEBERG}
    sql = "SELECT f.id FROM f JOIN small s ON f.k = s.k JOIN other o ON s.l = o.l WHERE o.g = 1"
    queries = [query.sql for query in planned(sql, tables).key_queries]
    assert any("FROM small s JOIN other o" in sql or "small s, other o" in sql for sql in queries), queries
    assert not any("FROM f" in sql for sql in queries)


def test_an_iceberg_table_of_which_no_size_is_known_is_not_asked() -> None:
    tables = {"f": FACT, "small": replace(SMALL_IN_ICEBERG, size_bytes=None)}
    found = planned(JOINED, tables)
    assert {scan.skip for scan in found.scans if scan.alias == "f"} == {SkipReason.SMALL_SIDE_LARGER}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id, K AS key FROM ice.db.f",
        "SELECT id, K AS key FROM ice.db.f UNION ALL SELECT id, K FROM ice.db.f WHERE l = 1",
    ],
    ids=["one table", "a union"],
)
def test_a_view_over_iceberg_tables_is_narrowed_as_they_are(text: str) -> None:
    view = TableFacts(
        (Column("id", "int"), Column("key", "int")),
        kind=TableKind.VIEW,
        view=ViewText(text, ("ice", "db"), ("id", "key")),
    )
    tables = {"f": view, "ice.db.f": FACT, "small": SMALL_IN_ICEBERG}
    sql = JOINED.replace("f.k", "f.key")
    result = rewritten(sql, *((7 * n,) for n in range(300)), tables=tables)
    assert outcome(result).rules == {Rule.INNER_JOIN, Rule.VIEWS, Rule.ICEBERG}
    assert "array_contains" not in result.text
    assert result.text.count(" IN (") == 3


def test_a_view_of_which_one_branch_is_no_iceberg_table_is_left_alone() -> None:
    text = "SELECT id, K AS key FROM ice.db.f UNION ALL SELECT id, p FROM hive.db.parted"
    view = TableFacts(
        (Column("id", "int"), Column("key", "int")),
        kind=TableKind.VIEW,
        view=ViewText(text, ("ice", "db"), ("id", "key")),
    )
    tables = {"f": view, "ice.db.f": FACT, "hive.db.parted": PARTED, "small": SMALL}
    assert planned(JOINED.replace("f.k", "f.key"), tables).key_queries == ()


KEYS = st.sets(st.integers(-100_000, 100_000), max_size=900)
PAIRS = st.sets(st.tuples(st.integers(-50, 5_000), st.integers(0, 50)), max_size=200)
BUCKETS = st.sampled_from([(), ("bucket(4, K)",)])
# A key that may have come as other bytes is none (tests/rewriter/domains/test_keyset.py).
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufffd"), max_size=3)
STRINGS = st.sets(st.sampled_from([*UUIDS, "", "\0", "a", "b-c", "é"]) | TEXTS, max_size=40)
FILES = st.lists(st.tuples(st.integers(-100_000, 100_000), st.integers(0, 9_000), st.integers(1, 99)), max_size=20)


def holds_all(found: Predicate | None, columns: Sequence[Column], rows: Iterable[tuple[Key, ...]]) -> bool:
    names = [column.name for column in columns]
    return found is None or all(found.cover.holds(dict(zip(names, row, strict=True))) for row in rows)


def is_digested(found: Predicate | None) -> bool:
    if found is None:
        return True
    whole_and_lists = [text.count(",") + 1 for text in LIST.findall(found.sql)]
    lists = [count for count in whole_and_lists if count <= ICEBERG_LIST_MAX]
    longer = len(whole_and_lists) - len(lists)
    return longer <= 1 and found.sql.count("BETWEEN") <= max(ICEBERG.ranges_max, ICEBERG_PAIRED_POINTS_MAX)


@laws
@given(KEYS, BUCKETS, FILES)
def test_every_key_is_in_what_is_said_and_iceberg_reads_all_of_it(
    keys: set[int], partitioning: tuple[str, ...], files: list[tuple[int, int, int]]
) -> None:
    index = index_of(*((low, low + width, size) for low, width, size in files))
    for known in (None, index):
        found = iceberg_predicate([of_k(*keys)], partitioning, known, CHARS_MAX)
        assert holds_all(found, COLUMNS[1:2], [(key,) for key in keys])
        assert is_digested(found)


@laws
@given(PAIRS, FILES)
def test_every_pair_is_in_what_is_said(pairs: set[tuple[int, int]], files: list[tuple[int, int, int]]) -> None:
    index = index_of(*((low, low + width, size) for low, width, size in files))
    for known in (None, index):
        found = iceberg_predicate([restriction(COLUMNS[1:3], pairs)], (), known, CHARS_MAX)
        assert holds_all(found, COLUMNS[1:3], pairs)
        assert is_digested(found)


@laws
@given(STRINGS, st.sampled_from([0, 2_000]))
def test_no_text_that_could_be_a_uuid_is_said_without_one_that_cannot(keys: set[str], count: int) -> None:
    rows = [(key,) for key in keys] + [(f"{n:05}",) for n in range(count)]
    found = iceberg_predicate([restriction(COLUMNS[3:4], rows)], (), None, CHARS_MAX)
    assert holds_all(found, COLUMNS[3:4], rows)
    if found is not None and any(key.count("-") >= 4 for key in keys):
        assert " OR `s` IN ('')" in found.sql

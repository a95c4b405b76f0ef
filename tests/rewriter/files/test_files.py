"""Which files a cover misses: never one that holds a matching row, whatever the index says or does not say."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cover_strategies import VALUES, covers, domains_of, laws
from support.file_strategies import TYPE_NAMES, IndexedFile, exact_files, files, index_of, loosened

from rewriter.domains.cover import Box, Cover
from rewriter.domains.domain import Domain
from rewriter.domains.instants import CERTAIN_MIN
from rewriter.domains.literals import Key
from rewriter.files.file_index import FileFacts, FileIndex, FileSelection, file_hint
from rewriter.vocabulary.identifiers import Column

A, B = Column("a", "int"), Column("b", "string")

Span = tuple[int | None, int | None]


def spans(*bounds: Span) -> FileIndex:
    """An index of files by their bounds in `a`; each file is named after them."""
    rows = [
        (
            f"{low}-{high}",
            10,
            1,
            None,
            json.dumps({"a": {"type": "int", "low": _text(low), "high": _text(high)}}),
            "[]",
        )
        for low, high in bounds
    ]
    return FileIndex.of_rows(rows, {"a": "int"})


def _text(value: int | None) -> str | None:
    return None if value is None else str(value)


def keys(*values: Key | None, column: Column = A) -> Cover:
    return Cover.of_rows([column], [(value,) for value in values])


def missed(index: FileIndex, cover: Cover) -> list[str]:
    return [facts.path for facts in index.misses(cover).misses]


def test_a_file_between_two_keys_is_missed() -> None:
    assert missed(spans((10, 14)), keys(1, 5, 9, 15, 23)) == ["10-14"]


def test_a_file_is_kept_if_the_next_key_from_its_low_end_on_is_within_it() -> None:
    index = spans((1, 3), (6, 12), (4, 6), (13, 17))
    assert missed(index, keys(3, 7, 11, 18, 25)) == ["4-6", "13-17"]


def test_a_file_that_ends_where_a_key_is_is_kept() -> None:
    index = spans((1, 5), (5, 9), (1, 4), (6, 9), (5, 5))
    assert missed(index, keys(5)) == ["1-4", "6-9"]


def test_pairs_keep_the_partitions_of_pairs() -> None:
    pairs = [(a, b) for a in (1, 2) for b in ("1", "2")]
    index = index_of([IndexedFile([{"a": a, "b": b, "c": None}]) for a, b in pairs])
    selection = index.misses(Cover.of_rows([A, B], [(1, "1"), (2, "2")]))
    assert [pairs[int(facts.path)] for facts in selection.misses] == [(1, "2"), (2, "1")]
    assert (selection.kept, selection.total, selection.kept_bytes, selection.total_bytes) == (2, 4, 200, 400)


SKEWED = [(10, "a"), (10, "b"), (20, "c")]


def skewed() -> FileIndex:
    """List bucketing: a file for each skewed pair, and 4 for all others, here from 1 to 99 and from a to z."""
    own = [IndexedFile([{"a": a, "b": b, "c": None}]) for a, b in SKEWED]
    others = IndexedFile(
        [{"a": 1, "b": "z", "c": None}, {"a": 99, "b": "a", "c": None}],
        lacks=[{"columns": ["a", "b"], "tuples": [[str(a), b] for a, b in SKEWED]}],
    )
    rows = [facts.indexed(str(number)) for number, facts in enumerate([*own, others], start=1)]
    return FileIndex.of_rows(rows, TYPE_NAMES)


@pytest.mark.parametrize(
    ("cover", "misses"),
    [
        (keys(10), ["3"]),
        (keys("b", column=B), ["1", "3"]),
        (Cover.of_rows([A, B], [(10, "b")]), ["1", "3", "4"]),
        (Cover.of_rows([A, B], [(10, "b"), (20, "c")]), ["1", "4"]),
        (Cover.of_rows([A, B], [(10, "b"), (20, "a")]), ["1", "3"]),
        (Cover.of_rows([A, B], [(30, "z")]), ["1", "2", "3"]),
        (Cover.of_rows([A, B], [(10, "a"), (10, "b"), (20, "a"), (20, "b")]), ["3"]),
        (Cover.of_rows([A, B], [(10, "a"), (10, "b")]), ["3", "4"]),
    ],
    ids=lambda value: None if isinstance(value, Cover) else "misses " + " ".join(value),
)
def test_a_skewed_value_is_read_from_its_own_file(cover: Cover, misses: Sequence[str]) -> None:
    assert missed(skewed(), cover) == misses


def test_a_single_column_of_several_skewed_ones_can_be_anywhere_among_the_others() -> None:
    assert "4" not in missed(skewed(), keys(10))


def test_null_is_in_a_file_unless_the_index_counted_none_beside_its_bounds() -> None:
    said: list[dict[str, object]] = [
        {"low": "5", "high": "5", "nulls": 0},
        {"low": "5", "high": "5", "nulls": 1},
        {"low": "5", "high": "5"},
        {"nulls": 3},
        {"nulls": 0},
        {},
        {"nulls": 4},
        {"low": "5", "nulls": 4},
        {"low": "no number", "nulls": 4},
    ]
    rows = [(str(n), 1, 1, 4, json.dumps({"a": {"type": "int", **s}}), None) for n, s in enumerate(said)]
    index = FileIndex.of_rows(rows, {"a": "int"})
    assert missed(index, Cover.of_domain("a", Domain("int", (), nullable=True))) == ["0"]
    assert missed(index, keys(7, None)) == ["0"]
    # Four nulls in four rows leave no value.
    assert missed(index, keys(7)) == ["0", "1", "2", "6"]
    assert missed(index, Cover.of_domain("a", replace(Domain.all("int"), nullable=False))) == ["6"]


@pytest.mark.parametrize("count", [None, 0, 3, "4", True])
def test_nulls_alone_are_known_by_the_number_of_rows(count: object) -> None:
    row = ("0", 1, 1, count, json.dumps({"a": {"type": "int", "nulls": 4}}), None)
    assert missed(FileIndex.of_rows([row], {"a": "int"}), keys(7)) == []
    assert missed(FileIndex.of_rows([(*row[:3], 4, *row[4:])], {"a": "bigint"}), keys(7)) == []


def test_a_bound_on_one_side_counts_by_itself() -> None:
    index = spans((5, None), (None, 5), (None, None))
    assert missed(index, keys(1)) == ["5-None"]
    assert missed(index, keys(9)) == ["None-5"]


def test_columns_are_found_in_any_case_and_others_keep_every_file() -> None:
    index = spans((1, 2))
    assert missed(index, keys(5, column=Column("A", "int"))) == ["1-2"]
    assert missed(index, keys(5, column=Column("other", "int"))) == []


def test_an_index_knows_which_of_the_columns_are_indexed() -> None:
    row = IndexedFile([{"a": 1, "b": None, "c": None}]).indexed("f")
    types = {"A": "int", "b": "bigint", "c": "boolean", "d": "int"}
    assert dict(FileIndex.of_rows([row], types).type_names) == {"a": "int", "c": "boolean"}
    assert dict(FileIndex.of_rows([], types).type_names) == {}


def test_columns_whose_names_differ_by_case_have_no_bounds() -> None:
    row = IndexedFile([{"a": 1, "b": "b", "c": None}]).indexed("f")
    index = FileIndex.of_rows([row], {"a": "int", "A": "int", "b": "string"})
    assert missed(index, keys(7)) == []
    assert missed(index, keys("c", column=B)) == ["f"]


def test_no_rows_are_asked_of_any_file_and_all_of_each() -> None:
    index = spans((1, 2), (3, 4))
    assert len(missed(index, Cover.none())) == 2
    assert missed(index, Cover.all()) == []


def test_only_files_that_the_partition_predicate_lets_through_are_counted() -> None:
    index = spans((1, 2), (3, 4), (5, 6))
    selection = index.misses(keys(3, 5), among=Cover.of_domain("a", Domain.between("int", 2, 4)))
    assert [facts.path for facts in selection.misses] == ["1-2"]
    assert selection == FileSelection(selection.misses, 1, 10, total=2, total_bytes=20, kept_sizes=(10,))


@pytest.mark.parametrize("held", ["bigint", "string", "double", "string collate UNICODE"])
def test_bounds_of_another_type_than_the_table_has_now_are_none(held: str) -> None:
    rows = [("f", 1, 1, 1, json.dumps({"a": {"type": "int", "low": "1", "high": "2"}}), None)]
    index = FileIndex.of_rows(rows, {"a": held})
    assert missed(index, Cover.of_rows([Column("a", "bigint")], [(7,)])) == []
    assert missed(index, keys(7)) == []


@pytest.mark.parametrize(
    ("type_name", "old", "new"),
    [
        ("timestamp", str(CERTAIN_MIN - 1), str(CERTAIN_MIN)),
        ("timestamp_ntz", "1900-12-31 23:59:59.999999", "1901-01-01 00:00:00"),
    ],
    ids=["instants", "local times"],
)
def test_times_of_other_calendars_are_no_bounds(type_name: str, old: str, new: str) -> None:
    def missed_from(low: str) -> list[str]:
        bounds = {"a": {"type": type_name, "low": low, "high": new, "nulls": 0}}
        index = FileIndex.of_rows([("f", 1, 1, 1, json.dumps(bounds), None)], {"a": type_name})
        return missed(index, Cover.of_domain("a", Domain.between(type_name, None, CERTAIN_MIN - 1_000)))

    assert missed_from(new) == ["f"]
    assert missed_from(old) == []


def test_keys_of_another_type_than_the_columns_keep_every_file() -> None:
    assert missed(spans((1, 2)), keys("7", column=Column("a", "string"))) == []


_GOOD = {"type": "int", "low": "1", "high": "2", "nulls": 0}


@pytest.mark.parametrize(
    "columns",
    [
        *(None, "", "{", "[]", "null", "7", '"a"', "NaN", "[" * 100_000, '{"a":' * 5_000, "x" * (1 << 21)),
        *('{"a": null}', '{"a": []}', '{"a": 7}', '{"A": {"type": "int", "low": "1", "high": "2"}}'),
        *(
            json.dumps({"a": {**_GOOD, **bad}})
            for bad in (
                {"type": None},
                {"type": "INT"},
                {"type": ["int"]},
                {"low": "9"},
                {"low": 1, "high": 2},
                {"low": "one", "high": "two"},
                {"low": "0x1", "high": "1e0"},
                {"low": "-2147483649", "high": "2147483648"},
                {"low": "9" * 5_000, "high": "9" * 5_000},
                {"low": None, "high": None},
            )
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bounds_that_are_not_understood_are_not_known(columns: str | None) -> None:
    index = FileIndex.of_rows([("f", 1, 1, 1, columns, None)], {"a": "int"})
    assert [facts.path for facts in index.files] == ["f"]
    assert missed(index, keys(7)) == []


@pytest.mark.parametrize(
    "row",
    [
        *((), ("f",), (None, 1, 1, 1, None, None), ("f", None, 1, 1, None, None), ("f", 1, None, 1, None, None)),
        *(
            ("f", "1", 1, 1, None, None),
            ("f", True, 1, 1, None, None),
            ("f", 1 << 63, 1, 1, None, None),
            ("f", -1, 1, 1, None, None),
        ),
        *(("\ud800", 1, 1, 1, None, None), ("f", 1, 1.5, 1, None, None), (b"f", 1, 1, 1, None, None)),
    ],
    ids=repr,
)
def test_a_row_that_does_not_say_which_file_it_is_of_is_left_out(row: tuple[object, ...]) -> None:
    assert FileIndex.of_rows([row], {"a": "int"}).files == ()


@pytest.mark.parametrize(
    "lacks",
    [
        *(None, "", "{", "{}", "[7]", "[null]", '[{"columns": ["a"]}]', '[{"columns": [], "tuples": [[]]}]'),
        *(
            json.dumps([{"columns": columns, "tuples": tuples}])
            for columns, tuples in (
                (["a"], [["8"]]),
                (["a"], [[7]]),
                (["a"], [[None]]),
                (["a"], [["7", "7"]]),
                (["a"], ["7"]),
                (["a"], [["seven"]]),
                (["a"], [["7"]] * 10_001),
                (["a", "a"], [["7"]]),
                (["b"], [["7"]]),
                (["z"], [["7"]]),
                ([1], [["7"]]),
                ("a", [["7"]]),
            )
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_lists_that_are_not_understood_lack_nothing(lacks: str | None) -> None:
    index = FileIndex.of_rows(
        [("f", 1, 1, 1, json.dumps({"a": {"type": "int"}}), lacks)], {"a": "int", "b": "int"}
    )
    assert missed(index, keys(7)) == []


def test_a_list_of_a_column_that_had_another_type_lacks_nothing() -> None:
    row = ("f", 1, 1, 1, json.dumps({"a": {"type": "string"}}), '[{"columns": ["a"], "tuples": [["7"]]}]')
    assert missed(FileIndex.of_rows([row], {"a": "string"}), keys("7", column=Column("a", "string"))) == ["f"]
    assert missed(FileIndex.of_rows([row], {"a": "int"}), keys(7)) == []


def test_a_list_says_nothing_of_null_and_nothing_of_other_columns() -> None:
    types = {"a": {"type": "int"}, "b": {"type": "int"}}
    row = ("f", 1, 1, 1, json.dumps(types), '[{"columns": ["a", "b"], "tuples": [["7", "8"]]}]')
    index = FileIndex.of_rows([row], {"a": "int", "b": "int"})
    columns = [A, Column("b", "int")]
    assert missed(index, Cover.of_rows(columns, [(7, 8)])) == ["f"]
    assert missed(index, Cover.of_rows(columns, [(7, 8), (7, None)])) == []
    assert missed(index, keys(7)) == []


def test_lacked_values_are_compared_as_values_and_not_by_their_spelling() -> None:
    row = ("f", 1, 1, 1, '{"d": {"type": "decimal(5,2)"}}', '[{"columns": ["d"], "tuples": [["1.5"], ["02.00"]]}]')
    index = FileIndex.of_rows([row], {"d": "decimal(5,2)"})
    column = Column("d", "decimal(5,2)")
    assert missed(index, keys("1.50", "2", column=column)) == ["f"]
    assert missed(index, keys("1.50", "2.01", column=column)) == []


def test_a_file_of_which_the_index_says_two_things_is_not_known() -> None:
    one, other = (IndexedFile([{"a": a, "b": None, "c": None}]).indexed("f") for a in (1, 2))
    assert FileIndex.of_rows([one, other, one], TYPE_NAMES).files == ()
    assert len(FileIndex.of_rows([one, one], TYPE_NAMES).files) == 1


@laws
@given(files, covers, covers)
def test_a_file_with_a_row_of_the_cover_is_never_missed(
    found: list[IndexedFile], cover: Cover, among: Cover
) -> None:
    index = index_of(found)
    for facts in index.misses(cover).misses:
        assert not any(cover.holds(row) for row in found[int(facts.path)].rows)
    for facts in index.misses(cover, among).misses:
        assert not any(cover.holds(row) for row in found[int(facts.path)].rows)


@laws
@given(exact_files, covers, st.data())
def test_to_know_less_never_misses_more(found: list[IndexedFile], cover: Cover, data: st.DataObject) -> None:
    less = [data.draw(loosened(facts)) for facts in found]
    assert set(missed(index_of(less), cover)) <= set(missed(index_of(found), cover))


@laws
@given(exact_files, domains_of("int", tuple(v for v in VALUES["a"] if isinstance(v, int))))
def test_a_file_is_missed_just_if_no_value_between_its_bounds_is_asked_for(
    found: list[IndexedFile], domain: Domain
) -> None:
    expected = []
    for number, facts in enumerate(found):
        values = [value for row in facts.rows if isinstance(value := row["a"], int)]
        asked = any(map(domain.holds, range(min(values), max(values) + 1))) if values else not facts.rows
        has_null = domain.nullable and len(values) < len(facts.rows)
        expected += [] if asked or has_null else [str(number)]
    box = Box.of({"a": domain})
    cover = Cover.none() if box is None else Cover((box,))
    assert missed(index_of(found), cover) == (expected if box is not None else [str(n) for n in range(len(found))])


@laws
@given(files, covers)
def test_many_boxes_are_looked_up_column_by_column_and_only_keep_more(
    found: list[IndexedFile], cover: Cover
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rewriter.files.file_index.LOOKUPS_MAX", 0)
        roughly = set(missed(index_of(found), cover))
    assert roughly <= set(missed(index_of(found), cover))


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["int", "1", "a", "tuples"]),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["a", "type", "low", "columns", "tuples"]), inner)
    ),
)


@laws
@given(_json, _json)
def test_whatever_is_in_the_index_nothing_is_raised(columns: object, lacks: object) -> None:
    row = ("f", 1, 1, None, json.dumps(columns), json.dumps(lacks))
    index = FileIndex.of_rows([row], {"a": "int"})
    assert index.misses(keys(7)).total == 1


def facts_of(path: str, size_bytes: int) -> FileFacts:
    return FileFacts(path, size_bytes, 17, None, {}, ())


def paths(named: Iterable[FileFacts]) -> list[str]:
    return [facts.path for facts in named]


def test_a_hint_names_path_size_and_time_together() -> None:
    text, named = file_hint([facts_of("file:/t/a", 5)], 1_000)
    assert text.startswith("(_metadata.file_size NOT IN (5L) OR ")
    assert text.endswith(" NOT IN ('file:/t/a|5|17'))")
    assert paths(named) == ["file:/t/a"]


def test_nothing_is_said_of_no_misses_or_where_none_fits() -> None:
    assert file_hint([], 1_000) == ("", ())
    assert file_hint([facts_of("a" * 1_000, 5)], 1_000) == ("", ())


def test_where_not_all_fit_the_largest_files_are_named() -> None:
    misses = [facts_of(f"file:/t/{size}", size) for size in range(10, 100)]
    text, named = file_hint(misses, 500)
    assert paths(named) == [f"file:/t/{size}" for size in range(99, 99 - len(named), -1)]
    assert 400 < len(text) <= 500


def test_a_path_that_is_too_long_leaves_room_for_others() -> None:
    text, named = file_hint([facts_of("a" * 1_000, 9), facts_of("b", 1)], 500)
    assert paths(named) == ["b"]
    assert len(text) <= 500


def test_a_path_whose_bytes_are_not_known_is_not_named() -> None:
    assert paths(file_hint([facts_of("\ufffd", 1), facts_of("b", 1)], 500)[1]) == ["b"]


@pytest.mark.parametrize("path", ["it's", "a\\b", "a$b", "a\nb"])
def test_a_path_that_settings_could_change_the_meaning_of_is_spelled_in_hexadecimal(path: str) -> None:
    text, _ = file_hint([facts_of(path, 1)], 500)
    assert f"CAST(X'{path.encode().hex().upper()}7C317C3137' AS STRING)" in text

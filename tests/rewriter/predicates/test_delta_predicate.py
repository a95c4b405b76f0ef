"""Keys of Delta tables: every key is in what is said, in few comparisons of data columns."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewriter import Column, KeyRanges, KeySet
from rewriter.domains.consumers import DELTA, DELTA_MERGE, DELTA_PARTITION_POINTS_MAX
from rewriter.domains.literals import Key, UnreadableKeyError
from rewriter.predicates.delta_predicate import delta_predicate
from rewriter.predicates.predicate import Predicate, Restriction, require_kept_by_delta

K, DS, N = Column("K", "int"), Column("ds", "string"), Column("n", "decimal(18,2)")
CHARS_MAX = 128 * 1024


def keys_of(*columns: Column, rows: Iterable[tuple[Key | None, ...]]) -> Restriction:
    types = tuple(column.type_name for column in columns)
    return Restriction(columns, KeySet.of(types, rows, null_safe=(True,) * len(types)))


def said(
    *restrictions: Restriction, partitioned_by: tuple[str, ...] = ("DS",), in_merge: bool = False
) -> Predicate:
    found = delta_predicate(restrictions, partitioned_by, CHARS_MAX, in_merge=in_merge)
    assert found is not None
    return found


def comparisons(found: Predicate) -> int:
    return found.sql.count("`K` ")


@given(
    rows=st.lists(st.tuples(st.none() | st.integers(0, 5_000), st.none() | st.text(max_size=3)), max_size=150),
    columns=st.sampled_from([(K,), (DS,), (K, DS)]),
    partitioned_by=st.sampled_from([(), ("DS",), ("k", "ds")]),
)
def test_every_key_is_in_what_is_said(
    rows: list[tuple[int | None, str | None]], columns: tuple[Column, ...], partitioned_by: tuple[str, ...]
) -> None:
    places = [(K, DS).index(column) for column in columns]
    keys = keys_of(*columns, rows=[tuple(row[place] for place in places) for row in rows])
    found = delta_predicate([keys], partitioned_by, CHARS_MAX)
    assert found is None or found.cover.encloses(keys.cover)
    if found is not None and found.exact:
        assert found.cover == keys.cover


def test_a_data_column_is_compared_few_times_however_many_keys_there_are() -> None:
    few = said(keys_of(K, rows=[(key,) for key in range(0, 300, 10)]))
    assert few.exact
    assert comparisons(few) == DELTA.ranges_max == 30
    assert "," not in few.sql, "a list is compared by its least and greatest value alone"
    many = said(keys_of(K, rows=[(key * key,) for key in range(4_000)]))
    assert comparisons(many) <= DELTA.ranges_max
    assert not many.exact


def test_a_merge_gets_few_comparisons_for_it_is_compared_with_each_row_that_is_written_anew() -> None:
    keys = keys_of(K, rows=[(key,) for key in range(0, 300, 10)])
    merged = said(keys, in_merge=True)
    assert merged.cover.encloses(keys.cover)
    assert comparisons(merged) == DELTA_MERGE.ranges_max == 10
    pairs = keys_of(K, DS, rows=[(key, f"d{key}") for key in range(11)])
    apart = said(pairs, partitioned_by=("k", "ds"), in_merge=True)
    assert apart.cover.encloses(pairs.cover)
    assert len(apart.cover.boxes) == 1
    assert apart.sql.count(" IN (") + apart.sql.count(" BETWEEN ") == 2
    few = said(
        keys_of(K, DS, rows=[(key, f"d{key}") for key in range(10)]), partitioned_by=("k", "ds"), in_merge=True
    )
    assert few.exact


def test_a_partition_column_has_its_values_in_one_list() -> None:
    rows: list[tuple[Key, ...]] = [(f"d{key}",) for key in range(DELTA_PARTITION_POINTS_MAX)]
    assert said(keys_of(DS, rows=rows)).sql.count(" IN (") == 1
    assert said(keys_of(DS, rows=[*rows, ("more",)])).sql.count(" IN (") <= DELTA.points_max


def test_pairs_of_a_partition_column_and_another_one_stand_in_conditions_of_their_own() -> None:
    found = said(keys_of(K, DS, rows=[(1, "a"), (9, "b")]))
    assert found.sql.startswith("(((`K` IN (1) OR `K` IN (9)) AND `ds` IN ('a', 'b')) OR typeof(")
    paired = said(keys_of(K, DS, rows=[(1, "a"), (9, "b")]), partitioned_by=())
    assert paired.sql.startswith("(((`K` IN (1) AND `ds` IN ('a')) OR (`K` IN (9) AND `ds` IN ('b'))) OR typeof(")


def test_no_range_is_said_of_decimals_that_a_reader_may_misread() -> None:
    wide = [(f"{key}00000000.00",) for key in range(1, 20)]
    assert "BETWEEN" not in said(keys_of(N, rows=wide)).sql
    many = keys_of(N, rows=[(f"{key}00000000.00",) for key in range(1, 60)])
    assert delta_predicate([many], (), CHARS_MAX) is None


def test_no_key_lets_no_row_through_and_what_is_too_long_is_not_said() -> None:
    assert said(keys_of(K, rows=[])).sql == "FALSE"
    assert delta_predicate([keys_of(K, rows=[(1,)])], (), 10) is None


def test_ranges_of_keys_are_said_as_ranges() -> None:
    ranges = Restriction((K,), KeyRanges("int", ((1, 5), (100, 900))))
    assert said(ranges).sql == "((`K` BETWEEN 1 AND 5 OR `K` BETWEEN 100 AND 900) OR typeof(`K`) <> 'int')"


def test_what_lost_a_key_is_not_said_of_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = keys_of(K, rows=[(key,) for key in range(0, 30_000, 7)])
    assert said(keys).cover.encloses(keys.cover)
    narrow = keys_of(K, rows=[(key,) for key in range(0, 3_000, 7)]).cover
    monkeypatch.setattr("rewriter.predicates.delta_predicate.widen", lambda *_: narrow)
    assert delta_predicate([keys], (), CHARS_MAX) is None


@pytest.mark.parametrize("text", ["x" * 32, "\U0001f600" * 16, "ab "])
def test_a_text_of_which_the_log_may_have_other_bounds_is_no_key_beside_delta(text: str) -> None:
    with pytest.raises(UnreadableKeyError):
        require_kept_by_delta([keys_of(K, DS, rows=[(1, "a"), (2, text)])])
    with pytest.raises(UnreadableKeyError):
        require_kept_by_delta([Restriction((DS,), KeyRanges("string", (("a", text),)))])
    require_kept_by_delta([keys_of(K, DS, rows=[(1, text.strip()[:15]), (2, None)])])

"""Keys as ranges for row groups: every key is in them, and they leave out what the files hold most of."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cover_strategies import laws

from rewriter.domains.consumers import PARQUET
from rewriter.domains.cover import Cover
from rewriter.domains.domain import Domain
from rewriter.domains.keys import Keys
from rewriter.domains.keyset import KeyRanges, KeySet
from rewriter.domains.literals import Key
from rewriter.files.bounds import FileCosts
from rewriter.files.file_index import FileIndex
from rewriter.predicates.data_columns import row_group_predicate
from rewriter.predicates.predicate import Restriction
from rewriter.predicates.splice import is_one_condition
from rewriter.vocabulary.identifiers import Column

K = Column("k", "int")
CHARS_MAX = 10_000


def restriction(*values: int) -> Restriction:
    return Restriction((K,), KeySet.of(("int",), [(value,) for value in values]))


def index_of(*files: tuple[int, int, int]) -> FileIndex:
    """An index of files by their lowest and highest value, and their bytes."""
    said = (
        (
            f"{number}",
            size,
            1,
            1,
            json.dumps({"k": {"type": "int", "low": f"{low}", "high": f"{high}", "nulls": 0}}),
            None,
        )
        for number, (low, high, size) in enumerate(files)
    )
    return FileIndex.of_rows(said, {"k": "int"})


def sql_of(keys: Restriction, index: FileIndex | None = None) -> str | None:
    found = row_group_predicate(keys, index, CHARS_MAX)
    return found.sql if found is not None else None


def said(keys: Sequence[int], index: FileIndex | None = None) -> str | None:
    text = sql_of(restriction(*keys), index)
    return text and text.removesuffix(" OR typeof(`k`) <> 'int')").removeprefix("(")


def test_few_keys_are_listed() -> None:
    assert said([1, 7, 30]) == "`k` IN (1, 7, 30)"


def test_no_list_is_longer_than_parquet_reads_as_such() -> None:
    text = said(range(0, 250, 10))
    assert text is not None
    assert text.count(" IN (") == 3
    assert all(listed.count(",") < 10 for listed in text.split(" IN (")[1:])


def test_more_keys_than_are_listed_are_ranges() -> None:
    text = said(range(0, 100_000, 10))
    assert text is not None
    assert 0 < text.count("BETWEEN") + text.count(" IN (") <= PARQUET.ranges_max


def test_neighbours_are_one_range_and_its_types_are_doubted() -> None:
    keys = restriction(*range(1, 500), *range(1_000, 1_500))
    text = sql_of(keys)
    assert text == "((`k` BETWEEN 1 AND 499 OR `k` BETWEEN 1000 AND 1499) OR typeof(`k`) <> 'int')"
    assert is_one_condition(text)


def test_what_the_session_answered_is_doubted_too() -> None:
    keys = KeySet(("int",), ((1,),), (("current_date()", "DATE'2026-11-20'"),))
    text = sql_of(Restriction((K,), keys))
    assert text == "(`k` IN (1) OR typeof(`k`) <> 'int' OR current_date() <> DATE'2026-11-20')"


def test_gaps_that_hold_most_bytes_are_left_out() -> None:
    # Every 100th value is a key. There is little in the files but between 5,000 and 6,000.
    index = index_of((0, 100_000, 1), (5_000, 6_000, 1_000_000), (150_000, 150_001, 1))
    text = said(range(0, 100_001, 100), index)
    assert text is not None
    kept = ranges_of(text)
    inside = [(low, high) for low, high in kept if low > 5_000 and high < 6_000]
    assert len(inside) >= min(9, PARQUET.ranges_max - 2)
    assert all(low == high for low, high in inside)


def ranges_of(text: str) -> list[tuple[int, int]]:
    found = []
    for term in text.replace("(", " ").replace(")", " ").split("`k`")[1:]:
        numbers = [int(word.strip(",")) for word in term.split() if word.strip(",").isdecimal()]
        found += [(numbers[0], numbers[1])] if "BETWEEN" in term else [(number, number) for number in numbers]
    return found


def test_nothing_is_said_that_lets_every_file_that_is_read_through_whole() -> None:
    keys = range(10, 1_000)
    assert said(keys, index_of((10, 999, 5), (2_000, 3_000, 5))) is None
    assert said(keys, index_of((10, 1_000, 5))) is not None
    assert said(keys, index_of((9, 999, 5))) is not None
    assert said(keys, FileIndex.of_rows([], {})) is not None


def test_nothing_is_said_to_a_table_in_no_order_of_the_column() -> None:
    keys = [10, 500, 900]
    assert said(keys, index_of((1, 990, 5), (7, 1_000, 5), (3, 995, 5))) is None
    assert said(keys, index_of((1, 300, 5), (300, 600, 5), (600, 1_000, 5))) is not None
    assert said(keys, index_of((1, 1_000, 5))) is not None


def test_nothing_is_said_of_no_keys_of_what_is_too_long_or_of_all_values() -> None:
    assert row_group_predicate(restriction(), None, CHARS_MAX) is None
    assert row_group_predicate(restriction(1, 7), None, 30) is None
    every = Restriction(
        (Column("k", "boolean"),), KeySet.of(("boolean",), [(True,), (False,), (None,)], null_safe=(True,))
    )
    assert row_group_predicate(every, None, CHARS_MAX) is None


def test_what_lost_a_key_is_not_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewriter.predicates.data_columns.widen", lambda *_: Cover.of_rows([K], [(1,)]))
    assert row_group_predicate(restriction(1, 7), None, CHARS_MAX) is None


def test_pairs_stay_pairs() -> None:
    columns = (Column("a", "int"), Column("b", "string"))
    keys = KeySet.of(("int", "string"), [(1, "x"), (2, "y")])
    text = sql_of(Restriction(columns, keys))
    assert text is not None
    assert text.startswith("(((`a` IN (1) AND `b` IN ('x')) OR (`a` IN (2) AND `b` IN ('y'))) OR typeof(`a`)")


@pytest.mark.parametrize(
    "keys",
    [KeyRanges("int", ((1, 50), (900, 1_000))), KeyRanges("int", ((1, 50), (900, 1_000)), nullable=True)],
)
def test_ranges_stay_ranges(keys: Keys) -> None:
    text = sql_of(Restriction((K,), keys))
    assert text is not None
    assert "`k` BETWEEN 1 AND 50 OR `k` BETWEEN 900 AND 1000" in text
    assert ("`k` IS NULL" in text) == (isinstance(keys, KeyRanges) and keys.nullable)


_spans = st.tuples(st.integers(0, 400), st.integers(0, 400), st.integers(0, 9)).map(
    lambda s: (min(s[:2]), max(s[:2]), s[2])
)


@laws
@given(st.sets(st.integers(0, 400), min_size=1, max_size=300), st.lists(_spans, max_size=8))
def test_every_key_is_in_what_is_said(keys: set[int], spans: list[tuple[int, int, int]]) -> None:
    text = said(sorted(keys), index_of(*spans))
    if text is not None:
        kept = ranges_of(text)
        assert all(any(low <= key <= high for low, high in kept) for key in keys)


@laws
@given(st.lists(_spans, min_size=1, max_size=8), st.lists(st.integers(-5, 405), max_size=20))
def test_a_files_bytes_lie_between_its_bounds(spans: list[tuple[int, int, int]], asked: list[int]) -> None:
    index = index_of(*spans)
    costs = index.costs("k")
    assert costs is not None
    positions = sorted(asked)
    for position, below in zip(positions, costs.below(positions), strict=True):
        exactly = sum(
            facts.size_bytes * min(1, max(0, (position - low) / (high + 1 - low)))
            for facts in index.files
            for low, high in [(_int(facts.bounds["k"].low), _int(facts.bounds["k"].high))]
        )
        assert exactly - 1 <= below <= exactly + 1e-6


def _int(value: Key | None) -> int:
    assert isinstance(value, int)
    return value


def test_bytes_of_strings_lie_between_their_bounds() -> None:
    column = {"k": {"type": "string", "low": "user-1", "high": "user-3", "nulls": 0}}
    index = FileIndex.of_rows([("f", 1_000, 1, 1, json.dumps(column), None)], {"k": "string"})
    costs = index.costs("K")
    assert isinstance(costs, FileCosts)
    below = costs.below(Domain.of("string", ["a", "user-1", "user-2", "user-3", "z"]).cuts[::2])
    assert below[0] == below[1] == 0
    assert 400 < below[2] < 600
    assert 990 < below[3] <= 1_000
    assert below[4] in (999, 1_000)

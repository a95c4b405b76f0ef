"""What sessions fetch of the file index: what they ask, how often, and for whom it is kept."""

import json
from collections.abc import Sequence

import pytest
from support.file_list_answers import FACTS, FILES, TABLES, Clock, indexed
from support.played_sessions import failed, played, rows

from proxy.config.rewriting import CatalogSection, FilesSection
from proxy.operations.query import FailureKind, QueryResult
from proxy.session.catalog.metadata_cache import MetadataCache, SessionMetadata
from proxy.session.layout.file_lists import FileLists
from proxy.session.session_catalog import Queries, T
from rewriter import Column, TableFacts, TableKind, TableName

X = {"type": "int", "low": "1", "high": "9", "nulls": 0}
A_FILE = rows(("file:/t/a", 100, 7, 10, json.dumps({"x": X}), None))


FIRST = [indexed(), (FILES, A_FILE)]
_KNOWN = "'type', known.type, 'low', known.low, 'high', known.high, 'nulls', known.nulls"
BOUNDS_ALONE = FILES.replace(
    "to_json(columns)", f"to_json(transform_values(columns, (name, known) -> named_struct({_KNOWN})))"
)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lists(clock: Clock) -> FileLists:
    return FileLists(FilesSection(index="s.files"), clock)


@pytest.fixture
def known(clock: Clock) -> SessionMetadata:
    return a_state(clock)


def a_state(clock: Clock, user: str = "ann") -> SessionMetadata:
    return MetadataCache(CatalogSection(), clock).of_nobody_else((user,))


def paths(lists: FileLists, known: SessionMetadata, script: Sequence[tuple[str, QueryResult]]) -> list[str] | None:
    """The files that a session is given once the script's queries have been answered; None where it has none."""
    index = played(lists.files(FACTS, known), script)
    return None if index is None else [facts.path for facts in index.files]


def test_the_files_of_a_table_are_fetched_once(lists: FileLists, known: SessionMetadata) -> None:
    assert paths(lists, known, FIRST) == ["file:/t/a"]
    assert paths(lists, known, []) == ["file:/t/a"]


def test_files_that_were_fetched_are_at_hand_for_the_same_user(
    lists: FileLists, known: SessionMetadata, clock: Clock
) -> None:
    assert lists.at_hand(FACTS, known) is None
    assert paths(lists, known, FIRST) == ["file:/t/a"]
    index = lists.at_hand(FACTS, known)
    assert index is not None
    assert [facts.path for facts in index.files] == ["file:/t/a"]
    assert lists.at_hand(FACTS, a_state(clock)) is None, "it has not heard of the index"
    assert lists.at_hand(TableFacts((Column("x", "string"),), full_name=FACTS.full_name), known) is None


def test_row_groups_of_very_many_files_are_not_asked_for(lists: FileLists, known: SessionMetadata) -> None:
    assert paths(lists, known, [indexed(files=2_001), (BOUNDS_ALONE, A_FILE)]) == ["file:/t/a"]


def test_an_index_that_is_too_large_with_row_groups_is_fetched_without(
    lists: FileLists, known: SessionMetadata
) -> None:
    too_large = (FILES, failed(FailureKind.TOO_MANY_BYTES))
    assert paths(lists, known, [*FIRST[:1], too_large, (BOUNDS_ALONE, A_FILE)]) == ["file:/t/a"]
    assert paths(lists, known, []) == ["file:/t/a"]


def test_without_an_index_nothing_is_asked(known: SessionMetadata, clock: Clock) -> None:
    lists = FileLists(FilesSection(), clock)
    assert paths(lists, known, []) is None
    assert played(lists.columns(FACTS, known), []) == ()


@pytest.mark.parametrize(
    "facts",
    [
        TableFacts((Column("x", "int"),), full_name=TableName(("c", "d", "unknown"))),
        TableFacts((Column("x", "int"),)),
        TableFacts((Column("x", "int"), Column("X", "int")), full_name=FACTS.full_name),
        TableFacts((Column("x", "int"),), kind=TableKind.VIEW, full_name=FACTS.full_name),
    ],
    ids=["not indexed", "nameless", "columns that differ by case", "a view"],
)
def test_of_any_other_table_nothing_is_fetched(
    lists: FileLists, known: SessionMetadata, facts: TableFacts
) -> None:
    _ = played(lists.overview(known), [indexed()])
    assert played(lists.files(facts, known), []) is None
    assert played(lists.columns(facts, known), []) == ()


def test_any_column_may_be_indexed_until_the_files_say_which_are(lists: FileLists, known: SessionMetadata) -> None:
    assert played(lists.columns(FACTS, known), FIRST[:1]) == ("X", "y")
    _ = paths(lists, known, FIRST[1:])
    assert played(lists.columns(FACTS, known), []) == ("X",)


def test_rows_are_fetched_again_once_the_index_says_that_they_changed(
    lists: FileLists, known: SessionMetadata, clock: Clock
) -> None:
    _ = paths(lists, known, FIRST)
    clock.now = 301.0
    assert paths(lists, known, [indexed()]) == ["file:/t/a"]
    clock.now = 602.0
    changed = rows(("file:/t/b", 100, 7, 10, None, None))
    assert paths(lists, known, [indexed(at=6), (FILES, changed)]) == ["file:/t/b"]


def test_rows_that_another_session_fetched_since_are_not_fetched_again(
    lists: FileLists, known: SessionMetadata, clock: Clock
) -> None:
    _ = paths(lists, known, FIRST)
    clock.now = 200.0
    changed = (FILES, rows(("file:/t/b", 100, 7, 10, None, None)))
    assert paths(lists, a_state(clock), [indexed(at=6), changed]) == ["file:/t/b"]
    assert paths(lists, known, []) == ["file:/t/b"]


def test_rows_are_fetched_again_for_a_table_whose_columns_changed(
    lists: FileLists, known: SessionMetadata
) -> None:
    _ = paths(lists, known, FIRST)
    changed = TableFacts((Column("x", "bigint"),), full_name=FACTS.full_name)
    index = played(lists.files(changed, known), [(FILES, A_FILE)])
    assert index is not None
    assert index.files[0].bounds == {}


def test_sessions_of_one_user_share_what_was_fetched(
    lists: FileLists, known: SessionMetadata, clock: Clock
) -> None:
    _ = paths(lists, known, FIRST)
    assert paths(lists, a_state(clock), [indexed()]) == ["file:/t/a"]


def test_what_one_user_may_read_another_one_may_not(
    lists: FileLists, known: SessionMetadata, clock: Clock
) -> None:
    _ = paths(lists, known, FIRST)
    bobs = a_state(clock, "bob")
    assert paths(lists, bobs, [indexed(), (FILES, failed(FailureKind.REJECTED))]) is None


def test_a_session_that_a_client_may_have_bent_fetches_for_itself_alone(
    lists: FileLists, known: SessionMetadata, clock: Clock
) -> None:
    _ = paths(lists, known, FIRST)
    one, other = (MetadataCache(CatalogSection(), clock).of_nobody_else() for _ in range(2))
    bent = rows(("file:/t/b", 100, 7, 10, None, None))
    assert paths(lists, one, [indexed(), (FILES, bent)]) == ["file:/t/b"]
    assert paths(lists, known, []) == ["file:/t/a"]
    assert paths(lists, other, FIRST) == ["file:/t/a"]


def test_who_may_not_read_the_index_is_not_asked_again_for_a_while(
    lists: FileLists, known: SessionMetadata, clock: Clock
) -> None:
    assert paths(lists, known, [(TABLES, failed(FailureKind.REJECTED))]) is None
    assert paths(lists, known, []) is None
    clock.now = 301.0
    assert paths(lists, known, FIRST) == ["file:/t/a"]


@pytest.mark.parametrize("kind", list(FailureKind))
def test_rows_that_cannot_be_had_are_not_asked_for_again_for_a_while(
    lists: FileLists, known: SessionMetadata, clock: Clock, kind: FailureKind
) -> None:
    tries = [(FILES, failed(kind))]
    if kind is FailureKind.TOO_MANY_BYTES:
        tries.append((BOUNDS_ALONE, failed(kind)))
    assert paths(lists, known, [*FIRST[:1], *tries]) is None
    assert paths(lists, known, []) is None
    assert played(lists.columns(FACTS, known), []) == ()
    clock.now = 301.0
    assert paths(lists, known, [indexed(), (FILES, A_FILE)]) == ["file:/t/a"]


def test_a_table_with_too_many_files_counts_as_not_indexed(known: SessionMetadata, clock: Clock) -> None:
    lists = FileLists(FilesSection(index="s.files", files_max=9), clock)
    assert paths(lists, known, [indexed(files=10)]) is None
    assert paths(lists, known, []) is None


def test_of_many_tables_those_used_last_are_kept(known: SessionMetadata, clock: Clock) -> None:
    lists = FileLists(FilesSection(index="s.files", files_kept_max=3), clock)
    other = TableFacts(FACTS.columns, full_name=TableName(("c", "d", "other")))
    of_other = (FILES.replace("d.t", "d.other"), A_FILE)
    assert paths(lists, known, FIRST) == ["file:/t/a"]
    assert played(lists.files(other, known), [of_other]) is not None
    assert played(lists.files(other, known), []) is not None
    assert paths(lists, known, FIRST[1:]) == ["file:/t/a"]
    assert played(lists.files(other, known), [of_other]) is not None


def begun(queries: Queries[T]) -> Queries[T]:
    """Queries whose first answer is still to come."""
    _ = next(queries)
    return queries


def test_while_one_session_fetches_rows_others_go_on_without(
    lists: FileLists, known: SessionMetadata, clock: Clock
) -> None:
    other = a_state(clock)
    for state in (known, other):
        _ = played(lists.columns(FACTS, state), [indexed()])
    fetching = begun(lists.files(FACTS, known))
    assert paths(lists, other, []) is None
    fetching.close()
    assert paths(lists, other, [(FILES, A_FILE)]) == ["file:/t/a"]


def test_while_one_session_asks_again_what_is_indexed_others_go_on_with_what_was(
    lists: FileLists, known: SessionMetadata, clock: Clock
) -> None:
    _ = paths(lists, known, FIRST)
    clock.now = 301.0
    asking = begun(lists.overview(known))
    assert paths(lists, known, []) == ["file:/t/a"]
    asking.close()


def test_the_bounds_of_the_configuration_reach_the_queries(known: SessionMetadata, clock: Clock) -> None:
    settings = FilesSection(index="c.s.files", query_deadline_s=3.0, files_max=7, fetch_bytes_max=2048)
    queries = FileLists(settings, clock).files(FACTS, known)
    assert "FROM `c`.`s`.`files` GROUP" in next(queries).sql
    asked = queries.send(rows(("c.d.t", 1, 100, 5)))
    assert (asked.rows_max, asked.bytes_max, asked.deadline_s, asked.needs_slot) == (7, 2048, 3.0, True)


def test_a_statement_names_an_indexed_table_by_a_word_of_its_own_name(
    lists: FileLists, known: SessionMetadata
) -> None:
    named = [("c.d.t", 1, 1, 1), ("c.d.odd-name", 1, 1, 1), ("c.d.-", 1, 1, 1), ("damaged", None, 1, 1)]
    overview = played(lists.overview(known), [(TABLES, rows(*named))])
    assert overview.is_named_in("SELECT * FROM D.T WHERE x = 1")
    assert overview.is_named_in("SELECT * FROM `odd-name`")
    assert not overview.is_named_in("SELECT * FROM d.other WHERE c = 1")
    assert overview.tables.keys() == {"c.d.t", "c.d.odd-name", "c.d.-"}

"""What sessions fetch of the file index: what they ask, how often, and for whom it is kept."""

import json
from typing import Any

import pytest
from support.clock import Clock
from support.file_list_answers import FACTS, FILES, TABLES, indexed
from support.played_sessions import Script, failed, played, rows

from proxy.config.rewriting import CatalogSection, FilesSection
from proxy.operations.query import FailureKind, ask_driver
from proxy.session.catalog.metadata_cache import MetadataCache, SessionMetadata
from proxy.session.layout.file_lists import FileLists
from rewriter import Column, TableFacts, TableKind, TableName

X = {"type": "int", "low": "1", "high": "9", "nulls": 0}
A_FILE = rows(("file:/t/a", 100, 7, 10, json.dumps({"x": X}), None))
CHANGED = (FILES, rows(("file:/t/b", 100, 7, 10, None, None)))
FIRST = [indexed(), (FILES, A_FILE)]
_KNOWN = "'type', known.type, 'low', known.low, 'high', known.high, 'nulls', known.nulls"
BOUNDS_ALONE = FILES.replace(
    "to_json(columns)", f"to_json(transform_values(columns, (name, known) -> named_struct({_KNOWN})))"
)


class Fetching:
    """A process that fetches the file index, and what a session of ann's has heard of it."""

    def __init__(self, **settings: Any) -> None:
        self.clock = Clock()
        self.lists = FileLists(FilesSection(**{"index": "s.files", **settings}), self.clock)
        self.known = self.a_state()

    def a_state(self, *users: str) -> SessionMetadata:
        return MetadataCache(CatalogSection(), self.clock).of_nobody_else(users or ("ann",))

    def paths(self, script: Script, known: SessionMetadata | None = None) -> list[str] | None:
        """The files that a session is given once the queries have been answered; None where it has none."""
        index = played(self.lists.files(ask_driver, FACTS, known or self.known), script)
        return None if index is None else [facts.path for facts in index.files]


@pytest.fixture
def on() -> Fetching:
    return Fetching()


def test_files_are_fetched_once_and_at_hand_then_for_the_same_user(on: Fetching) -> None:
    assert on.lists.last(FACTS, on.known) is None
    assert on.paths(FIRST) == ["file:/t/a"]
    assert on.paths([]) == ["file:/t/a"]
    index = on.lists.last(FACTS, on.known)
    assert index is not None
    assert [facts.path for facts in index.files] == ["file:/t/a"]
    assert on.lists.last(FACTS, on.a_state()) is None, "it has not heard of the index"
    assert on.lists.last(TableFacts((Column("x", "string"),), full_name=FACTS.full_name), on.known) is None


def test_row_groups_of_very_many_files_are_not_asked_for(on: Fetching) -> None:
    assert on.paths([indexed(files=2_001), (BOUNDS_ALONE, A_FILE)]) == ["file:/t/a"]


def test_an_index_that_is_too_large_with_row_groups_is_fetched_without(on: Fetching) -> None:
    too_large = (FILES, failed(FailureKind.TOO_MANY_BYTES))
    assert on.paths([*FIRST[:1], too_large, (BOUNDS_ALONE, A_FILE)]) == ["file:/t/a"]
    assert on.paths([]) == ["file:/t/a"]


def test_without_an_index_nothing_is_asked() -> None:
    on = Fetching(index="")
    assert on.paths([]) is None
    assert played(on.lists.columns(ask_driver, FACTS, on.known), []) == ()


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
def test_of_any_other_table_nothing_is_fetched(on: Fetching, facts: TableFacts) -> None:
    _ = played(on.lists.overview(ask_driver, on.known), [indexed()])
    assert played(on.lists.files(ask_driver, facts, on.known), []) is None
    assert played(on.lists.columns(ask_driver, facts, on.known), []) == ()


def test_any_column_may_be_indexed_until_the_files_say_which_are(on: Fetching) -> None:
    assert played(on.lists.columns(ask_driver, FACTS, on.known), FIRST[:1]) == ("X", "y")
    _ = on.paths(FIRST[1:])
    assert played(on.lists.columns(ask_driver, FACTS, on.known), []) == ("X",)


def test_rows_are_fetched_again_once_the_index_says_that_they_changed(on: Fetching) -> None:
    _ = on.paths(FIRST)
    on.clock.now = 301.0
    assert on.paths([indexed()]) == ["file:/t/a"]
    on.clock.now = 602.0
    assert on.paths([indexed(at=6), CHANGED]) == ["file:/t/b"]


def test_rows_that_another_session_fetched_since_are_not_fetched_again(on: Fetching) -> None:
    _ = on.paths(FIRST)
    on.clock.now = 200.0
    assert on.paths([indexed(at=6), CHANGED], on.a_state()) == ["file:/t/b"]
    assert on.paths([]) == ["file:/t/b"]


def test_rows_are_fetched_again_for_a_table_whose_columns_changed(on: Fetching) -> None:
    _ = on.paths(FIRST)
    changed = TableFacts((Column("x", "bigint"),), full_name=FACTS.full_name)
    index = played(on.lists.files(ask_driver, changed, on.known), [(FILES, A_FILE)])
    assert index is not None
    assert index.files[0].bounds == {}


def test_sessions_of_one_user_share_what_was_fetched_and_another_one_may_not_read_it(on: Fetching) -> None:
    _ = on.paths(FIRST)
    assert on.paths([indexed()], on.a_state()) == ["file:/t/a"]
    bobs = on.a_state("bob")
    assert on.paths([indexed(), (FILES, failed(FailureKind.REJECTED))], bobs) is None


def test_a_session_that_a_client_may_have_bent_fetches_for_itself_alone(on: Fetching) -> None:
    _ = on.paths(FIRST)
    one, other = (MetadataCache(CatalogSection(), on.clock).of_nobody_else() for _ in range(2))
    assert on.paths([indexed(), CHANGED], one) == ["file:/t/b"]
    assert on.paths([]) == ["file:/t/a"]
    assert on.paths(FIRST, other) == ["file:/t/a"]


def test_who_may_not_read_the_index_is_not_asked_again_for_a_while(on: Fetching) -> None:
    assert on.paths([(TABLES, failed(FailureKind.REJECTED))]) is None
    assert on.paths([]) is None
    on.clock.now = 301.0
    assert on.paths(FIRST) == ["file:/t/a"]


@pytest.mark.parametrize("kind", list(FailureKind))
def test_rows_that_cannot_be_had_are_not_asked_for_again_for_a_while(on: Fetching, kind: FailureKind) -> None:
    tries = [(FILES, failed(kind))]
    if kind is FailureKind.TOO_MANY_BYTES:
        tries.append((BOUNDS_ALONE, failed(kind)))
    assert on.paths([*FIRST[:1], *tries]) is None
    assert on.paths([]) is None
    assert played(on.lists.columns(ask_driver, FACTS, on.known), []) == ()
    on.clock.now = 301.0
    assert on.paths([indexed(), (FILES, A_FILE)]) == ["file:/t/a"]


def test_a_table_with_too_many_files_counts_as_not_indexed() -> None:
    on = Fetching(files_max=9)
    assert on.paths([indexed(files=10)]) is None
    assert on.paths([]) is None


def test_of_many_tables_those_used_last_are_kept() -> None:
    on = Fetching(files_kept_max=3)
    other = TableFacts(FACTS.columns, full_name=TableName(("c", "d", "other")))
    of_other = (FILES.replace("d.t", "d.other"), A_FILE)
    assert on.paths(FIRST) == ["file:/t/a"]
    assert played(on.lists.files(ask_driver, other, on.known), [of_other]) is not None
    assert played(on.lists.files(ask_driver, other, on.known), []) is not None
    assert on.paths(FIRST[1:]) == ["file:/t/a"]
    assert played(on.lists.files(ask_driver, other, on.known), [of_other]) is not None


def test_while_one_session_fetches_rows_others_go_on_without(on: Fetching) -> None:
    other = on.a_state()
    for state in (on.known, other):
        _ = played(on.lists.columns(ask_driver, FACTS, state), [indexed()])
    fetching = on.lists.files(ask_driver, FACTS, on.known)
    assert fetching.send(None).sql == FILES
    assert on.paths([], other) is None
    fetching.close()
    assert on.paths([(FILES, A_FILE)], other) == ["file:/t/a"]


def test_while_one_session_asks_again_what_is_indexed_others_go_on_with_what_was(on: Fetching) -> None:
    _ = on.paths(FIRST)
    on.clock.now = 301.0
    asking = on.lists.overview(ask_driver, on.known)
    assert asking.send(None).sql == TABLES
    assert on.paths([]) == ["file:/t/a"]
    asking.close()


def test_the_bounds_of_the_configuration_reach_the_queries(on: Fetching) -> None:
    settings = FilesSection(index="c.s.files", query_deadline_s=3.0, files_max=7, fetch_bytes_max=2048)
    queries = FileLists(settings, on.clock).files(ask_driver, FACTS, on.known)
    assert "FROM `c`.`s`.`files` GROUP" in queries.send(None).sql
    asked = queries.send(rows(("c.d.t", 1, 100, 5)))
    assert (asked.rows_max, asked.bytes_max, asked.deadline_s, asked.needs_slot) == (7, 2048, 3.0, True)


def test_a_statement_names_an_indexed_table_by_a_word_of_its_own_name(on: Fetching) -> None:
    named = [("c.d.t", 1, 1, 1), ("c.d.odd-name", 1, 1, 1), ("c.d.-", 1, 1, 1), ("damaged", None, 1, 1)]
    overview = played(on.lists.overview(ask_driver, on.known), [(TABLES, rows(*named))])
    assert overview.is_named_in("SELECT * FROM D.T WHERE x = 1")
    assert overview.is_named_in("SELECT * FROM `odd-name`")
    assert not overview.is_named_in("SELECT * FROM d.other WHERE c = 1")
    assert overview.tables.keys() == {"c.d.t", "c.d.odd-name", "c.d.-"}

"""Answers that did not come in time are asked for again soon: a server that was busy, or cold, tells them then."""

from contextlib import suppress

import pytest
from support.clock import Clock
from support.file_list_answers import FACTS, FILES, indexed
from support.packing_answers import FILES as PLAN
from support.packing_answers import SETTINGS as PACKING_SETTINGS
from support.packing_answers import T, nothing_known
from support.played_sessions import (
    DESCRIBE,
    KEYS,
    MANY_KEYS,
    NARROWED,
    SETTINGS,
    SQL,
    WITHIN,
    Script,
    failed,
    played,
    sent,
)
from support.played_sessions import LISTED as PARTITIONS
from support.text_session import FINISHED, Stage, TextSession

from proxy.config.rewriting import CatalogSection, FilesSection
from proxy.operations.query import FailureKind, ask_driver
from proxy.session.catalog.answers import ANSWERS_MAX
from proxy.session.catalog.late_answers import UNANSWERED_S, LateNames
from proxy.session.catalog.metadata_cache import MetadataCache
from proxy.session.catalog.split_packing import PackingTerms, packings
from proxy.session.explain.view import view
from proxy.session.layout.file_lists import FileLists
from rewriter import TableName

LATE = FailureKind.DEADLINE, FailureKind.BUSY
REFUSED = tuple(kind for kind in FailureKind if kind not in LATE)
DEADLINE_S = CatalogSection().query_deadline_s


@pytest.fixture
def stage() -> Stage:
    return Stage()


def unanswered(number: int, kind: FailureKind = FailureKind.DEADLINE) -> Script:
    """The descriptions up to one that fails."""
    return [*DESCRIBE[:number], (DESCRIBE[number][0], failed(kind))]


@pytest.mark.parametrize("kind", LATE)
@pytest.mark.parametrize("number", [0, 1])
def test_the_next_statement_asks_again_for_a_description_that_was_late(
    stage: Stage, number: int, kind: FailureKind
) -> None:
    one = stage.session()
    assert sent(one.rewrite(SQL), unanswered(number, kind)) == SQL
    assert sent(one.rewrite(SQL), [*DESCRIBE[number:], KEYS]) == NARROWED


def test_a_description_that_is_late_once_in_a_while_is_always_asked_for_again_at_once(stage: Stage) -> None:
    one = stage.session()
    for _ in range(3):
        assert sent(one.rewrite(SQL), unanswered(0)) == SQL
        assert sent(one.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
        stage.now += CatalogSection().facts_ttl_s


@pytest.mark.parametrize("kind", REFUSED)
def test_a_description_that_was_refused_is_believed(stage: Stage, kind: FailureKind) -> None:
    one = stage.session()
    assert sent(one.rewrite(SQL), unanswered(1, kind)) == SQL
    assert sent(one.rewrite(SQL), []) == SQL
    assert "DESCRIPTION_LATE" not in str(view(played(one.explain(SQL, run_key_queries=True), [])))


def test_explain_says_that_a_description_was_late(stage: Stage) -> None:
    found = view(played(stage.session().explain(SQL, run_key_queries=True), unanswered(0)))
    assert (found.changed, found.skip_reason) == (False, "DESCRIPTION_LATE")
    late = next(scan for scan in found.scans if scan.table == "d")
    assert late.skip_reason == "DESCRIPTION_LATE"


def test_a_late_description_costs_a_statement_one_deadline_and_not_one_for_each_of_its_tables(
    stage: Stage,
) -> None:
    three = SQL.replace("WHERE", "JOIN c ON f.id = c.id WHERE")
    late = [("DESCRIBE TABLE EXTENDED `c`", failed(FailureKind.DEADLINE))]
    assert sent(stage.session().rewrite(three), late) == three


def test_what_is_late_does_not_keep_the_rest_from_being_narrowed(stage: Stage) -> None:
    one = stage.session()
    assert sent(one.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    three = SQL.replace("WHERE", "JOIN slow ON f.id = slow.id WHERE")
    late = [("DESCRIBE TABLE EXTENDED `slow`", failed(FailureKind.DEADLINE))]
    narrowed = NARROWED.replace("WHERE d.g", "JOIN slow ON f.id = slow.id WHERE d.g")
    assert sent(one.rewrite(three), [*late, KEYS]) == narrowed


def test_a_description_that_is_late_again_and_again_is_waited_for_half_of_the_time_at_most(stage: Stage) -> None:
    one, asked = stage.session(), 0
    seconds = 600
    while stage.now < seconds:
        found = [sql for sql in asked_in_vain(one) if sql.startswith("DESCRIBE")]
        asked += len(found)
        stage.now += 1.0 + DEADLINE_S * len(found)
    assert 2 <= asked <= seconds / DEADLINE_S / 2


def asked_in_vain(session: TextSession) -> list[str]:
    """The queries of a statement whose queries are never answered in time."""
    queries, asked = session.rewrite(SQL), []
    with suppress(StopIteration):
        query = queries.send(None)
        while True:
            asked.append(query.sql)
            query = queries.send(SETTINGS[1] if query.sql == SETTINGS[0] else failed(FailureKind.DEADLINE))
    return asked


def test_a_name_is_left_alone_for_ever_longer_until_it_is_told() -> None:
    clock, name = Clock(), TableName(("d",))
    late = LateNames(clock, waited_s=5.0, longest_s=12.0)
    for pause_s in (0.0, 5.0, 10.0, 12.0, 12.0):
        late.missed(name)
        if pause_s:
            clock.now += pause_s - 0.1
            assert late.is_left_alone(name)
            clock.now += 0.1
        assert not late.is_left_alone(name)
    late.came(name)
    late.missed(name)
    assert not late.is_left_alone(name)


def test_of_many_late_names_the_last_ones_are_remembered() -> None:
    late, names = LateNames(Clock(), 5.0, 60.0), [TableName((str(number),)) for number in range(ANSWERS_MAX + 1)]
    for name in [*names, *names]:
        late.missed(name)
    assert [late.is_left_alone(name) for name in (names[0], names[-1])] == [False, False]
    for name in names[1:]:
        late.missed(name)
    assert [late.is_left_alone(name) for name in (names[0], names[-1])] == [False, True]


def test_a_late_description_teaches_the_cost_gate_nothing(stage: Stage) -> None:
    one = stage.session()
    for number in (0, 1):
        played(one.rewrite(SQL), unanswered(number)).on_outcome(FINISHED)
    assert sent(one.rewrite(SQL), [*DESCRIBE[1:], KEYS]) == NARROWED
    found = view(played(one.explain(SQL, run_key_queries=False), [PARTITIONS]))
    assert found.cost_report is not None
    assert found.cost_report.startswith("It was not seen before")


# --- what else is asked of a busy server


@pytest.mark.parametrize("kind", LATE)
def test_a_late_list_of_partitions_is_asked_for_again_after_a_minute(stage: Stage, kind: FailureKind) -> None:
    one = stage.session()
    assert WITHIN not in sent(one.rewrite(SQL), [*DESCRIBE, MANY_KEYS, (PARTITIONS[0], failed(kind))])
    stage.now += UNANSWERED_S
    assert WITHIN in sent(one.rewrite(SQL), [*DESCRIBE, MANY_KEYS, PARTITIONS])


@pytest.mark.parametrize("kind", LATE)
def test_a_file_index_that_was_late_is_asked_again_after_a_minute(kind: FailureKind) -> None:
    clock = Clock()
    lists = FileLists(FilesSection(index="s.files"), clock)
    known = MetadataCache(CatalogSection(), clock).of_nobody_else()
    assert played(lists.files(ask_driver, FACTS, known), [(indexed()[0], failed(kind))]) is None
    assert played(lists.files(ask_driver, FACTS, known), []) is None
    clock.now += UNANSWERED_S
    assert played(lists.files(ask_driver, FACTS, known), [indexed(), (FILES, failed(kind))]) is None
    clock.now += UNANSWERED_S
    assert played(lists.files(ask_driver, FACTS, known), [(FILES, failed(FailureKind.REJECTED))]) is None
    clock.now += UNANSWERED_S
    assert played(lists.files(ask_driver, FACTS, known), []) is None


def test_how_files_are_packed_is_asked_again_after_a_minute_where_that_was_late() -> None:
    clock = Clock()
    known = nothing_known(clock)

    def found(script: Script) -> bool:
        return bool(
            played(packings(ask_driver, [T], known, PackingTerms(believed_s=300.0, deadline_s=5.0)), script)
        )

    late = failed(FailureKind.DEADLINE)
    assert not found([(PACKING_SETTINGS[0][0], late)])
    clock.now += UNANSWERED_S
    assert not found([*PACKING_SETTINGS, (PLAN[0], late)])
    assert not found([])
    clock.now += UNANSWERED_S
    assert found([PLAN])

"""A session's decisions, as a dialogue: what it asks, what it is answered, what it sends."""

import json
from dataclasses import replace

import pytest
from support.played_sessions import (
    DESCRIBE,
    DETAILS,
    KEY_QUERY,
    KEYS,
    LISTED,
    MANY_KEYS,
    NARROWED,
    SQL,
    WITHIN,
    D,
    F,
    Script,
    begun,
    failed,
    of,
    played,
    rows,
    sent,
)
from support.spark_3_views import spark_3_view
from support.text_session import FINISHED, Stage, TextSession

from proxy.config.config import Config
from proxy.config.rewriting import CatalogSection, RewriteSection
from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.operations.query import FailureKind, QueryResult, Rows
from proxy.operations.session_port import SessionOpening
from proxy.operations.spark_versions import FILTER_REFUSED
from proxy.session.decision import Decision
from proxy.session.explain.text import text
from proxy.session.explain.view import view
from proxy.session.layout.open_store import open_store
from proxy.session.layout.partition_store import ListKey
from proxy.session.shared_state import SharedState
from rewriter.semijoins.key_query import KeyColumn
from rewriter.semijoins.range_query import key_ranges_query

# What is asked where keys come too often.
DISTINCT_KEY_QUERY = KEY_QUERY.replace("SELECT", "SELECT DISTINCT")
RANGE_QUERY = key_ranges_query(
    source="d", key="d.`ds`", column=KeyColumn("string"), filters=["d.g = 1"], ranges_max=200
).sql
ANN = SessionOpening(owner="a", user="ann", login="ann")


def session() -> TextSession:
    return of(Config())


def test_a_star_join_is_described_asked_for_its_keys_and_rewritten_and_a_second_one_asks_for_its_keys_alone() -> (
    None
):
    one = session()
    assert sent(one.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    assert sent(one.rewrite(SQL), [KEYS]) == NARROWED


def described_as(name: str, answer: QueryResult) -> tuple[str, QueryResult]:
    return f"DESCRIBE TABLE EXTENDED {name}", answer


def test_the_tables_behind_a_view_are_described_by_the_names_that_the_view_means() -> None:
    view = rows(
        ("ds", "string", ""),
        ("g", "int", ""),
        DETAILS[0],
        ("Type", "VIEW", ""),
        ("View Text", "SELECT * FROM days", ""),
        ("View Catalog and Namespace", "spark_catalog.other", ""),
        ("View Query Output Columns", "[`ds`, `g`]", ""),
    )
    script = [described_as("`d`", view), DESCRIBE[1], described_as("`spark_catalog`.`other`.`days`", D), KEYS]
    one = session()
    assert sent(one.rewrite(SQL), script) == NARROWED
    assert sent(one.rewrite(SQL), [KEYS]) == NARROWED


def temporary_view(text: str) -> list[tuple[str, QueryResult]]:
    described = {
        "view_text": text,
        "view_catalog_and_namespace": "spark_catalog.default",
        "view_query_output_columns": ["ds", "g"],
    }
    return [
        described_as("`d`", rows(("ds", "string", ""), ("g", "int", ""))),
        described_as("`d` AS JSON", rows((json.dumps(described),))),
        DESCRIBE[1],
    ]


REJECTED = failed(FailureKind.REJECTED)


@pytest.mark.parametrize(
    ("in_session", "narrowed"),
    [
        ([described_as("`days`", D)], NARROWED),
        # It may be another temporary view.
        ([described_as("`days`", REJECTED)], SQL),
        (
            [
                described_as("`days`", rows(("ds", "string", ""))),
                described_as("`days` AS JSON", REJECTED),
                ("SHOW TABLE EXTENDED LIKE 'days'", REJECTED),
            ],
            SQL,
        ),
    ],
)
def test_a_name_in_a_temporary_view_is_looked_up_in_the_session_too(in_session: Script, narrowed: str) -> None:
    found = described_as("`spark_catalog`.`default`.`days`", D)
    keys = [KEYS] if narrowed == NARROWED else []
    script = [*temporary_view("SELECT * FROM days"), *in_session, found, *keys]
    assert sent(session().rewrite(SQL), script) == narrowed


@pytest.mark.parametrize(
    ("is_temporary", "then", "narrowed"),
    [(True, [described_as("`days`", D)], NARROWED), (False, [], SQL), (None, [], SQL)],
)
def test_a_temporary_view_of_spark_3_is_known_by_another_question_or_left_alone(
    is_temporary: bool | None,  # noqa: FBT001
    then: Script,
    narrowed: str,
) -> None:
    described, as_json, fact = temporary_view("")
    shown = REJECTED if is_temporary is None else rows(("", "d", is_temporary, spark_3_view("d", "ds, g")))
    found = [described_as("`spark_catalog`.`default`.`days`", D), KEYS] if then else []
    script = [described, (as_json[0], REJECTED), ("SHOW TABLE EXTENDED LIKE 'd'", shown), fact, *then, *found]
    assert sent(session().rewrite(SQL), script) == narrowed


def test_a_session_that_has_seen_a_view_of_spark_3_asks_about_another_one_as_spark_3_is_asked() -> None:
    described, as_json, fact = temporary_view("")
    shown = ("SHOW TABLE EXTENDED LIKE 'd'", rows(("", "d", True, spark_3_view("d", "ds, g"))))
    days = [described_as("`days`", D), described_as("`spark_catalog`.`default`.`days`", D)]
    one = session()
    assert sent(one.rewrite(SQL), [described, (as_json[0], REJECTED), shown, fact, *days, KEYS]) == NARROWED
    other = [
        described_as("`e`", described[1]),
        ("SHOW TABLE EXTENDED LIKE 'e'", rows(("", "e", True, spark_3_view("e", "ds, g")))),
        (KEY_QUERY.replace("FROM d", "FROM e AS d"), KEYS[1]),
    ]
    through = ("JOIN d", "JOIN e AS d")
    assert sent(one.rewrite(SQL.replace(*through)), other) == NARROWED.replace(*through)


def test_tables_that_are_more_than_a_session_keeps_are_described_once() -> None:
    config = Config(rewrite=RewriteSection(), catalog=CatalogSection(tables_max=1))
    assert sent(of(config).rewrite(SQL), DESCRIBE) == SQL


@pytest.mark.parametrize(
    "statement",
    ["USE other", "SET x=1", "CREATE TEMPORARY VIEW d AS SELECT 1, 2", "drop table d", "/* select */ USE y"],
)
def test_after_a_statement_that_may_change_what_names_mean_the_tables_are_described_again(statement: str) -> None:
    one = session()
    sent(one.rewrite(SQL), [*DESCRIBE, KEYS])
    dispatch = played(one.rewrite(statement), [])
    assert dispatch.text == statement
    dispatch.on_outcome(FINISHED)
    assert sent(one.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED


@pytest.mark.parametrize(
    ("statement", "again"),
    [
        ("CREATE TABLE x AS SELECT * FROM f JOIN d ON f.id = d.ds", []),
        ("INSERT OVERWRITE x SELECT * FROM d", []),
        ("CREATE OR REPLACE VIEW v AS SELECT * FROM d", []),
        ("MERGE INTO db.x USING d ON x.ds = d.ds WHEN MATCHED THEN DELETE", []),
        ("INSERT INTO f SELECT 1", [DESCRIBE[1]]),
        ("INSERT INTO db.D SELECT * FROM f", [DESCRIBE[0]]),
        ("MERGE INTO db.d USING f ON f.ds = d.ds WHEN MATCHED THEN DELETE", [DESCRIBE[0]]),
    ],
)
def test_after_a_statement_that_says_what_it_writes_that_alone_is_described_again(
    statement: str, again: Script
) -> None:
    stage = Stage()
    one, other = stage.stranger(), stage.stranger()
    for each in (one, other):
        sent(each.rewrite(SQL), [*DESCRIBE, KEYS])
    played(one.rewrite(statement), []).on_outcome(FINISHED)
    assert sent(one.rewrite(SQL), [*again, KEYS]) == NARROWED
    assert sent(other.rewrite(SQL), [KEYS]) == NARROWED


@pytest.mark.parametrize("statement", ["SELECT 1", "SHOW TABLES", "(SELECT 1)", "describe d", "-- why\nSELECT 1"])
def test_a_statement_that_reads_only_costs_no_query(statement: str) -> None:
    one = session()
    sent(one.rewrite(SQL), [*DESCRIBE, KEYS])
    assert sent(one.rewrite(statement), []) == statement
    assert sent(one.rewrite(SQL), [KEYS]) == NARROWED


@pytest.mark.parametrize(
    "answer",
    [
        *map(failed, (FailureKind.REJECTED, FailureKind.DEADLINE, FailureKind.UNREADABLE)),
        # Keys of another type than they say.
        *(rows((1, "string")), rows((1.0, "string"))),
    ],
)
def test_a_key_query_that_fails_or_says_nonsense_leaves_the_statement_as_it_is(answer: QueryResult) -> None:
    assert sent(session().rewrite(SQL), [*DESCRIBE, (KEY_QUERY, answer)]) == SQL


@pytest.mark.parametrize("kind", [FailureKind.TOO_MANY_ROWS, FailureKind.TOO_MANY_BYTES])
def test_where_there_are_too_many_keys_ranges_are_asked_for(kind: FailureKind) -> None:
    days = [("2026-01-01", "2026-01-31"), ("2026-05-01", "2026-05-02")]
    ranges = rows(*((low, "string", high, "string") for low, high in days))
    narrowed = NARROWED.replace(
        "`ds` IN ('a')",
        "(`ds` BETWEEN '2026-01-01' AND '2026-01-31' OR `ds` BETWEEN '2026-05-01' AND '2026-05-02')",
    )
    too_many: Script = [(KEY_QUERY, failed(kind)), (DISTINCT_KEY_QUERY, failed(kind))]
    one = session()
    assert sent(one.rewrite(SQL), [*DESCRIBE, *too_many, (RANGE_QUERY, ranges)]) == narrowed
    # It is known by now that there are too many.
    assert sent(one.rewrite(SQL), [(RANGE_QUERY, ranges)]) == narrowed


def test_keys_that_come_again_and_again_are_asked_for_distinct() -> None:
    one = session()
    distinct = (DISTINCT_KEY_QUERY, KEYS[1])
    many: Script = [(KEY_QUERY, failed(FailureKind.TOO_MANY_ROWS))]
    assert sent(one.rewrite(SQL), [*DESCRIBE, *many, distinct]) == NARROWED
    assert sent(one.rewrite(SQL), [distinct]) == NARROWED


@pytest.mark.parametrize("kind", list(FailureKind))
def test_a_range_query_that_fails_leaves_the_statement_as_it_is(kind: FailureKind) -> None:
    too_many = [(sql, failed(FailureKind.TOO_MANY_ROWS)) for sql in (KEY_QUERY, DISTINCT_KEY_QUERY)]
    assert sent(session().rewrite(SQL), [*DESCRIBE, *too_many, (RANGE_QUERY, failed(kind))]) == SQL


def test_where_many_keys_lie_among_the_partitions_they_are_a_range() -> None:
    found = sent(session().rewrite(SQL), [*DESCRIBE, MANY_KEYS, LISTED])
    assert found == NARROWED.replace("`ds` IN ('a')", WITHIN)


def test_a_list_of_partitions_that_cannot_be_had_changes_nothing_and_is_not_asked_for_again() -> None:
    one, unlisted = session(), (LISTED[0], failed(FailureKind.DEADLINE))
    text = sent(one.rewrite(SQL), [*DESCRIBE, MANY_KEYS, unlisted])
    assert "'2026-01-27', '2026-01-28') OR typeof" in text
    assert sent(one.rewrite(SQL), [MANY_KEYS]) == text


def test_sessions_of_one_user_share_a_list_until_a_statement_writes_the_table() -> None:
    with open_store(CatalogSection()) as store:
        shared = SharedState.of(Config(), lambda: 0.0, store)
        one, other = (TextSession(shared, ANN) for _ in range(2))
        narrowed = sent(one.rewrite(SQL), [*DESCRIBE, MANY_KEYS, LISTED])
        assert WITHIN in narrowed
        assert sent(other.rewrite(SQL), [MANY_KEYS]) == narrowed
        assert sent(other.rewrite("INSERT INTO x SELECT * FROM f"), []).startswith("INSERT")
        assert sent(one.rewrite(SQL), [MANY_KEYS]) == narrowed
        assert sent(other.rewrite("ALTER TABLE f ADD PARTITION (ds = 'z')"), []).startswith("ALTER")
        assert sent(one.rewrite(SQL), [*DESCRIBE, MANY_KEYS, LISTED]) == narrowed


def test_a_statement_that_runs_for_hours_keeps_no_room_in_the_store() -> None:
    settings = CatalogSection(store_bytes_max=256 * 1024)
    with open_store(settings) as store:
        of_ann = TextSession(SharedState.of(Config(), lambda: 0.0, store))
        dispatch = played(of_ann.rewrite(SQL), [*DESCRIBE, MANY_KEYS, LISTED])
        assert WITHIN in dispatch.text
        specs = [f"ds={number}" for number in range(500)]
        replaced = [store.put(ListKey(("bob",), ("f",)), ["ds"], ["string"], specs) for _ in range(50)]
        assert all(replaced)
        dispatch.on_outcome(Outcome(OutcomeKind.FINISHED, 36_000.0))


def test_another_user_is_not_shown_the_list() -> None:
    with open_store(CatalogSection()) as store:
        shared = SharedState.of(Config(), lambda: 0.0, store)
        bob, for_bob = SessionOpening(owner="b", user="bob", login="bob"), replace(ANN, owner="c", user="bob")
        for opening in (ANN, bob, for_bob):
            _ = sent(TextSession(shared, opening).rewrite(SQL), [*DESCRIBE, MANY_KEYS, LISTED])
        _ = sent(TextSession(shared, replace(ANN, owner="another backend")).rewrite(SQL), [*DESCRIBE, MANY_KEYS])


@pytest.mark.parametrize("kind", list(FailureKind))
def test_a_table_that_cannot_be_described_leaves_the_statement_as_it_is(kind: FailureKind) -> None:
    assert sent(session().rewrite(SQL), [DESCRIBE[0], (DESCRIBE[1][0], failed(kind))]) == SQL


@pytest.mark.parametrize("keys", [rows(("a", "string collate UTF8_LCASE")), rows((1, "int"))])
def test_for_keys_of_another_type_than_the_catalog_named_the_partitions_are_asked_about(keys: Rows) -> None:
    listed = [(LISTED[0], rows(("ds=a",), ("ds=b",)))]
    values = "(VALUES ('a'), ('b')) AS f(`ds`)"
    asked = (
        f"SELECT f.`ds` AS key, typeof(f.`ds`) AS type FROM {values}, d"
        " WHERE 'starpruner' IS NOT NULL AND (d.g = 1)"
    )
    matches = (f"{asked} AND (f.ds = d.ds) LIMIT 3", rows(("b", "string")))
    found = sent(session().rewrite(SQL), [*DESCRIBE, (KEY_QUERY, keys), *listed, matches])
    kept = "(`ds` < 'a' OR `ds` > 'a' OR `ds` IS NULL)"
    predicate = f"(array_contains(array(TRUE), {kept}) OR typeof(`ds`) <> 'string')"
    assert found == SQL.replace("FROM f", f"FROM (SELECT * FROM f WHERE {predicate}) AS f")


@pytest.mark.parametrize("answer", [rows(("..", "false")), rows(("..", "true")), REJECTED, rows()])
@pytest.mark.parametrize("identifiers", ["false", "<undefined>"], ids=["known", "Spark 3.3"])
def test_a_text_that_the_sessions_quoting_decides_about_asks_for_it_once(
    identifiers: str, answer: QueryResult
) -> None:
    is_usual = answer == rows(("..", "false"))
    quoting = [
        ("SET spark.sql.ansi.doubleQuotedIdentifiers", rows(("..", identifiers))),
        ("SET spark.sql.parser.escapedStringLiterals", answer),
    ]
    one, sql = session(), SQL + ' AND f.id <> "1"'
    for asked in (quoting + DESCRIBE * is_usual, []):
        keys = [KEYS] * is_usual
        assert sent(one.rewrite(sql), [*asked, *keys]) == (NARROWED + ' AND f.id <> "1"' if is_usual else sql)


FUNCTIONS = "SHOW SYSTEM FUNCTIONS"


@pytest.mark.parametrize("answer", [rows(("abs",), ("len",)), rows(("abs",)), REJECTED])
def test_a_function_that_older_servers_lack_is_asked_for_once(answer: QueryResult) -> None:
    one, sql = session(), SQL + " AND len(d.n) = 1"
    key_query = KEY_QUERY.replace("(d.g = 1)", "(d.g = 1) AND (len(d.n) = 1)")
    d = replace(D, rows=(("n", "string", ""), *D.rows))
    is_spark_s = isinstance(answer, Rows) and ("len",) in answer.rows
    for asked in ([(DESCRIBE[0][0], d), DESCRIBE[1], (FUNCTIONS, answer)], []):
        keys = [(key_query, KEYS[1])] * is_spark_s
        assert sent(one.rewrite(sql), [*asked, *keys]) == (NARROWED + " AND len(d.n) = 1" if is_spark_s else sql)


def test_the_limits_of_the_configuration_reach_the_queries() -> None:
    config = Config(
        rewrite=RewriteSection(key_rows_max=7, key_query_deadline_s=2.0, key_query_bytes_max=2048),
        catalog=CatalogSection(query_deadline_s=3.0),
    )
    queries = of(config).rewrite(SQL)
    assert begun(queries).deadline_s == 3.0
    queries.send(D)
    asked = queries.send(F)
    assert asked.sql.endswith("LIMIT 8")
    assert (asked.rows_max, asked.deadline_s, asked.bytes_max) == (7, 2.0, 2048)


def explained(*, run_key_queries: bool, partitions: QueryResult) -> Decision:
    script = [*DESCRIBE, *[KEYS] * run_key_queries, (LISTED[0], partitions)]
    return played(session().explain(SQL, run_key_queries=run_key_queries), script)


def test_explain_counts_the_partitions_that_are_kept() -> None:
    decision = explained(run_key_queries=True, partitions=rows(("ds=a",), ("ds=b",), ("ds=c",)))
    found = view(decision)
    assert found.changed
    assert found.rewritten == NARROWED
    fact, dimension = found.scans
    assert (fact.partitions.total, fact.partitions.kept, fact.exact) == (3, 1, True)
    assert [(r.columns, r.join, r.key_query, r.keys) for r in fact.reducers] == [
        (["ds"], "f.ds = d.ds", KEY_QUERY, 1)
    ]
    assert dimension.skip_reason == "NOT_PARTITIONED"
    assert found.timings_ms == {"catalog": 750.0, "key_queries": 250.0, "total": 0.0}
    assert "partitions   1 of 3 kept" in text(found)


def test_explain_lists_the_partitions_once_that_its_keys_are_said_by() -> None:
    found = view(played(session().explain(SQL, run_key_queries=True), [*DESCRIBE, MANY_KEYS, LISTED]))
    assert (found.scans[0].partitions.total, found.scans[0].partitions.kept) == (31, 28)


def test_explain_without_key_queries_says_what_it_would_ask() -> None:
    found = view(explained(run_key_queries=False, partitions=failed(FailureKind.DEADLINE)))
    assert not found.changed
    assert found.scans[0].skip_reason == "KEYS_NOT_ASKED"
    assert found.scans[0].reducers[0].keys is None
    assert (found.scans[0].partitions.total, found.scans[0].partitions.kept) == (None, None)


def test_explain_of_what_does_not_parse_is_an_answer() -> None:
    found = view(played(session().explain("SELECT FROM , (", run_key_queries=True), []))
    assert (found.changed, found.skip_reason, found.scans) == (False, "DOES_NOT_PARSE", [])
    assert found.skip_sentence is not None
    assert found.skip_sentence in text(found)
    assert "Cause: at line 1, column 15: `SELECT FROM , (`" in text(found)
    long = view(played(session().explain(f"SELECT FROM , ({' ' * 20_000}", run_key_queries=True), []))
    assert (long.skip_reason, long.cause) == ("DOES_NOT_PARSE", None)


MANY_DAYS = (KEY_QUERY, rows(*((f"2026-01-{day:02}", "string") for day in range(1, 29, 2))))


@pytest.mark.parametrize(
    ("end", "is_lowered"),
    [(OutcomeKind.FAILED, True), (OutcomeKind.RECOVERED, True), (OutcomeKind.FAILED_TWICE, False)],
)
def test_a_metastore_that_refused_filters_of_a_table_is_sent_nothing_of_it(
    end: OutcomeKind, *, is_lowered: bool
) -> None:
    """One dispatch that ends four times: FAILED_TWICE is the statement's own failure."""
    one = session()
    dispatch = played(one.rewrite(SQL), [*DESCRIBE, MANY_DAYS])
    assert "array_contains" not in dispatch.text
    for _ in range(4):
        dispatch.on_outcome(
            Outcome(end, 1.0, f"[{FILTER_REFUSED[-1]}] Failed to get partition metadata by filter")
        )
    said_again = sent(one.rewrite(SQL), [MANY_DAYS])
    assert ("array_contains" in said_again) is is_lowered
    assert not (is_lowered and "BETWEEN" in said_again)


@pytest.mark.parametrize(("sql", "may_fall_back"), [(SQL, True), (f"INSERT INTO other {SQL}", False)])
def test_only_a_statement_that_writes_nothing_may_be_run_again(sql: str, may_fall_back: bool) -> None:  # noqa: FBT001
    dispatch = played(session().rewrite(sql), [*DESCRIBE, KEYS])
    assert dispatch.text != sql
    assert dispatch.may_fall_back is may_fall_back

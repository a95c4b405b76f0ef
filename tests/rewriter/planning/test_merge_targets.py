"""MERGE: the target is narrowed by the keys of its source, and a clause fails for keys that were not asked for."""

from dataclasses import replace

import pytest
from support.narrowed_merges import COLUMNS, SOURCE, TARGET

from rewriter import (
    Column,
    IcebergFacts,
    KeyQuery,
    Keys,
    KeySet,
    Plan,
    RewriteLimits,
    Rule,
    SkipReason,
    TableFacts,
    TableName,
    apply,
    parse,
    plan,
)
from rewriter.catalog.table_facts import DeltaFacts
from rewriter.predicates.splice import CheckClause, rewritten_text

DELTA = TableFacts(COLUMNS, provider="delta", delta=DeltaFacts(("ds",)), indexed_columns=("id", "ds"))
LIMITS = RewriteLimits(merge_tables=frozenset({TARGET}))
UPSERT = "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
MERGE = f"MERGE INTO t USING src s ON t.ds = s.ds {UPSERT}"
DAYS = "(t.`ds` IN ('d1') OR typeof(t.`ds`) <> 'string') AND "
RAISED = "THEN raise_error(concat('starpruner: ', 'the keys have changed since they were read')) ELSE FALSE END)"


def is_new(key: str) -> str:
    """The condition on a day that was not asked for."""
    return f"(typeof({key}) NOT IN ('string') OR ({key} IS NOT NULL AND ({key} IN ('d1')) IS NOT TRUE))"


def planned(
    sql: str, target: TableFacts = DELTA, limits: RewriteLimits = LIMITS, source: TableFacts | None = None
) -> Plan:
    statement = parse(sql, chars_max=10_000)
    assert not isinstance(statement, SkipReason)
    return plan(statement, {TARGET: target, SOURCE: source or TableFacts(COLUMNS, size_bytes=1)}, limits)


def rewritten(sql: str, target: TableFacts = DELTA) -> str:
    found = planned(sql, target)
    answers: dict[KeyQuery, Keys] = {
        asked: KeySet(("string",), (("d1",),)) for asked in found.key_queries if len(asked.columns) == 1
    }
    return apply(found, answers, LIMITS).text


def test_on_gets_a_condition_and_a_clause_fails_for_other_keys() -> None:
    check = f"WHEN NOT MATCHED AND (CASE WHEN {is_new('(s.ds)')} {RAISED} THEN INSERT * "
    assert rewritten(MERGE) == MERGE.replace("t.ds =", f"{DAYS}t.ds =").replace("WHEN NOT", f"{check}WHEN NOT")
    assert planned(MERGE).key_queries[0].sql == (
        "SELECT DISTINCT s.`ds` AS key, typeof(s.`ds`) AS type FROM src s LIMIT 5001"
    )


@pytest.mark.parametrize(
    ("sql", "conjunct", "key", "action"),
    [
        # Clauses are told from the WHEN of a CASE, and the copy ends with its clause.
        (
            (
                "MERGE INTO t USING src s ON CASE WHEN s.v > 1 THEN t.v = 1 END AND t.ds = s.ds WHEN MATCHED AND"
                " CASE WHEN s.v > 1 THEN TRUE END THEN DELETE WHEN NOT MATCHED BY TARGET AND s.v > 1 THEN INSERT"
                " (id, ds) VALUES (s.id, CASE WHEN s.v > 2 THEN 'a' END) WHEN NOT MATCHED THEN INSERT * ;"
            ),
            "CASE WHEN s.v > 1 THEN t.v = 1",
            "(s.ds)",
            "INSERT (id, ds) VALUES (s.id, CASE WHEN s.v > 2 THEN 'a' END)",
        ),
        # The key is the client's text of the other side.
        (
            (
                "MERGE INTO t AS x USING (SELECT * FROM src) y ON (x.ds = concat(y.ds, ''))"
                " WHEN NOT MATCHED THEN INSERT *"
            ),
            "x.ds = concat",
            "(concat(y.ds, ''))",
            "INSERT *",
        ),
        ("WITH s AS (SELECT * FROM src) " + MERGE.replace("src s", "s"), "t.ds =", "(s.ds)", "INSERT *"),
    ],
)
def test_each_part_goes_where_it_belongs(sql: str, conjunct: str, key: str, action: str) -> None:
    table = "x" if " x " in sql else "t"
    check = f"WHEN NOT MATCHED AND (CASE WHEN {is_new(key)} {RAISED} THEN {action} "
    wanted = sql.replace(conjunct, DAYS.replace("t.", f"{table}.") + conjunct).replace(
        "WHEN NOT", f"{check}WHEN NOT", 1
    )
    assert rewritten(sql) == wanted


def test_rows_that_on_leaves_out_by_themselves_have_any_key() -> None:
    merge = MERGE.replace("t.ds = s.ds", "t.ds = s.ds AND s.v > 1")
    assert f"(CASE WHEN {is_new('(s.ds)')} AND (s.v > 1) THEN" in rewritten(merge)


@pytest.mark.parametrize(
    "on",
    [
        # A null key, which a column that is never null cannot be compared with.
        "t.ds <=> s.ds",
        "(t.ds = s.ds OR (t.ds IS NULL AND s.ds IS NULL))",
        # Names of the target mean nothing in the clause, or a field of the source.
        "t.ds = concat(t.v, s.ds)",
        "t.ds = s.ds AND t.ds = t.v",
        "t.ds = s.ds AND concat('a', t.v) = t.ds",
        # Spark may know that no row of the target is left, and cannot plan that.
        "t.ds = s.ds AND t.ds = 'd8'",
        "t.ds = s.ds AND (t.ds >= 'd8' OR t.v = 1)",
        # One of two equalities would be the other one's key.
        "t.ds = s.ds AND t.ds = concat(s.ds, '')",
    ],
)
def test_a_column_that_the_check_cannot_tell_is_left_alone(on: str) -> None:
    merge = MERGE.replace("t.ds = s.ds", on)
    found = planned(merge)
    result = apply(found, {asked: KeySet(("string",), (("d1",),)) for asked in found.key_queries}, LIMITS)
    assert result.text == merge
    assert result.scans[0].skip is not None


@pytest.mark.parametrize("limit", ["t.ds >= 'd8'", "t.ds = 'd8'", "t.ds = concat(s.ds, '')"])
def test_of_several_columns_those_are_narrowed_that_the_check_can_tell(limit: str) -> None:
    merge = MERGE.replace("t.ds = s.ds", f"{limit} AND t.id = s.id AND t.ds = s.ds")
    found = planned(merge)
    assert [[column.type_name for column in asked.columns] for asked in found.key_queries] == [["int"]]
    text = apply(found, {found.key_queries[0]: KeySet(("int",), ((7,),))}, LIMITS).text
    assert f"(t.`id` IN (7) OR typeof(t.`id`) <> 'int') AND {limit} AND" in text
    assert "((s.id) IN (7)) IS NOT TRUE" in text
    assert not planned(merge.replace("t.id =", "t.ds =")).key_queries


def test_a_source_without_a_key_narrows_nothing() -> None:
    found = planned(MERGE)
    result = apply(found, {asked: KeySet(("string",), ()) for asked in found.key_queries}, LIMITS)
    assert (result.text, result.scans[0].skip) == (MERGE, SkipReason.MERGE_UNCHECKED)


def test_no_clause_stands_before_the_check() -> None:
    columns = (*COLUMNS, Column("then", "int"))
    merge = (
        "MERGE INTO t USING src s ON t.ds = s.ds WHEN NOT MATCHED AND s.then = 1 THEN INSERT *"
        " WHEN NOT MATCHED THEN INSERT *"
    )
    assert refusal(planned(merge, source=TableFacts(columns))) is None
    behind = merge.index("WHEN NOT MATCHED THEN")
    clauses = [CheckClause(at, "(FALSE)", "INSERT *") for at in (merge.index("WHEN"), behind)]
    statement = parse(merge, chars_max=1_000)
    assert not isinstance(statement, SkipReason)
    assert [rewritten_text(statement, [clause]) is not None for clause in clauses] == [True, False]


def refusal(found: Plan) -> SkipReason | None:
    """Why the target stays as it is."""
    return next(scan.skip for scan in found.scans if scan.reference.name == TARGET)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        # Nothing would fail for a row of the source that lost its partner.
        ("MERGE INTO t USING src s ON t.ds = s.ds WHEN MATCHED THEN DELETE", "MERGE_UNCHECKED"),
        (f"MERGE INTO t USING src s ON t.ds = s.ds OR t.id = s.id {UPSERT}", "NO_EQUALITY"),
        (f"MERGE INTO t USING src s ON NOT t.ds = s.ds {UPSERT}", "NO_EQUALITY"),
        (f"MERGE INTO t USING src s ON t.ds = t.v {UPSERT}", "OWN_FILTERS_ALONE"),
        (f"MERGE INTO t USING (SELECT * FROM src LIMIT 3) s ON t.ds = s.ds {UPSERT}", "REDUCER_NOT_UNDERSTOOD"),
        (
            f"MERGE INTO t USING (SELECT rand() AS v, ds FROM src) s ON t.ds = s.ds {UPSERT}",
            "REDUCER_NOT_UNDERSTOOD",
        ),
    ],
    ids=["matched rows alone", "under or", "under not", "of the target alone", "any three rows", "chance"],
)
def test_a_target_is_left_alone(sql: str, reason: str) -> None:
    assert refusal(planned(sql)) is SkipReason[reason]
    assert rewritten(sql) == sql


def test_only_tables_that_are_named_are_narrowed_and_only_in_formats_that_undo_a_failed_merge() -> None:
    others = RewriteLimits(merge_tables=frozenset({TableName(("other",))}))
    assert refusal(planned(MERGE, limits=others)) is SkipReason.MERGE_OFF
    every = RewriteLimits(merge_tables=frozenset({TableName(("*",))}))
    assert refusal(planned(MERGE, limits=every)) is None
    assert not planned(MERGE, limits=RewriteLimits()).scans
    assert not planned(MERGE, limits=replace(every, rules_off=frozenset({Rule.MERGE}))).scans
    strict = planned(MERGE, limits=replace(every, strict=True))
    answers = dict.fromkeys(strict.key_queries, KeySet(("string",), (("d1",),)))
    assert apply(strict, answers, replace(every, strict=True)).text == rewritten(MERGE), "it has its check always"
    assert refusal(planned(MERGE, TableFacts(COLUMNS, ("ds",)))) is SkipReason.PROVIDER
    iceberg = replace(DELTA, provider="iceberg", delta=None, iceberg=IcebergFacts(1, ("ds",)))
    assert rewritten(MERGE, iceberg) == rewritten(MERGE)


def test_with_strict_consistency_a_target_is_narrowed_by_keys_that_may_change_and_has_its_check() -> None:
    strict = replace(LIMITS, strict=True)
    found = planned(MERGE, limits=strict)
    answers = dict.fromkeys(found.key_queries, KeySet(("string",), (("d1",),)))
    assert apply(found, answers, strict).text == rewritten(MERGE)


def test_a_source_as_large_as_the_target_is_not_asked() -> None:
    large = TableFacts(COLUMNS, size_bytes=1_000)
    assert refusal(planned(MERGE, replace(DELTA, size_bytes=999), source=large)) is SkipReason.SMALL_SIDE_LARGER
    assert refusal(planned(MERGE, replace(DELTA, size_bytes=1_001), source=large)) is None


def test_the_source_is_never_narrowed_by_the_target() -> None:
    partitioned = TableFacts((*COLUMNS, Column("g", "int")), ("ds",))
    for target in (replace(DELTA, size_bytes=1), DELTA):
        found = planned(
            f"MERGE INTO t USING src s ON t.ds = s.ds AND t.v = 1 {UPSERT}", target, source=partitioned
        )
        assert not found.key_queries

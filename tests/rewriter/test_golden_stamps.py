"""A stamp says that exactly this ran with equal answers: all else that a case may depend on takes it away."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from support.golden_cases import refusals, takes
from support.golden_sets import FILES, ICEBERG, LISTED, PLAIN, GoldenSet
from support.stamps import Execution, Stamps
from switches import first_key_lost

EXECUTION = Execution(
    mode="plain",
    statement="SELECT f.v FROM fact f JOIN dim d ON f.ds = d.ds",
    rewritten="SELECT f.v FROM (SELECT * FROM fact WHERE ds IN ('a')) f JOIN dim d ON f.ds = d.ds",
    key_queries=(("SELECT DISTINCT ds AS key FROM dim", (("a",),)),),
    tables=("CREATE TABLE fact (v INT, ds STRING)", "INSERT INTO fact VALUES (1, 'a')"),
    settings={"spark.sql.shuffle.partitions": "1"},
    spark="spark-core_2.13-4.3.0",
)

CHANGES: Mapping[str, Execution] = {
    "another mode": replace(EXECUTION, mode="files"),
    "another statement": replace(EXECUTION, statement=f"{EXECUTION.statement} "),
    "another text by the rewriter": replace(EXECUTION, rewritten=EXECUTION.rewritten.replace("'a'", "'b'")),
    "another key query": replace(EXECUTION, key_queries=(("SELECT ds AS key FROM dim", (("a",),)),)),
    "another answer of a key query": replace(
        EXECUTION, key_queries=(("SELECT DISTINCT ds AS key FROM dim", (("b",),)),)
    ),
    "null in an answer, and not the word": replace(
        EXECUTION, key_queries=(("SELECT DISTINCT ds AS key FROM dim", ((None,),)),)
    ),
    "another table": replace(EXECUTION, tables=("CREATE TABLE fact (v BIGINT, ds STRING)", EXECUTION.tables[1])),
    "another row": replace(EXECUTION, tables=(EXECUTION.tables[0], "INSERT INTO fact VALUES (2, 'a')")),
    "another setting": replace(EXECUTION, settings={"spark.sql.shuffle.partitions": "2"}),
    "another version of Spark": replace(EXECUTION, spark="spark-core_2.13-4.3.1"),
}


def stamps(known: Mapping[str, Execution], *, all_due: bool = False) -> Stamps:
    """Stamps of executions."""
    found = Stamps(Path("no such file"), all_due)
    for case, execution in known.items():
        found.came_out_equal(case, execution)
    found.known = found.found
    return found


def test_what_ran_with_equal_answers_is_not_due_again() -> None:
    assert not stamps({"case": EXECUTION}).is_due("case", EXECUTION)


def test_every_input_is_changed_here() -> None:
    before = vars(EXECUTION)
    changed = {name for other in CHANGES.values() for name, value in vars(other).items() if value != before[name]}
    assert changed == set(before)


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_input_is_due(change: str) -> None:
    assert CHANGES[change].stamp != EXECUTION.stamp
    assert stamps({"case": EXECUTION}).is_due("case", CHANGES[change])


def test_a_case_without_a_stamp_is_due_and_so_is_one_whose_text_nobody_knows() -> None:
    assert stamps({"case": EXECUTION}).is_due("other", EXECUTION)
    assert stamps({"case": EXECUTION}).is_due("case", None)


def test_the_deep_run_executes_everything() -> None:
    assert stamps({"case": EXECUTION}, all_due=True).is_due("case", EXECUTION)


def test_a_file_keeps_stamps_of_its_cases(tmp_path: Path) -> None:
    path = tmp_path / "verified" / "plain.json"
    first = Stamps(path)
    for case in ("kept", "gone", "anew"):
        first.came_out_equal(case, EXECUTION)
    first.write(["kept", "gone", "anew"])
    second = Stamps(path)
    second.came_out_equal("anew", CHANGES["another row"])
    second.write(["kept", "anew", "never ran"])
    third = Stamps(path, all_due=False)
    assert set(third.known) == {"kept", "anew"}
    assert not third.is_due("kept", EXECUTION)
    assert not third.is_due("anew", CHANGES["another row"])
    assert third.is_due("anew", EXECUTION)
    assert json.loads(path.read_text())["anew"] == {"stamp": CHANGES["another row"].stamp}


@pytest.mark.parametrize("cases", [PLAIN, FILES, ICEBERG, LISTED], ids=str)
def test_a_changed_rewriter_makes_those_cases_due_that_it_rewrites_in_another_way(
    cases: GoldenSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    executed = {str(case): cases.execution(case) for case in takes(cases.kind)}
    before = {name: one for name, one in executed.items() if one is not None}
    assert len(before) == len(executed)
    known = stamps(before)
    first_key_lost(monkeypatch)
    after = {str(case): cases.execution(case) for case in takes(cases.kind)}
    changed = {name for name, one in after.items() if one is None or one.rewritten != before[name].rewritten}
    assert changed
    assert {name for name, one in after.items() if known.is_due(name, one)} == changed


def test_modes_and_reasons_have_stamps_of_their_own() -> None:
    case, refusal = takes()[0], refusals()[0]
    other_reason = next(one.reason for one in refusals() if one.reason is not refusal.reason)
    found = [PLAIN.execution(one) for one in (case, refusal, replace(refusal, reason=other_reason))]
    assert len({one.stamp for one in found if one is not None}) == len(found)

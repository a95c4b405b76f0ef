"""Labels: by the session, by the comments of tools, by the program; and nothing else of a text."""

from functools import partial

import pytest
from support.worst_texts import seconds

from proxy.history.labels import label_in_comments, label_of
from proxy.operations.session_port import SessionOpening
from proxy.session.consistency.session_state import SessionState

DBT = '/* {"app": "dbt", "dbt_version": "1.11.0", "target_name": "dev",\n "node_id": "model.shop.daily"} */'
METABASE = "-- Metabase:: userID: 7 queryType: MBQL queryHash: 0a0b\n"
LABELS = {
    DBT: "dbt model.shop.daily",
    '/* {"app": "dbt", "connection_name": "master"} */': "dbt",
    "/* Username: ann@shop.example, query_id: 12, Queue: queries, Scheduled: False */": "Redash query 12",
    METABASE: "Metabase user 7",
    "-- [SQL LAB] ann 2026-11-30T05:00\n": "Superset SQL LAB",
    '/* {"user": "ann", "dashboard_id": 17, "slice_id": 3} */': "dashboard 17",
    "-- slice_id=3\n": "chart 3",
}


@pytest.mark.parametrize("comment", LABELS)
def test_the_comment_of_a_tool_is_a_label(comment: str) -> None:
    assert label_in_comments(f" -- generated\n/* by hand */{comment}SELECT 1") == LABELS[comment]
    assert label_in_comments(f"SELECT 1 {comment} ;\n") == (LABELS[comment] if comment.endswith("*/") else "")


@pytest.mark.parametrize(
    "text",
    [
        *(f"SELECT '{DBT}'", f"SELECT '{DBT}' AS x", f"SELECT 1 {METABASE}FROM t", " " * 1_000 + DBT + "SELECT 1"),
        *(
            "/* dashboard_id 'secret' */ SELECT 1",
            "/* dashboard_id: 7" + " " * 1_000 + "*/",
            "SELECT 1 /*",
            "/*",
            "--",
            "*/",
            "",
        ),
    ],
)
def test_nothing_else_is_a_label(text: str) -> None:
    assert label_in_comments(text) == ""


def test_the_session_counts_before_the_comment_and_the_program_behind_it() -> None:
    program = {"set:hivevar:wmapp": "Sales  \n app"}
    assert label_of(f"{DBT} SELECT 1", "board", program) == "board"
    assert label_of(f"{DBT} SELECT 1", "", program) == "dbt model.shop.daily"
    assert label_of("SELECT 1", "", program) == "Sales app"
    assert label_of("SELECT 1", "jdbc:mysql://h/d?password=abc", program) == ""
    assert len(label_of("SELECT 1", "", {"set:hivevar:wmapp": "a" * 1_000})) == 100


def test_texts_of_a_megabyte_are_read_at_their_ends_alone() -> None:
    for text in ("--a\n" * 250_000, "/*" * 500_000, "/* dashboard_id" + " dashboard_id" * 80_000 + " */"):
        assert seconds(partial(label_in_comments, text)) < 0.1


@pytest.mark.parametrize("key", ["starpruner.label", "set:hiveconf:starpruner.label"])
def test_sessions_with_labels_of_their_own_are_in_one_state(key: str) -> None:
    states = [SessionState(SessionOpening(settings)) for settings in ({key: "a"}, {key: "b"}, {})]
    assert len({state.digest for state in states}) == 1
    assert SessionState(SessionOpening({"set:hiveconf:starpruner.mode": "a"})).digest != states[0].digest

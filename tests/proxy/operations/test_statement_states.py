"""The states of a statement by themselves: their table, and statements that go through it by chance."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.relay_dialogue import AGAIN, SESSION, execute

from proxy.operations import statement_state as states
from proxy.operations.dispatch import Dispatch, OutcomeKind, Premises
from proxy.operations.events import StatementEnded
from proxy.operations.statement_state import FOLLOWING, StatementState
from proxy.operations.tracked_statements import TrackedStatement
from proxy.wire.thrift.errors import LocalProtocolError
from proxy.wire.thrift.messages import Message
from proxy.wire.thrift.reader import read_header


class Statement:
    """A statement in the background, the changes around it, and the ends that it has reported."""

    def __init__(self, *, is_rewritten: bool = True) -> None:
        self.is_session_unchanged = self.are_tables_unchanged = True
        self.ended: list[StatementEnded] = []
        self.now = 10.0
        raw = execute("SELECT 1", 5)[4:]
        premises = Premises(lambda: self.is_session_unchanged, lambda: self.are_tables_unchanged)
        original_call = Message(read_header(raw), raw) if is_rewritten else None
        self.tracked = TrackedStatement(
            Dispatch("SELECT 2", is_rewritten, "", premises),
            SESSION,
            10.0,
            run_async=True,
            original_call=original_call,
            is_rewritten=is_rewritten,
        )

    @property
    def situation(self) -> tuple[object, ...]:
        """All that an event may depend on."""
        tracked = self.tracked
        premises = self.is_session_unchanged, self.are_tables_unchanged
        return tracked.state, tracked.is_stopped, tracked.operation, *premises

    def session_changes(self) -> None:
        self.is_session_unchanged = False

    def tables_change(self) -> None:
        self.are_tables_unchanged = False

    def falls_back(self) -> None:
        failure = None if self.tracked.is_overtaken() else "it failed"
        if self.tracked.may_fall_back(failure, self.now, 60.0):
            _ = self.tracked.fall_back(self.now, failure)

    def is_sent_again(self) -> None:
        if self.tracked.is_falling_back:
            self.tracked.sent_again(AGAIN)

    def fallback_ends(self) -> None:
        if self.tracked.is_falling_back or self.tracked.state is StatementState.SENT_AGAIN:
            self.ended += self.tracked.fallback_ended(OutcomeKind.FAILED)

    def fallback_is_abandoned(self) -> None:
        if self.tracked.is_falling_back:
            self.ended += self.tracked.fallback_abandoned(self.now)

    def answer_is_withheld(self) -> None:
        if self.tracked.is_overtaken() and not self.tracked.is_falling_back:
            self.ended += self.tracked.answer_withheld(self.now)

    def columns_are_shown(self) -> None:
        self.tracked.columns_shown()

    def finishes(self) -> None:
        self.ended += self.tracked.finished(self.now)

    def rows_come(self) -> None:
        self.ended += self.tracked.rows_came(self.now)

    def fails(self) -> None:
        self.ended += self.tracked.failed(self.now, "it failed")

    def is_cancelled_by_the_server(self) -> None:
        self.ended += self.tracked.ended_without_answer(self.now)

    def is_stopped(self) -> None:
        self.ended += self.tracked.stopped(self.now)


EVENTS: list[Callable[[Statement], None]] = [
    Statement.session_changes,
    Statement.tables_change,
    Statement.falls_back,
    Statement.is_sent_again,
    Statement.fallback_ends,
    Statement.fallback_is_abandoned,
    Statement.answer_is_withheld,
    Statement.columns_are_shown,
    Statement.finishes,
    Statement.rows_come,
    Statement.fails,
    Statement.is_cancelled_by_the_server,
    Statement.is_stopped,
]


def happens(statement: Statement, event: Callable[[Statement], None]) -> None:
    """An event, and all that has to hold after any."""
    tracked = statement.tracked
    before, was_judged, was_withheld = tracked.state, tracked.is_judged, tracked.is_withheld
    event(statement)
    # An event may take two steps: what is sent again after it was stopped is over.
    assert tracked.state is before or tracked.state in _reachable(before)
    assert was_judged or not tracked.is_judged, "its replies would not have been kept back"
    assert not was_withheld or tracked.is_withheld or tracked.operation == AGAIN, "it would be let out"
    assert len(statement.ended) == tracked.is_over
    # Only an answer that may still come, or a fallback, outlives the client's interest.
    outlives = states.UNSETTLED | states.FALLING_BACK | states.ENDED
    assert not tracked.is_stopped or tracked.state in outlives
    may_fall_back = tracked.state in states.MAY_FALL_BACK and not tracked.is_stopped
    assert (tracked.original_call is not None) == may_fall_back
    assert tracked.is_judged or not (tracked.is_unsettled or tracked.is_overtaken() or tracked.is_falling_back)
    assert not tracked.may_fall_back(None, statement.now, 60.0) or may_fall_back


@given(st.booleans(), st.lists(st.sampled_from(EVENTS), max_size=15))
def test_no_event_in_any_state_leaves_the_table(
    is_rewritten: bool,  # noqa: FBT001 - drawn by chance
    events: list[Callable[[Statement], None]],
) -> None:
    statement = Statement(is_rewritten=is_rewritten)
    for event in events:
        happens(statement, event)


def test_every_event_is_tried_in_every_situation_that_events_lead_to() -> None:
    found: set[tuple[object, ...]] = set()
    scripts: list[tuple[bool, list[Callable[[Statement], None]]]] = [(True, []), (False, [])]
    for is_rewritten, events in scripts:
        for event in EVENTS:
            statement = Statement(is_rewritten=is_rewritten)
            for earlier in events:
                earlier(statement)
            happens(statement, event)
            if statement.situation not in found:
                found.add(statement.situation)
                scripts.append((is_rewritten, [*events, event]))
    assert {situation[0] for situation in found} == set(StatementState)


def test_a_statement_that_the_server_cancelled_has_no_answer_to_judge() -> None:
    statement = Statement()
    statement.is_cancelled_by_the_server()
    assert [end.outcome.kind for end in statement.ended] == [OutcomeKind.UNKNOWN]
    assert not statement.tracked.is_judged


@pytest.mark.parametrize("event", [Statement.finishes, Statement.rows_come, Statement.fails])
@pytest.mark.parametrize("failure", ["it failed", None])
def test_a_reply_about_the_first_run_is_not_the_end_of_a_statement_that_falls_back(
    failure: str | None, event: Callable[[Statement], None]
) -> None:
    statement = Statement()
    _ = statement.tracked.fall_back(11.0, failure)
    event(statement)
    assert statement.ended == []
    assert statement.tracked.is_falling_back


def _reachable(state: StatementState) -> set[StatementState]:
    found: set[StatementState] = set()
    new = set(FOLLOWING[state])
    while new:
        found |= new
        new = {after for before in new for after in FOLLOWING[before]} - found
    return found


def test_every_state_is_reached_and_none_twice() -> None:
    starts = {StatementState.ORIGINAL_SENT, StatementState.SENT}
    assert (
        {state for start in starts for state in _reachable(start)} | starts
        == set(StatementState)
        == set(FOLLOWING)
    )
    assert not any(state in _reachable(state) for state in StatementState)


def test_the_predicates_of_each_state_fit_together() -> None:
    assert {state for state in StatementState if not FOLLOWING[state]} == states.ENDED
    assert states.ANSWER_UNKNOWN < states.MAY_FALL_BACK < states.JUDGED
    assert states.FALLING_BACK | states.KEPT_FROM_CLIENT | states.UNSETTLED < states.JUDGED
    assert not states.ENDS_WITH_ROWS & (states.ENDED | states.ANSWER_UNKNOWN)
    # Whether a reply is kept back is decided when its call is made.
    assert not any(FOLLOWING[state] & states.JUDGED for state in StatementState if state not in states.JUDGED)
    # Nothing of an answer that was kept from the client is let out later, but by another run.
    assert all(
        FOLLOWING[state] <= states.KEPT_FROM_CLIENT | {StatementState.SENT_AGAIN}
        for state in states.KEPT_FROM_CLIENT
    )


@pytest.mark.parametrize("before", StatementState)
@pytest.mark.parametrize("after", StatementState)
def test_a_transition_that_is_not_in_the_table_is_a_bug_of_ours(
    before: StatementState, after: StatementState
) -> None:
    tracked = Statement().tracked
    tracked.state = before
    if after in FOLLOWING[before]:
        tracked._enter(after)  # noqa: SLF001 - the one way in
        assert tracked.state is after
        return
    with pytest.raises(LocalProtocolError, match="cannot go from"):
        tracked._enter(after)  # noqa: SLF001 - see above
    assert tracked.state is before


def test_a_statement_without_its_original_cannot_fall_back() -> None:
    with pytest.raises(LocalProtocolError, match="no original"):
        Statement(is_rewritten=False).tracked.fall_back(11.0, "it failed")

"""Which statement of many has what is not known asked beside it."""

from collections.abc import Generator

from support.clock import Clock

from proxy.operations.dispatch import always
from proxy.operations.query import Query, QueryResult
from proxy.session.catalog.learning import Learning

ASKED = Query("SELECT 1", rows_max=1, bytes_max=9, deadline_s=1.0)


def asking() -> Generator[Query, QueryResult, None]:
    _ = yield ASKED


def test_a_turn_that_was_not_begun_is_given_to_another_statement_soon() -> None:
    clock = Clock()
    learning = Learning(clock)
    assert learning.turn(asking(), always) is not None
    clock.now = 4.0
    assert learning.turn(asking(), always) is None
    clock.now = 5.0
    assert learning.turn(asking(), always) is not None


def test_a_turn_that_was_begun_is_waited_for_and_a_second_longer() -> None:
    clock = Clock()
    learning = Learning(clock)
    first = learning.turn(asking(), always)
    assert first is not None
    assert next(first) is ASKED
    clock.now = 59.0
    assert learning.turn(asking(), always) is None
    first.close()
    assert learning.turn(asking(), always) is None
    clock.now = 60.0
    assert learning.turn(asking(), always) is not None

"""Which statement of many has what is not known asked beside it."""

from support.clock import Clock
from support.played_sessions import Asking

from proxy.operations.dispatch import always
from proxy.operations.query import Ask, Query, ask_driver
from proxy.session.catalog.learning import Learning

ASKED = Query("SELECT 1", rows_max=1, bytes_max=9, deadline_s=1.0)


async def learn(ask: Ask) -> None:
    _ = await ask(ASKED)


def test_a_turn_that_was_not_begun_is_given_to_another_statement_soon() -> None:
    clock = Clock()
    learning = Learning(clock)
    assert learning.turn(learn, ask_driver, always) is not None
    clock.now = 4.0
    assert learning.turn(learn, ask_driver, always) is None
    clock.now = 5.0
    assert learning.turn(learn, ask_driver, always) is not None


def test_a_turn_that_was_begun_is_waited_for_and_a_second_longer() -> None:
    clock = Clock()
    learning = Learning(clock)
    first = learning.turn(learn, ask_driver, always)
    assert first is not None
    begun: Asking[None] = first()
    assert begun.send(None) is ASKED
    clock.now = 59.0
    assert learning.turn(learn, ask_driver, always) is None
    begun.close()
    assert learning.turn(learn, ask_driver, always) is None
    clock.now = 60.0
    assert learning.turn(learn, ask_driver, always) is not None

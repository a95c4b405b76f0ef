"""What may be done to a call on its way: the faults that the tests script."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from replies_made import refused, thrown

from proxy.wire.thrift.frames import frame
from proxy.wire.thrift.reader import Header
from support.fault_proxy import Act, CutError, Exchange


class Moment(Enum):
    """When a connection is cut."""

    BEFORE_THE_CALL = "before the call"
    AFTER_THE_CALL = "after the call"
    BEFORE_THE_REPLY = "before the reply"
    IN_THE_REPLY = "in the middle of the reply"


@dataclass(frozen=True)
class Cut(Act):
    """The connection breaks."""

    moment: Moment

    def __call__(self, exchange: Exchange) -> None:
        if self.moment is Moment.AFTER_THE_CALL:
            exchange.server.sendall(frame(exchange.message.raw))
        elif self.moment is not Moment.BEFORE_THE_CALL:
            reply = exchange.forward()
            if self.moment is Moment.IN_THE_REPLY:
                framed = frame(reply)
                exchange.client.sendall(framed[: len(framed) // 2])
        raise CutError("the script says so")


@dataclass(frozen=True)
class Slow(Act):
    """The reply comes late."""

    seconds: float

    def __call__(self, exchange: Exchange) -> None:
        reply = exchange.forward()
        exchange.wait(self.seconds)
        exchange.answer(reply)


@dataclass(frozen=True)
class Refuse(Act):
    """The server says no, without having been asked."""

    message: str
    sql_state: str = "XXKST"

    def __call__(self, exchange: Exchange) -> None:
        exchange.answer(refused(exchange.message.header, self.message, self.sql_state))


@dataclass(frozen=True)
class Throw(Act):
    """The server's handler throws, which Thrift answers in its place."""

    message: str = "Internal error processing the call"

    def __call__(self, exchange: Exchange) -> None:
        exchange.answer(thrown(exchange.message.header, self.message))


@dataclass(frozen=True)
class Replace(Act):
    """The server is asked, and something else is answered."""

    reply: Callable[[Header], bytes]

    def __call__(self, exchange: Exchange) -> None:
        _ = exchange.forward()
        exchange.answer(self.reply(exchange.message.header))


@dataclass(frozen=True)
class First(Act):
    """Something happens elsewhere before the server has the call."""

    happens: Callable[[], object]

    def __call__(self, exchange: Exchange) -> None:
        _ = self.happens()
        exchange.answer(exchange.forward())

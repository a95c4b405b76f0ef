"""Limit on wrong passwords: a few at once, then one every few seconds, for each address and name. Pure.

A client that guesses is refused, not delayed, so no other client waits behind it. The caller hands in the time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from typing import Final

# Typing errors of a person; a program that knows the password has none.
WRONG_AT_ONCE: Final = 5
# The time between two tries after these. 10 guesses a minute find no password that is worth its name.
WRONG_EVERY_S: Final = 6.0
# Addresses and names that are remembered, 200 bytes each; the one that tried longest ago is forgotten first. Each
# costs a check of a password, so no client can quickly push its own entry out.
PAIRS_MAX: Final = 10_000
_DIGEST_BYTES: Final = 16


class Throttle:
    """Passwords that were tried and not found right."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        # The time at which the last counted try of each pair expires.
        self._over_at: OrderedDict[bytes, float] = OrderedDict()

    def __len__(self) -> int:
        """The number of pairs that are remembered."""
        return len(self._over_at)

    def wait_s(self, pair: bytes) -> float:
        """The time until the pair may try again; 0 if it may now."""
        over_at = self._over_at.get(pair, 0.0)
        return max(0.0, over_at - self._clock() - (WRONG_AT_ONCE - 1) * WRONG_EVERY_S)

    def count(self, pair: bytes) -> None:
        """Count a try, which is wrong until it is forgiven."""
        now = self._clock()
        self._over_at[pair] = max(self._over_at.get(pair, now), now) + WRONG_EVERY_S
        self._over_at.move_to_end(pair)
        if len(self._over_at) > PAIRS_MAX:
            self._over_at.popitem(last=False)

    def forgive(self, pair: bytes) -> None:
        """Forget the tries of a pair: its password was right."""
        self._over_at.pop(pair, None)


def pair_of(address: str, name: str) -> bytes:
    """The pair as it is remembered: a name may be as long as a request."""
    return blake2b(f"{address}\0{name}".encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES).digest()

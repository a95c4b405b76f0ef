"""How much a run tries: a little in every test run, a lot in `make test-all`, one seed to look at a failure.

STARPRUNER_DEEP=1 tries a lot; STARPRUNER_SEED=7 tries just that seed, and STARPRUNER_SEED=500-599 a hundred
others.
"""

import os
from collections.abc import Sequence
from random import Random

from support.profile import DEEP


def seeds(*, quick: int, deep: int) -> Sequence[int]:
    """The seeds of this run."""
    chosen = os.environ.get("STARPRUNER_SEED")
    if not chosen:
        return range(deep if DEEP else quick)
    first, _, last = chosen.partition("-")
    return range(int(first), int(last or first) + 1)


def seeded(*parts: int) -> Random:
    """A generator of its own for each seed or part of one, so that any can be repeated alone."""
    return Random("/".join(map(str, parts)))  # noqa: S311 - it is repeated on purpose


def how_to_run(test: str, seed: int) -> str:
    """The command that runs just that seed."""
    return f"STARPRUNER_SEED={seed} pytest tests/differential/{test}"

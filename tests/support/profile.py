"""The profile of a run: quick by default, deep with STARPRUNER_DEEP=1 (`make test-all`)."""

import os
from typing import Final

import pytest

# The deep run takes more of everything: examples, seeds, cases and Spark as users run it.
DEEP: Final = os.environ.get("STARPRUNER_DEEP", "") not in ("", "0")

# The end of the reason for which a test runs in deep runs alone.
OF_A_DEEP_RUN: Final = "STARPRUNER_DEEP=1"


def only_deep(reason: str) -> pytest.MarkDecorator:
    """A test of the deep run alone, for a reason such as a server of its own."""
    return pytest.mark.skipif(not DEEP, reason=f"{reason}: {OF_A_DEEP_RUN}")

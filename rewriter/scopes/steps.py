"""Steps of planning: counted work, so that a statement that repeats itself cannot be planned for minutes.

A step is a name that is resolved, or a word that is parsed once more: 20 to 40 microseconds with all work that
follows. Steps are counted where loops over the statement's parts stand within one another, and where texts are
read again. So a test can hold the limit on any machine.
"""

from __future__ import annotations

from typing import Final

# All plans of a decision: a few seconds of processor time at most. 1,000 joins take half of it, 10,000 conditions
# joined by OR nearly all, and no text of TPC-DS a fiftieth (tests/benchmark_queries/test_steps_of_benchmarks.py).
PLAN_STEPS_MAX: Final = 100_000

# So many looks at a condition, an item or an equality that is there already count as one step.
LOOKS_PER_STEP: Final = 8


class StepsSpentError(Exception):
    """No steps are left: the statement stays as it is. Raised within the rewriter alone."""


class Steps:
    """The steps that a plan may take, or several plans together."""

    def __init__(self, steps_max: int = PLAN_STEPS_MAX) -> None:
        self._steps_max = steps_max
        self.taken = 0

    def take(self, count: int = 1) -> None:
        """Take steps, before or behind the work that they stand for. Raises StepsSpentError."""
        self.taken += count
        if self.taken > self._steps_max:
            raise StepsSpentError

    def look_at(self, count: int) -> None:
        """Take the steps that it takes to look at so many things. Raises StepsSpentError."""
        self.take(1 + count // LOOKS_PER_STEP)

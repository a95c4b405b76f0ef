"""A statement that is run again and again behind the cost gate, and what each way alone would have taken."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.session.feedback.cost_gate import CostGate, Fact, Gate, Run, StatementKey, Way
from proxy.session.feedback.spark_listings import SessionListings

SUBJECT = StatementKey("someone in somewhere", "5ba7")


@dataclass(frozen=True)
class World:
    """What the runs of a statement take, in seconds."""

    listing_s: float  # what a run as it came takes longer where the fact has become cold
    original_s: float
    rewritten_s: float
    asking_s: float
    # After how many runs each the fact is written; whether the gate is told.
    written_every: int = 0
    writes_are_seen: bool = True
    partitions: int | None = None
    pause_s: float = 10.0
    noise: float = 0.1
    # After how many runs each the client opens another session, for which nothing is listed yet.
    session_every: int = 0


@dataclass
class Simulation:
    """Seconds in all, and how the runs went."""

    gated_s: float = 0.0
    rewritten_s: float = 0.0
    original_s: float = 0.0
    # What trials took longer than the other way would have.
    trials_s: float = 0.0
    verdicts: str = ""

    @property
    def best_s(self) -> float:
        """What the better of the two ways alone takes."""
        return min(self.rewritten_s, self.original_s)

    @property
    def changes(self) -> int:
        """How often the verdict changed."""
        return sum(one != other for one, other in zip(self.verdicts, self.verdicts[1:], strict=False))


GateMaker: TypeAlias = Callable[[Callable[[], float]], Gate]


def simulated(world: World, runs: int, gate_with: GateMaker = CostGate) -> Simulation:
    """The statement run so often, each way alone and by the choice of such a gate."""
    rng, now, outcome = random.Random(1), 0.0, Simulation()  # noqa: S311 - noise, no secret

    def clock() -> float:
        return now

    gate, listings, fact = gate_with(clock), SessionListings(clock), Fact("sales", world.partitions)
    is_cold = is_cold_alone = True

    def noisy(seconds: float) -> float:
        return seconds * rng.uniform(1 - world.noise, 1 + world.noise)

    for number in range(1, runs + 1):
        now += world.pause_s
        asking_s, rewritten_s, original_s = map(noisy, (world.asking_s, world.rewritten_s, world.original_s))
        outcome.rewritten_s += asking_s + rewritten_s
        outcome.original_s += original_s + world.listing_s * is_cold_alone
        is_cold_alone = False
        report = gate.decide(SUBJECT, listings)
        ways_s = original_s + world.listing_s * is_cold, asking_s + rewritten_s
        run_s = ways_s[0] if report.leaves else ways_s[1]
        outcome.gated_s += run_s
        outcome.trials_s += (run_s - min(ways_s)) * report.is_trial
        if report.leaves:
            is_cold = False
            outcome.verdicts += "d"
            gate.ended(Run(SUBJECT, Way.ORIGINAL, listings, facts=(fact,)), Outcome(OutcomeKind.FINISHED, run_s))
        else:
            outcome.verdicts += "n"
            gate.ended(
                Run(SUBJECT, Way.REWRITTEN, listings, asking_s, (fact,)),
                Outcome(OutcomeKind.FINISHED, rewritten_s),
            )
        if world.written_every and number % world.written_every == 0:
            is_cold = is_cold_alone = True
            if world.writes_are_seen:
                gate.written({"insert", "into", "sales"})
        if world.session_every and number % world.session_every == 0:
            is_cold = is_cold_alone = True
            listings = SessionListings(clock)
    return outcome

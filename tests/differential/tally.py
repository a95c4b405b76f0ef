"""What a run of the differential tests came to: how often each shape, each refusal and each outcome came up."""

from collections import Counter
from dataclasses import dataclass, field

# A run that finds more wrong answers than this has made its point.
FAILURES_MAX = 5


@dataclass
class Tally:
    """Counts that add up over seeds, and the failures in full."""

    outcomes: Counter[str] = field(default_factory=Counter)
    shapes: Counter[str] = field(default_factory=Counter)
    narrowed_shapes: Counter[str] = field(default_factory=Counter)
    skips: Counter[str] = field(default_factory=Counter)
    not_run: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        """Add another run's counts."""
        self.outcomes += other.outcomes
        self.shapes += other.shapes
        self.narrowed_shapes += other.narrowed_shapes
        self.skips += other.skips
        self.not_run += other.not_run
        self.failures += other.failures

    @property
    def narrowed_share(self) -> float:
        """The share of the generated statements in which a scan was narrowed."""
        return self.outcomes["narrowed"] / max(1, self.outcomes["statements"])

    def __str__(self) -> str:
        lines = [f"{name}: {count}" for name, count in self.outcomes.most_common()]
        lines.append(f"share narrowed: {self.narrowed_share:.1%}")
        lines += ["", "shape: statements (narrowed)"]
        lines += [f"  {name}: {n} ({self.narrowed_shapes[name]})" for name, n in self.shapes.most_common()]
        lines += ["", "scans left alone, by reason"]
        lines += [f"  {name}: {count}" for name, count in self.skips.most_common()]
        lines += ["", "not run, by reason"]
        lines += [f"  {name}: {count}" for name, count in self.not_run.most_common(20)]
        return "\n".join(lines)

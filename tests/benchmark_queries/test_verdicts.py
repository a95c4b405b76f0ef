"""Verdicts on pairs: losses and wins only where the whole interval says so, and the decisions of the gate."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from intervals import Interval
from pairs import WARM, Pair, Runs, Sides
from proxy_counters import added, counts, grown, key_queries, rewritten_statements
from verdicts import Measured, Standing, standing, summary, verdict

DIRECT_S = (1.0, 2.0, 1.5, 1.0, 3.0, 1.0, 1.2, 1.0, 1.1)


def pair(factor: float, *, narrowed: Sequence[int] = (), before: Sequence[int] = ()) -> Pair:
    proxied = Runs([seconds * factor for seconds in DIRECT_S], [0.5] * 9, [0.1] * 9)
    return Pair(Runs(list(DIRECT_S), [1.0] * 9, [0.0] * 9), proxied, list(narrowed), list(before))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.06, 1.2, Standing.LOSS),
        (1.05, 1.2, Standing.NEITHER),
        (0.9, 1.2, Standing.NEITHER),
        (0.96, 1.04, Standing.NEITHER),
        (0.5, 0.95, Standing.NEITHER),
        (0.5, 0.94, Standing.WIN),
    ],
)
def test_a_loss_or_a_win_takes_the_whole_interval(low: float, high: float, expected: Standing) -> None:
    assert standing(Interval(low, high)) is expected


def test_load_that_both_runs_of_a_pair_bear_divides_out() -> None:
    found = verdict(pair(1.1))
    assert found.ratio == pytest.approx(1.1)
    assert found.interval.high - found.interval.low < 1e-9
    assert found.loses


def test_the_processor_time_has_both_processes_in_it_and_the_proxys_beside_them() -> None:
    found = verdict(pair(0.5))
    assert (found.direct_cpu_s, found.proxied_cpu_s, found.proxy_cpu_s) == (1.0, 0.6, 0.1)
    assert found.cpu_ratio == 0.6


def test_processor_times_that_are_not_known_are_none() -> None:
    found = verdict(Pair(Runs([1.0, 1.0]), Runs([1.0, 1.0])))
    assert (found.direct_cpu_s, found.proxy_cpu_s, found.cpu_ratio) == (None, None, None)


def test_the_summary_counts_losses_wins_and_the_gates_trials() -> None:
    slow, fast, even = pair(1.2, narrowed=[1] * 8 + [0], before=[1, 1, 1]), pair(0.5), pair(1.0, before=[0, 1])
    measured = [Measured(name, pairs={WARM: one}, verdicts={WARM: verdict(one)}) for name, one in
                (("q1", fast), ("q2", slow), ("q3", even))]  # fmt: skip
    found = summary(measured, WARM)
    assert found is not None
    assert (found.losses, found.wins, found.worst) == (["q2"], ["q1"], "q2")
    assert (found.tried, found.unsettled) == (["q2"], ["q3"])
    assert found.ratio == pytest.approx((1.2 * 0.5) ** (1 / 3))
    assert found.admitted == 1
    assert found.admitted_ratio == pytest.approx(1.2)
    assert found.narrowed_ratio is None


@dataclass
class Gate:
    """What a proxy's metrics tell: so many scans narrowed in each run of a script, then in each the last of it."""

    script: list[int]
    total: int = 0
    asked: int = field(default=0)

    def narrowed_scans(self) -> int:
        self.asked += 1
        if self.asked % 2 == 0:
            self.total += self.script.pop(0) if len(self.script) > 1 else self.script[0]
        return self.total


class InstantSides(Sides):
    """Sides whose runs take no time and no server."""

    def _timed(self, session: object, sql: str, runs: Runs) -> None:
        _ = session, sql
        runs.wall_s.append(1.0)


def sides(script: list[int]) -> Sides:
    return InstantSides(None, None, lambda _: None, None, Gate(script).narrowed_scans)


def test_more_runs_go_before_until_the_last_three_were_decided_alike() -> None:
    found = sides([1, 0, 1, 0, 2, 2, 2, 2]).measure("SELECT 1", WARM, runs=2, warm_ups=4)
    assert found.narrowed_before == [1, 0, 1, 0, 2, 2, 2]
    assert found.narrowed == [2, 2]
    assert found.is_settled is True
    assert len(found.direct.wall_s) == len(found.proxied.wall_s) == 2


def test_a_gate_that_never_settles_is_measured_all_the_same_and_told() -> None:
    found = sides([1, 0] * 20).measure("SELECT 1", WARM, runs=3, warm_ups=4)
    assert len(found.narrowed_before) == 12
    assert found.is_settled is False
    assert found.trials == 2


def test_counters_of_the_proxy_are_told_by_their_growth() -> None:
    text = """# TYPE starpruner_statements counter
starpruner_statements_total{outcome="rewritten"} 7.0
starpruner_statements_total{outcome="original"} 2.0
# TYPE starpruner_key_query_seconds histogram
starpruner_key_query_seconds_bucket{le="+Inf",outcome="answered"} 4.0
starpruner_key_query_seconds_count{outcome="answered"} 4.0
starpruner_key_query_seconds_sum{outcome="answered"} 0.4
starpruner_key_query_seconds_count{outcome="late"} 1.0
starpruner_key_query_seconds_sum{outcome="late"} 5.0
# TYPE process_cpu_seconds counter
process_cpu_seconds_total 1.0
"""
    growth = grown({'starpruner_statements_total{outcome="rewritten"}': 4.0}, counts(text))
    assert rewritten_statements(growth) == 3
    assert key_queries(growth) == 5
    assert len(growth) == 4
    assert rewritten_statements(added([growth, growth])) == 6

"""Verdicts on pairs of runs: the ratio of proxied to direct times, its interval, and the queries that lose."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import geometric_mean, median

from explaining import Explained, NarrowedScan
from intervals import Interval, median_interval
from pairs import Pair, Runs
from pyhive import exc

# An interval above or below these shows a loss or a win; differences in between matter to nobody.
LOSS_ABOVE, WIN_BELOW = 1.05, 0.95
# Spark's messages go on with the plan.
_ERROR_CHARS_MAX = 300


class Standing(StrEnum):
    """The side that a query's interval speaks for."""

    LOSS = "loss"
    WIN = "win"
    # It reaches into what matters to nobody: the sides are about even, or noise hides which is faster.
    NEITHER = "neither"


@dataclass(frozen=True)
class Verdict:
    """One query with the listing in one state. Ratios are proxied to direct: below 1, the proxy is faster.

    Times are medians of a side. The ratio is that of the median pair, so it need not be their quotient.
    """

    direct_s: float
    proxied_s: float
    ratio: float
    # Where the ratio lies, as far as these runs tell (`intervals`).
    interval: Interval
    standing: Standing
    # Processor time of the server and, on the proxied side, of the proxy; None where they are not known.
    direct_cpu_s: float | None
    proxied_cpu_s: float | None
    proxy_cpu_s: float | None

    @property
    def cpu_ratio(self) -> float | None:
        """The ratio of processor times, which tells more on a busy machine."""
        if self.proxied_cpu_s is None or not self.direct_cpu_s:
            return None
        return self.proxied_cpu_s / self.direct_cpu_s

    @property
    def loses(self) -> bool:
        """True if the proxied runs take longer than is tolerated, whatever the noise."""
        return self.standing is Standing.LOSS


def verdict(pair: Pair) -> Verdict:
    """The verdict on the runs of both sides."""
    ratios = [after / before for before, after in zip(pair.direct.wall_s, pair.proxied.wall_s, strict=True)]
    interval = median_interval(ratios)
    return Verdict(
        direct_s=median(pair.direct.wall_s),
        proxied_s=median(pair.proxied.wall_s),
        ratio=median(ratios),
        interval=interval,
        standing=standing(interval),
        direct_cpu_s=_cpu_s(pair.direct),
        proxied_cpu_s=_cpu_s(pair.proxied),
        proxy_cpu_s=median(pair.proxied.proxy_cpu_s) if pair.proxied.proxy_cpu_s else None,
    )


def standing(interval: Interval) -> Standing:
    """A loss or a win only where the whole interval says so."""
    if interval.low > LOSS_ABOVE:
        return Standing.LOSS
    return Standing.WIN if interval.high < WIN_BELOW else Standing.NEITHER


def _cpu_s(runs: Runs) -> float | None:
    """The processor time of a run, of both processes. The proxy's own work goes on while a direct run lasts."""
    both = [server_s + proxy_s for server_s, proxy_s in zip(runs.server_cpu_s, runs.proxy_cpu_s, strict=True)]
    return median(both) if both else None


@dataclass(frozen=True)
class Measured:
    """One query: every run and the verdict by the state of the listing, and the scans that the proxy narrowed."""

    query: str
    rows: int = 0
    same_answer: bool = True
    narrowed: Sequence[NarrowedScan] = ()
    # The seconds of the key queries by POST /explain; the proxied runs include theirs.
    key_queries_s: float = 0.0
    pairs: Mapping[str, Pair] = field(default_factory=dict)
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    # The reason for which it could not be measured.
    error: str | None = None

    @classmethod
    def of_pairs(
        cls, query: str, rows: int, told: Explained, pairs: Mapping[str, Pair], *, same_answer: bool
    ) -> "Measured":
        """A query with its runs by the state of the listing, as the proxy has explained it."""
        verdicts = {listing: verdict(pair) for listing, pair in pairs.items()}
        return cls(query, rows, same_answer, told.narrowed, told.key_queries_s, pairs, verdicts)

    @classmethod
    def failed(cls, query: str, error: exc.Error) -> "Measured":
        """A query that Spark did not answer, with the first line of its message: the plan follows it."""
        return cls(query, error=str(error).partition("\n")[0][:_ERROR_CHARS_MAX])


@dataclass(frozen=True)
class Summary:
    """All queries with the listing in one state; the ratios are geometric means.

    Narrowed are those that can be, admitted those of them that the cost gate had narrowed in the measured runs.
    """

    queries: int
    narrowed: int
    admitted: int
    ratio: float
    narrowed_ratio: float | None
    narrowed_cpu_ratio: float | None
    admitted_ratio: float | None
    left_alone_ratio: float | None
    worst: str
    worst_ratio: float
    # The slowest first.
    losses: Sequence[str]
    # The fastest last.
    wins: Sequence[str]
    # Queries that the gate went on changing its mind about, or tried otherwise in a measured run.
    unsettled: Sequence[str]
    tried: Sequence[str]


def summary(measured: Iterable[Measured], listing: str) -> Summary | None:
    """The summary of all queries with the listing in this state; None where none was measured."""
    pairs = [(one, one.verdicts[listing]) for one in measured if listing in one.verdicts]
    pairs.sort(key=lambda pair: pair[1].ratio, reverse=True)
    if not pairs:
        return None
    narrowed = [found for one, found in pairs if one.narrowed]
    admitted = [found for one, found in pairs if one.pairs[listing].is_admitted]
    (worst, worst_found), *_ = pairs
    return Summary(
        queries=len(pairs),
        narrowed=len(narrowed),
        admitted=len(admitted),
        ratio=geometric_mean(found.ratio for _, found in pairs),
        narrowed_ratio=_mean(found.ratio for found in narrowed),
        narrowed_cpu_ratio=_mean(found.cpu_ratio for found in narrowed),
        admitted_ratio=_mean(found.ratio for found in admitted),
        left_alone_ratio=_mean(found.ratio for one, found in pairs if not one.narrowed),
        worst=worst.query,
        worst_ratio=worst_found.ratio,
        losses=[one.query for one, found in pairs if found.standing is Standing.LOSS],
        wins=[one.query for one, found in pairs if found.standing is Standing.WIN],
        unsettled=[one.query for one, _ in pairs if one.pairs[listing].is_settled is False],
        tried=[one.query for one, _ in pairs if one.pairs[listing].trials],
    )


def _mean(ratios: Iterable[float | None]) -> float | None:
    known = [ratio for ratio in ratios if ratio]
    return geometric_mean(known) if known else None

"""Verdicts on pairs of runs: the ratio of proxied to direct times, and the queries that are slower."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import geometric_mean, median, quantiles

from explaining import NarrowedScan
from pairs import Pair

# A query may take this many times as long through the proxy and still count as no slower.
TOLERATED = 1.05


@dataclass(frozen=True)
class Verdict:
    """One query with the listing in one state. The ratio is proxied to direct: below 1, the proxy is faster."""

    direct_s: float
    proxied_s: float
    ratio: float
    # The ratio of processor times, which tells more on a busy machine; None where they are not known.
    cpu_ratio: float | None
    # The spread of the middle half of the direct runs, as a part of their median.
    noise: float
    # True if the proxied runs take longer by more than is tolerated and by more than the noise.
    slower: bool


def verdict(pair: Pair) -> Verdict:
    """The verdict on the runs of both sides."""
    direct_s, proxied_s = median(pair.direct.wall_s), median(pair.proxied.wall_s)
    ratio, noise = proxied_s / direct_s, _spread(pair.direct.wall_s) / direct_s
    return Verdict(direct_s, proxied_s, ratio, _cpu_ratio(pair), noise, ratio > max(TOLERATED, 1 + noise))


def _cpu_ratio(pair: Pair) -> float | None:
    if not (pair.direct.cpu_s and pair.proxied.cpu_s):
        return None
    direct_s = median(pair.direct.cpu_s)
    return median(pair.proxied.cpu_s) / direct_s if direct_s else None


def _spread(seconds: Sequence[float]) -> float:
    low, _, high = quantiles(seconds, n=4, method="inclusive")
    return high - low


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


@dataclass(frozen=True)
class Summary:
    """All queries with the listing in one state; the ratios are geometric means."""

    queries: int
    narrowed: int
    ratio: float
    narrowed_ratio: float | None
    narrowed_cpu_ratio: float | None
    left_alone_ratio: float | None
    worst: str
    worst_ratio: float
    # The slowest first.
    slower: Sequence[str]


def summary(measured: Iterable[Measured], listing: str) -> Summary | None:
    """The summary of all queries with the listing in this state; None where none was measured."""
    pairs = [(one, one.verdicts[listing]) for one in measured if listing in one.verdicts]
    pairs.sort(key=lambda pair: pair[1].ratio, reverse=True)
    if not pairs:
        return None
    narrowed = [found for one, found in pairs if one.narrowed]
    (worst, worst_found), *_ = pairs
    return Summary(
        queries=len(pairs),
        narrowed=len(narrowed),
        ratio=geometric_mean(found.ratio for _, found in pairs),
        narrowed_ratio=_mean(found.ratio for found in narrowed),
        narrowed_cpu_ratio=_mean(found.cpu_ratio for found in narrowed),
        left_alone_ratio=_mean(found.ratio for one, found in pairs if not one.narrowed),
        worst=worst.query,
        worst_ratio=worst_found.ratio,
        slower=[one.query for one, found in pairs if found.slower],
    )


def _mean(ratios: Iterable[float | None]) -> float | None:
    known = [ratio for ratio in ratios if ratio]
    return geometric_mean(known) if known else None

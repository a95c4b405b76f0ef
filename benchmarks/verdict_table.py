"""The pairs of runs as tables for a terminal."""

from collections.abc import Mapping, Sequence

from pairs import Pair
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from verdicts import LOSS_ABOVE, WIN_BELOW, Measured, Standing, Summary, Verdict

_COLORS = {Standing.LOSS: "bold red", Standing.WIN: "green"}


def show(console: Console, measured: Sequence[Measured], summaries: Mapping[str, Summary]) -> None:
    """Print a table for each state of the listing, and its summary."""
    for listing in summaries:
        console.print(_table(measured, listing))
    console.print(
        "Seconds are medians; those through the proxy have the key queries in them. Ratio: proxied to direct, in "
        "the median pair, and its interval at 95 %. Cpu: processor time of server and proxy, directly and through "
        "the proxy, and the proxy's own. Trials: measured runs that the cost gate decided otherwise; ? where it "
        "had not settled before. Narrowed: partitions kept, of all.\n",
        style="dim",
    )
    for listing, found in summaries.items():
        console.print(_sentence(listing, found), highlight=False)
    wrong = [one.query for one in measured if not one.same_answer]
    if wrong:
        console.print(f"[bold red]OTHER ANSWERS through the proxy: {', '.join(wrong)}[/]")


def _table(measured: Sequence[Measured], listing: str) -> Table:
    table = Table("query", title=f"Listing {listing}", title_justify="left", box=SIMPLE)
    for name in ("direct s", "proxied s", "ratio", "interval", "cpu s", "proxy's", "trials", "keys s"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("narrowed")
    for one in measured:
        cells = _cells(one.verdicts.get(listing), one.pairs.get(listing))
        table.add_row(one.query, *cells, f"{one.key_queries_s:.2f}", one.error or _narrowed(one))
    return table


def _cells(found: Verdict | None, pair: Pair | None) -> Sequence[str]:
    if found is None or pair is None:
        return ("",) * 7
    return (
        f"{found.direct_s:.2f}",
        f"{found.proxied_s:.2f}",
        _colored(f"{found.ratio:.2f}", found),
        _colored(f"{found.interval.low:.2f} - {found.interval.high:.2f}", found),
        "" if found.proxied_cpu_s is None else f"{found.direct_cpu_s:.2f} > {found.proxied_cpu_s:.2f}",
        "" if found.proxy_cpu_s is None else f"{found.proxy_cpu_s:.3f}",
        f"{pair.trials or ''}{'?' if pair.is_settled is False else ''}",
    )


def _colored(text: str, found: Verdict) -> str:
    color = _COLORS.get(found.standing)
    return text if color is None else f"[{color}]{text}[/]"


def seconds_cells(found: Verdict) -> Sequence[str]:
    """Both sides' seconds, and the ratios of time and of processor time, red for a loss and green for a win."""
    cpu = "" if found.cpu_ratio is None else f"{found.cpu_ratio:.2f}"
    return f"{found.direct_s:.2f}", f"{found.proxied_s:.2f}", _colored(f"{found.ratio:.2f}", found), cpu


def _narrowed(one: Measured) -> str:
    if not one.same_answer:
        return "[bold red]ANOTHER ANSWER[/]"
    counts = [(scan.table.split(".")[-1], scan.kept, scan.total) for scan in one.narrowed]
    return ", ".join(table if kept is None else f"{table} {kept}/{total}" for table, kept, total in counts)


def _sentence(listing: str, found: Summary) -> str:
    return (
        f"Listing {listing}: {found.queries} queries take {found.ratio:.3f} times as long, "
        f"the {found.narrowed} narrowed ones {_ratio(found.narrowed_ratio)} "
        f"({_ratio(found.narrowed_cpu_ratio)} of the processor time; the {found.admitted} that the cost gate had "
        f"narrowed {_ratio(found.admitted_ratio)}), "
        f"the others {_ratio(found.left_alone_ratio)} (geometric means). "
        f"Worst: {found.worst}, {found.worst_ratio:.2f}. "
        f"Losses (the interval above {LOSS_ABOVE}): {_counted(found.losses)}. "
        f"Wins (below {WIN_BELOW}): {len(found.wins)}. "
        f"With trials in measured runs: {_counted(found.tried)}; not settled before: {_counted(found.unsettled)}."
    )


def _counted(queries: Sequence[str]) -> str:
    return f"{len(queries)}, {' '.join(queries)}" if queries else "none"


def _ratio(ratio: float | None) -> str:
    return "unknown" if ratio is None else f"{ratio:.3f}"

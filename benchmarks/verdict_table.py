"""The pairs of runs as tables for a terminal."""

from collections.abc import Mapping, Sequence

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from verdicts import TOLERATED, Measured, Summary, Verdict


def show(console: Console, measured: Sequence[Measured], summaries: Mapping[str, Summary]) -> None:
    """Print a table for each state of the listing, and its summary."""
    for listing in summaries:
        console.print(_table(measured, listing))
    console.print(
        "Seconds are medians; the proxied ones have the key queries in them. Ratio: proxied to direct, in time "
        "and in processor time. Noise: the middle half of the direct runs. Narrowed: partitions kept, of all.\n",
        style="dim",
    )
    for listing, found in summaries.items():
        console.print(_sentence(listing, found), highlight=False)
    wrong = [one.query for one in measured if not one.same_answer]
    if wrong:
        console.print(f"[bold red]OTHER ANSWERS through the proxy: {', '.join(wrong)}[/]")


def _table(measured: Sequence[Measured], listing: str) -> Table:
    table = Table("query", title=f"Listing {listing}", title_justify="left", box=SIMPLE)
    for name in ("direct s", "proxied s", "ratio", "cpu", "noise", "keys s"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("narrowed")
    for one in measured:
        cells = _cells(one.verdicts.get(listing))
        table.add_row(one.query, *cells, f"{one.key_queries_s:.2f}", one.error or _narrowed(one))
    return table


def _cells(found: Verdict | None) -> Sequence[str]:
    return ("",) * 5 if found is None else (*seconds_cells(found), f"{found.noise:.0%}")


def seconds_cells(found: Verdict) -> Sequence[str]:
    """Both sides' seconds, and the ratios of time and of processor time, red where the proxied side is slower."""
    ratio = f"[bold red]{found.ratio:.2f}[/]" if found.slower else f"{found.ratio:.2f}"
    cpu = "" if found.cpu_ratio is None else f"{found.cpu_ratio:.2f}"
    return f"{found.direct_s:.2f}", f"{found.proxied_s:.2f}", ratio, cpu


def _narrowed(one: Measured) -> str:
    if not one.same_answer:
        return "[bold red]ANOTHER ANSWER[/]"
    counts = [(scan.table.split(".")[-1], scan.kept, scan.total) for scan in one.narrowed]
    return ", ".join(table if kept is None else f"{table} {kept}/{total}" for table, kept, total in counts)


def _sentence(listing: str, found: Summary) -> str:
    slower = ", ".join(found.slower) or "none"
    return (
        f"Listing {listing}: {found.queries} queries take {found.ratio:.3f} times as long, "
        f"the {found.narrowed} narrowed ones {_ratio(found.narrowed_ratio)} "
        f"({_ratio(found.narrowed_cpu_ratio)} of the processor time), "
        f"the others {_ratio(found.left_alone_ratio)} (geometric means). "
        f"Worst: {found.worst}, {found.worst_ratio:.2f}. Slower than {TOLERATED} beyond noise: {slower}."
    )


def _ratio(ratio: float | None) -> str:
    return "unknown" if ratio is None else f"{ratio:.3f}"

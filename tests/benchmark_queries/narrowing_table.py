"""The table of what is narrowed, as it stands in docs/: a block of Markdown between two comments."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from narrowing import FactScan

PAGE = Path(__file__).parents[2] / "docs" / "tpcds.md"


def render(scans_by_query: Mapping[str, Sequence[FactScan]]) -> str:
    """The summary and the table."""
    scans = [scan for found in scans_by_query.values() for scan in found]
    reasons = Counter(scan.reason.name for scan in scans if scan.reason is not None)
    narrowed = [scan for scan in scans if scan.reason is None]
    kept, total = sum(scan.kept or 0 for scan in narrowed), sum(scan.total for scan in narrowed)
    left_alone = ", ".join(f"{count} {name}" for name, count in reasons.most_common()) or "none"
    summary = (
        f"{len(scans_by_query)} queries with {len(scans)} fact scans: {len(narrowed)} narrowed, together to "
        f"{kept} of {total} partitions. Left alone: {left_alone}."
    )
    lines = [
        summary,
        "",
        "| query | narrowed, partitions kept | left alone |",
        "|---|---|---|",
    ]
    lines += [
        f"| {query} | {_narrowed(found)} | {_left_alone(found)} |" for query, found in scans_by_query.items()
    ]
    return "\n".join(lines)


def recorded(name: str) -> str:
    """The block of that name on the page."""
    _, block, _ = _parts(name)
    return block


def record(name: str, block: str) -> None:
    """Replace the block of that name on the page."""
    before, _, after = _parts(name)
    _ = PAGE.write_text(before + block + after, encoding="utf-8")


def _parts(name: str) -> tuple[str, str, str]:
    """The page up to the block, the block, and the rest."""
    opening, closing = f"<!-- {name}: made by pytest --update-goldens -->\n", f"\n<!-- end of {name} -->"
    before, opened, rest = PAGE.read_text(encoding="utf-8").partition(opening)
    block, closed, after = rest.partition(closing)
    assert opened, f"{PAGE} has no line {opening!r}"
    assert closed, f"{PAGE} has no line {closing!r}"
    return before + opening, block, closing + after


def _narrowed(scans: Sequence[FactScan]) -> str:
    return _counted([f"{scan.table} {scan.kept} of {scan.total}" for scan in scans if scan.reason is None])


def _left_alone(scans: Sequence[FactScan]) -> str:
    return _counted([f"{scan.table}: {scan.reason.name}" for scan in scans if scan.reason is not None])


def _counted(entries: Sequence[str]) -> str:
    """The entries in their order, those that occur more than once with a count."""
    return ", ".join(f"{count} x {entry}" if count > 1 else entry for entry, count in Counter(entries).items())

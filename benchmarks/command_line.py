"""Options and signals that the command lines of the benchmarks share."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import click

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]

memory_option = click.option("--memory", default="4g", show_default=True, help="The server's Java heap.")

gate_option = click.option(
    "--gate/--no-gate",
    default=True,
    show_default=True,
    help="The proxy's cost gate, which leaves alone statements that hardly gain.",
)


def directory_option(name: str, kept: str) -> Decorator:
    """The option of a benchmark's folder; `kept` is its help text."""
    return click.option(
        "--dir",
        "directory",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path(".starpruner/bench") / name,
        show_default=True,
        help=kept,
    )


def runs_option(default: int) -> Decorator:
    """The option of the number of runs on each side; a single pair has no interval."""
    return click.option(
        "--runs", type=click.IntRange(min=2), default=default, show_default=True, help="Runs on each side."
    )


def warm_ups_option(default: int) -> Decorator:
    """The option of the number of unmeasured runs on each side."""
    return click.option(
        "--warm-ups",
        type=click.IntRange(min=0),
        default=default,
        show_default=True,
        help="Unmeasured runs before, while the cost gate learns; none where listings are cold.",
    )


def end_with_servers() -> None:
    """Take SIGTERM as Ctrl-C, so that a benchmark's server and proxy end with it in any case."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)

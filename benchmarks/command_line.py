"""What the command lines of the benchmarks share: options, and how they end."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import click

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]

memory_option = click.option("--memory", default="4g", show_default=True, help="Of the server.")


def directory_option(name: str, kept: str) -> Decorator:
    """The folder of a benchmark, and what it keeps there."""
    return click.option(
        "--dir",
        "directory",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path(".starpruner/bench") / name,
        show_default=True,
        help=kept,
    )


def runs_option(default: int) -> Decorator:
    """How often each side is run; one run tells nothing of the noise."""
    return click.option(
        "--runs", type=click.IntRange(min=2), default=default, show_default=True, help="On each side."
    )


def warm_ups_option(default: int) -> Decorator:
    """How often each side is run before."""
    return click.option(
        "--warm-ups",
        type=click.IntRange(min=0),
        default=default,
        show_default=True,
        help="Runs before them, while the cost gate learns; none where listings are cold.",
    )


def end_with_servers() -> None:
    """Take SIGTERM as Ctrl-C: whatever ends a benchmark, its server and its proxy end with it."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)

"""What the commands of the pipeline share on the command line."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import click
from pyspark.errors import PySparkException

from pipeline.spark.errors import PipelineError

_SIZE = re.compile(r"(\d+)([kmg]?)", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def size_bytes(_context: click.Context, _option: click.Parameter, text: str) -> int:
    """A size such as 128m, as bytes."""
    if (match := _SIZE.fullmatch(text)) is None or not int(match[1]):
        raise click.BadParameter(f"{text!r} is not a size such as 512k, 128m or 1g")
    return int(match[1]) * _UNITS[match[2].lower()]


def column_names(text: str) -> tuple[str, ...]:
    """The columns of an option that takes several."""
    return tuple(name for part in text.split(",") if (name := part.strip()))


def setting(text: str) -> tuple[str, str]:
    """The name and the value of a Spark setting given as KEY=VALUE."""
    name, separator, value = text.partition("=")
    if not (separator and name):
        raise click.BadParameter(f"expected KEY=VALUE, got {text!r}", param_hint="--conf")
    return name, value


@contextmanager
def sentences_for_errors() -> Iterator[None]:
    """Shows what a user can do something about as one sentence; SIGTERM puts things right as Ctrl-C does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except (PipelineError, PySparkException) as error:
        raise click.ClickException(str(error)) from error

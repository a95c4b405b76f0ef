"""What the commands of the pipeline share on the command line."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import click
from pyspark.errors import PySparkException

from pipeline.errors import PipelineError


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

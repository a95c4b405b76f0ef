"""Options and error messages that the commands of the pipeline share."""

from __future__ import annotations

import functools
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import click
from pyspark.sql import SparkSession

from pipeline.spark.errors import SPARK_ERRORS, PipelineError, said
from pipeline.spark.session import spark_session

_SIZE = re.compile(r"(\d+)([kmg]?)", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def size_bytes(_context: click.Context, _option: click.Parameter, text: str) -> int:
    """A size such as 128m, as bytes."""
    if (match := _SIZE.fullmatch(text)) is None or not int(match[1]):
        raise click.BadParameter(f"{text!r} is not a size such as 512k, 128m or 1g")
    return int(match[1]) * _UNITS[match[2].lower()]


def column_names(text: str) -> tuple[str, ...]:
    """The column names of an option that takes several, separated by commas."""
    return tuple(name for part in text.split(",") if (name := part.strip()))


def _setting(text: str) -> tuple[str, str]:
    """The name and the value of a Spark setting given as KEY=VALUE."""
    name, separator, value = text.partition("=")
    if not (separator and name):
        raise click.BadParameter(f"expected KEY=VALUE, got {text!r}", param_hint="--conf")
    return name, value


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """The Spark on which a command runs."""

    master: str | None
    conf: dict[str, str]

    @contextmanager
    def session(self) -> Iterator[SparkSession]:
        """A session as long as the context lasts, in which errors become messages."""
        with _sentences_for_errors(), spark_session(self.master, self.conf) as spark:
            yield spark


def spark_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds --master and --conf to a command, which gets them as `spark_options`."""

    @click.option("--master", help="Spark's master; by default the one of spark-submit, else local.")
    @click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A Spark setting; may be repeated.")
    @functools.wraps(command)
    def with_spark(*, master: str | None, conf: tuple[str, ...], **others: object) -> None:
        command(spark_options=SparkOptions(master, dict(map(_setting, conf))), **others)

    return with_spark


@contextmanager
def _sentences_for_errors() -> Iterator[None]:
    """Shows errors that a user can do something about as one sentence; SIGTERM ends a command as Ctrl-C does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except (PipelineError, *SPARK_ERRORS) as error:
        raise click.ClickException(said(error)) from error

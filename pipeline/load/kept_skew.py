"""The skew of a load: as its options say, else as the table's properties keep it."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace

from pipeline.load.skew import Skew
from pipeline.spark.errors import PipelineError
from pipeline.tables.table import Table
from rewriter.catalog.skewed_by import OWN_FILES_PROPERTY, SkewPropertyError, skewed_by


def completed(skew: Skew, table: Table | None, name: str) -> Skew:
    """The options, with the columns and values of the table where they name none. Raises PipelineError.

    The table's values are not taken for columns that are named, nor where values are named or `top` asks for some.
    """
    if skew.columns:
        return skew
    try:
        kept = skewed_by(table.properties) if table is not None else None
    except SkewPropertyError as error:
        raise PipelineError(f"the skewed values of {name} cannot be read: {error}. Name --skewed-by") from error
    if kept is None:
        raise PipelineError(f"{name} has no skewed columns (SKEWED BY): name them with --skewed-by")
    if not kept.has_own_files:
        raise PipelineError(
            f"{name} is NOT STORED AS DIRECTORIES ({OWN_FILES_PROPERTY} is false): its skewed values get no files "
            f"of their own. Name --skewed-by for this load, or ALTER TABLE .. SKEWED BY .. for all"
        )
    if skew.values or skew.top is not None:
        return replace(skew, columns=kept.columns)
    tuples = [known for values in kept.tuples if len(known := _without_nulls(values)) == len(values)]
    has_null = len(tuples) < len(kept.tuples)
    if has_null and len(kept.columns) > 1:
        raise PipelineError(
            f"{name} has a null in a skewed tuple, and nulls get files of their own where one column is skewed"
        )
    found = replace(skew, columns=kept.columns, values=tuple(map(_option_text, tuples)))
    # Null alone is the list: no other value is looked for.
    return replace(found, nulls=True, top=None if tuples else 0) if has_null else found


def _without_nulls(values: Sequence[str | None]) -> list[str]:
    return [value for value in values if value is not None]


def _option_text(values: Sequence[str]) -> str:
    """A tuple as --skewed-value takes it: the value itself, or a line of CSV."""
    if len(values) == 1:
        return values[0]
    line = io.StringIO()
    csv.writer(line, quoting=csv.QUOTE_ALL, lineterminator="").writerow(values)
    return line.getvalue()

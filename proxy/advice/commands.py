"""Commands that give a table a layout, as they can be run."""

from __future__ import annotations

import re
import shlex
from typing import Final

import msgspec

from proxy.advice.layouts import Layout, LayoutKind
from proxy.advice.table_sample import TableSample
from rewriter import TableName
from rewriter.vocabulary.identifiers import quoted

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPARK_CATALOG: Final = "spark_catalog"
# The default of `pipeline load`.
_FILE_BYTES: Final = 128 * 1024 * 1024
# The endings of the old, the new and the kept table's names.
_ENDS: Final = ("", "_laid_out", "_before")


class Command(msgspec.Struct, frozen=True):
    """One command: a statement of Spark SQL ("sql"), or a line for a shell ("shell")."""

    kind: str
    text: str


def commands(sample: TableSample, layout: Layout, index: str, file_bytes: int) -> list[Command]:
    """The commands in their order."""
    table = shown_name(sample.name)
    indexing = Command("shell", f"starpruner pipeline index --table {shlex.quote(table)} --index {index}")
    if layout.column is None:
        return [indexing]
    own_name = _own_name(sample, layout.column)
    if layout.kind is LayoutKind.CLUSTERED:
        return _clustered(sample, table, _word(own_name), file_bytes)
    if layout.kind is LayoutKind.FREQUENT_VALUES:
        return [_load(table, own_name, layout.share_min, index, file_bytes)]
    column, partitions = _word(own_name), [_word(name) for name in sample.facts.partition_columns]
    if layout.kind is LayoutKind.PARTITIONS:
        return _made_anew(sample, [column], f"REPARTITION({column})")
    ordered = ", ".join([*partitions, column])
    made = _made_anew(sample, partitions, f"REPARTITION_BY_RANGE({layout.file_count}, {ordered})")
    return [*made, indexing]


def notes(sample: TableSample, layout: Layout, index: str) -> list[str]:
    """Sentences about what to know before the commands are run."""
    table, found = shown_name(sample.name), list[str]()
    if layout.kind is LayoutKind.CLUSTERED and layout.column is not None:
        return _notes_of_clustered(sample, table, _word(_own_name(sample, layout.column)))
    if layout.kind is not LayoutKind.PARTITIONS:
        found.append(f'The proxy skips files once its configuration says index = "{index}" in [files].')
    if layout.kind is LayoutKind.FREQUENT_VALUES:
        found.append(f"All of {table} is written again in its place: let nobody write to it meanwhile.")
    elif layout.column is not None:
        found.append(
            f"All of {table} is written to a new table, which takes its name: rows that are written meanwhile stay"
            " in the old one. Comments, properties and rights of the old table are not those of the new one."
        )
    if layout.kind is LayoutKind.PARTITIONS and layout.column is not None:
        found.append(f"{_own_name(sample, layout.column)} becomes the last column of {table}.")
    return found


def _own_name(sample: TableSample, column: str) -> str:
    """The name of a column as the table spells it."""
    known = sample.facts.column(column)
    return known.name if known is not None else column


def _load(table: str, column: str, share_min: float, index: str, file_bytes: int) -> Command:
    size = [] if file_bytes == _FILE_BYTES else ["--file-size", str(file_bytes)]
    query = f"SELECT * FROM {table}"  # noqa: S608 - quoted names
    words = ["starpruner", "pipeline", "load", "--table", table, "--query", query, "--skewed-by", column]
    words += ["--min-share", f"{share_min:g}", "--mode", "overwrite", *size, "--index", index]
    return Command("shell", shlex.join(words))


def _clustered(sample: TableSample, table: str, column: str, file_bytes: int) -> list[Command]:
    """Delta's own commands: Delta clusters no table with partitions, but sorts the rows of each partition."""
    texts = [f"SET spark.databricks.delta.optimize.maxFileSize = {file_bytes}"]
    if sample.facts.partition_columns:
        texts += [f"OPTIMIZE {table} ZORDER BY ({column})"]
    else:
        texts += [f"ALTER TABLE {table} CLUSTER BY ({column})", f"OPTIMIZE {table} FULL"]
    return [Command("sql", text) for text in texts]


def _notes_of_clustered(sample: TableSample, table: str, column: str) -> list[str]:
    """Sentences about a Delta table."""
    found = [f"Delta refuses {column} if it keeps no bounds of it, as by default of columns after the first 32."]
    if sample.facts.partition_columns:
        return [*found, "Rows that are written later lie as they come: run OPTIMIZE again after them."]
    found.append(
        f"{table} is clustered by {column} alone from then on, rows that are written later by the next OPTIMIZE."
        " Programs that do not know Delta's clustering can no longer write to it."
    )
    found.append(
        f"Where Delta refuses the last two, as before 3.3, run OPTIMIZE {table} ZORDER BY ({column}) in their"
        " place, and again after later writes."
    )
    return found


def _made_anew(sample: TableSample, partitions: list[str], hint: str) -> list[Command]:
    """A new table with all rows, in the place of the old one."""
    name = sample.name
    old, new, kept = (shown_name(TableName((*name.parts[:-1], f"{name.parts[-1]}{end}"))) for end in _ENDS)
    partitioned = f" PARTITIONED BY ({', '.join(partitions)})" if partitions else ""
    rows = f"SELECT /*+ {hint} */ * FROM {old}"  # noqa: S608 - quoted names
    return [
        Command("sql", f"CREATE TABLE {new} USING {sample.facts.provider}{partitioned} AS {rows}"),
        Command("sql", f"ALTER TABLE {old} RENAME TO {kept}"),
        Command("sql", f"ALTER TABLE {new} RENAME TO {old}"),
    ]


def shown_name(name: TableName) -> str:
    """The name with quotes where it needs them, without Spark's own catalog, which all sessions have."""
    parts = name.parts[1:] if len(name.parts) > 1 and name.parts[0] == _SPARK_CATALOG else name.parts
    return ".".join(map(_word, parts))


def _word(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else quoted(name)

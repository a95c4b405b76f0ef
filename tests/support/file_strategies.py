"""Files of random rows for Hypothesis, and what an index says of them: exactly, or less than that."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from hypothesis import strategies as st

from rewriter.domains.literals import Key
from rewriter.files.file_index import FileIndex
from support.cover_strategies import AROUND, COLUMNS, VALUES, order

Row = Mapping[str, Key | None]
TYPE_NAMES = {column.name: column.type_name for column in COLUMNS}


def as_text(value: Key) -> str:
    """A value as the index table has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass
class IndexedFile:
    """The rows of a file, and what the index says of them, which may be less than there is to say."""

    rows: Sequence[Row]
    columns: dict[str, dict[str, object]] = field(default_factory=dict)
    lacks: list[dict[str, object]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.columns = self.columns or {
            name: exact(type_name, self.rows, name) for name, type_name in TYPE_NAMES.items()
        }

    def indexed(self, path: str) -> tuple[object, ...]:
        """The row of the index, as the proxy selects it."""
        return path, 100, 1_700_000_000_000, len(self.rows), json.dumps(self.columns), json.dumps(self.lacks)


def exact(type_name: str, rows: Sequence[Row], name: str) -> dict[str, object]:
    """The bounds of a column. Spark leaves out of its JSON what is null."""
    values = [value for row in rows if (value := row[name]) is not None]
    said: dict[str, object] = {"type": type_name, "nulls": len(rows) - len(values)}
    if values:
        said["low"], said["high"] = (as_text(end(values, key=order(type_name))) for end in (min, max))
    return said


def index_of(files: Sequence[IndexedFile]) -> FileIndex:
    """The index of files, of which the first is named 0."""
    return FileIndex.of_rows((facts.indexed(str(number)) for number, facts in enumerate(files)), TYPE_NAMES)


_values = {name: st.sampled_from(values) for name, values in VALUES.items()}
_file_rows = st.lists(st.fixed_dictionaries(_values), max_size=5)
exact_files = st.lists(st.builds(IndexedFile, _file_rows), max_size=6)


@st.composite
def loosened(draw: st.DrawFn, exactly: IndexedFile) -> IndexedFile:
    """The same file, of which the index may know less."""
    columns = {name: dict(said) for name, said in exactly.columns.items()}
    for name, said in columns.items():
        values = sorted((v for v in (*VALUES[name], *AROUND[name]) if v is not None), key=order(TYPE_NAMES[name]))
        texts = [as_text(value) for value in values]
        if "low" in said:
            said["low"] = draw(st.sampled_from([None, *texts[: texts.index(str(said["low"])) + 1]]))
            said["high"] = draw(st.sampled_from([None, *texts[texts.index(str(said["high"])) :]]))
        said["nulls"] = draw(st.sampled_from([said["nulls"], None]))
        said["type"] = draw(st.sampled_from([said["type"], said["type"], "binary"]))
    kept = draw(st.sets(st.sampled_from(sorted(columns))))
    return IndexedFile(
        exactly.rows, {n: s for n, s in columns.items() if n not in kept} or {"z": {}}, exactly.lacks
    )


@st.composite
def lacking(draw: st.DrawFn) -> IndexedFile:
    """A file with lists of tuples that none of its rows has."""
    found = IndexedFile(draw(_file_rows))
    for _ in range(draw(st.integers(0, 2))):
        names = draw(st.lists(st.sampled_from(sorted(TYPE_NAMES)), min_size=1, max_size=2, unique=True))
        there = {tuple(row[name] for name in names) for row in found.rows}
        tuples = [
            t for t in product(*((*VALUES[n], *AROUND[n]) for n in names)) if None not in t and t not in there
        ]
        some = draw(st.lists(st.sampled_from(tuples), unique=True)) if tuples else []
        texts = [[as_text(value) for value in values if value is not None] for values in some]
        found.lacks.append({"columns": names, "tuples": texts})
    return found


files = st.lists(lacking().flatmap(loosened), max_size=6)

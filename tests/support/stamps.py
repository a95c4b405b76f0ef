"""Stamps of executions: a statement that answered alike before and after its rewrite need not run again unchanged.

A stamp is a hash of all that may change either answer: the statement, the text that the rewriter makes of it now,
its key queries with their answers, the tables, the settings, and the version of Spark. A file in git has the
stamps of executions that came out equal. A quick run executes those without a stamp. `--update-goldens` executes
the same ones and writes the file; the deep run executes all, and writes it too.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from support.goldens import RecordedRow
from support.profile import DEEP

# Why a test skips a case.
UNCHANGED: Final = "ran before with equal answers, and nothing has changed since: golden/verified"

# As much of a hash as makes two equal ones by accident out of the question.
_STAMP_CHARS: Final = 32

# The text of a key query, and its rows.
Answered: TypeAlias = tuple[str, Sequence[RecordedRow]]


@dataclass(frozen=True)
class Execution:
    """A statement as it came and rewritten, with all that their answers depend on."""

    mode: str
    statement: str
    rewritten: str
    key_queries: Sequence[Answered]
    # Statements that make the tables, and the facts that were read of them.
    tables: Sequence[str]
    settings: Mapping[str, str]
    spark: str

    @property
    def stamp(self) -> str:
        """The hash of all of it."""
        text = json.dumps(asdict(self), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:_STAMP_CHARS]


@dataclass
class Stamps:
    """The stamps in a file by the names of the cases."""

    path: Path
    # Whether every case is executed, whatever its stamp.
    all_due: bool = DEEP
    known: dict[str, dict[str, Any]] = field(init=False)
    found: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.known = json.loads(self.path.read_text(encoding="utf-8")) if self.path.exists() else {}

    def is_due(self, case: str, execution: Execution | None) -> bool:
        """Whether a case is executed in this run. None: nobody knows yet what it is rewritten to."""
        return self.all_due or execution is None or self.known.get(case, {}).get("stamp") != execution.stamp

    def came_out_equal(self, case: str, execution: Execution) -> None:
        """Remember an execution with equal answers."""
        self.found[case] = {"stamp": execution.stamp}

    def write(self, cases: Sequence[str]) -> None:
        """Write the file, with old stamps of cases that this run did not execute, and none of other cases."""
        every = {**self.known, **self.found}
        lines = [
            f" {json.dumps(name, ensure_ascii=False)}: {json.dumps(every[name], ensure_ascii=False)}"
            for name in cases
            if name in every
        ]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


@contextmanager
def stamps_in(path: Path, cases: Sequence[str], *, updating: bool) -> Iterator[Stamps]:
    """The stamps of a file. The deep run executes every case; it and `--update-goldens` write the file."""
    stamps = Stamps(path)
    yield stamps
    if (DEEP or updating) and stamps.found:
        stamps.write(cases)


def spark_version(home: Path) -> str:
    """The version of the Spark in a folder, as its jars are called."""
    (jar,) = (home / "jars").glob("spark-core_*.jar")
    return jar.stem

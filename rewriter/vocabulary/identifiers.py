"""Names of tables and columns, as statements write them and as Spark SQL quotes them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final


def quoted(identifier: str) -> str:
    """An identifier between backticks: Spark reads every character in it but the backtick as itself.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + identifier.replace("`", "``") + "`"


# Spark's words that may be a table's name but not its alias: in `(..) AS left JOIN d` the alias is AS.
_NO_ALIASES: Final = frozenset(
    """
    anti cross except full inner intersect join lateral left minus natural on right semi union using
    """.split()
)


def as_alias(name: str) -> str:
    """A table's name as the client wrote it, with quotes where Spark takes it for no alias without them.

    >>> as_alias("sales"), as_alias("Left"), as_alias("`left`")
    ('sales', '`Left`', '`left`')
    """
    return quoted(name) if name.lower() in _NO_ALIASES else name


# The version of a reference that is computed: such a name denotes nothing that can be looked up.
UNCERTAIN_VERSION: Final = "AS OF ?"

_SNAPSHOT = re.compile(r"VERSION AS OF ([0-9]+)")


@dataclass(frozen=True)
class TableName:
    """A table's name as the statement writes it: one to three parts, without their quotes.

    Two spellings of one table are two names: the caller, who fills the catalog, resolves each in the client's
    session. Two versions of a table are two names as well, since each has columns of its own.
    """

    parts: tuple[str, ...]
    # The version or time that the statement gives behind the name, as Spark SQL: `VERSION AS OF 7`.
    version: str = ""

    @property
    def sql(self) -> str:
        """The name as Spark SQL, each part quoted, with its version."""
        name = ".".join(quoted(part) for part in self.parts)
        return f"{name} {self.version}" if self.version else name

    @property
    def unversioned(self) -> TableName:
        """The name without its version."""
        return replace(self, version="")

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that the version names by its number."""
        found = _SNAPSHOT.fullmatch(self.version)
        return int(found[1]) if found is not None else None

    @property
    def is_uncertain(self) -> bool:
        """True if the version is computed, so that the name cannot be looked up."""
        return self.version == UNCERTAIN_VERSION

    def at(self, snapshot_id: int) -> TableName:
        """The table as of a snapshot."""
        return replace(self, version=f"VERSION AS OF {snapshot_id}")

    def __str__(self) -> str:
        name = ".".join(self.parts)
        return f"{name} {self.version}" if self.version else name


@dataclass(frozen=True)
class Column:
    """A column with its Spark SQL type in lower case, as DESCRIBE writes it: `bigint`, `char(5)`."""

    name: str
    type_name: str

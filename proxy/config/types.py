"""The types of configuration keys, each with its bounds."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, ClassVar, Final, Literal

import msgspec
from msgspec import Meta

Seconds = Annotated[float, Meta(gt=0, le=86_400)]
SecondsOrNever = Annotated[float, Meta(ge=0, le=30 * 86_400)]
Count = Annotated[int, Meta(ge=1)]
Bytes = Annotated[int, Meta(ge=1024)]
# LMDB maps whole pages; with fewer it cannot work at all.
StoreBytes = Annotated[int, Meta(ge=64 * 1024, multiple_of=4096)]
# Words for each pattern that a text has to match, for messages.
WORDS: Final[dict[str, str]] = {}


def text_like(pattern: str, words: str, *, length_max: int | None = None) -> Meta:
    """The bounds of a text, and in words how it looks."""
    WORDS[pattern] = words
    return Meta(pattern=pattern, max_length=length_max)


PasswordHash = Annotated[
    str,
    text_like(
        r"^scrypt\$[0-9]{1,2}\$[0-9]{1,2}\$[0-9]{1,2}\$[\w+/=]+\$[\w+/=]+$",
        "a line as `starpruner hash-password` prints it",
    ),
]
# With less, a single long statement could take all of it.
HistoryBytes = Annotated[int, Meta(ge=4_000_000)]
# An IPv6 host stands in brackets. Port 0 takes a free one.
_HOST_AND_PORT: Final = r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]\s]+):[0-9]{1,5}"
HostAndPort = Annotated[str, text_like(f"^{_HOST_AND_PORT}$", "HOST:PORT, such as spark.example.com:10000")]
HostAndPortOrNothing = Annotated[
    str, text_like(f"^({_HOST_AND_PORT})?$", "HOST:PORT, such as 0.0.0.0:10000, or an empty text")
]
# A name without a port, as browsers send it.
HostName = Annotated[
    str,
    text_like(
        r"^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?$", "the name of a host, without a port", length_max=255
    ),
]
# A table of HBase as `name` or `namespace:name`.
HBaseTableName = Annotated[
    str,
    text_like(r"^([A-Za-z0-9_]+:)?[A-Za-z0-9_][A-Za-z0-9_.-]*$", "a table of HBase, `name` or `namespace:name`"),
]
HttpPath = Annotated[str, text_like(r"^/[^?#\s]*[^/?#\s]$", "a path that begins, and does not end, with a slash")]

# Also set by a client for its session (proxy/session/session_settings.py).
Mode = Literal["rewrite", "shadow"]
Consistency = Literal["window", "strict"]
Staleness = Annotated[float, Meta(ge=0, le=86_400)]
# A table as `name`, `database.name` or `catalog.database.name`; `*` stands for all tables of a database.
_TABLES: Final = r"^[^.`*]+(\.[^.`*]+){0,2}(?<!\*)$|^[^.`*]+(\.[^.`*]+)?\.\*$"
_TABLES_IN_WORDS: Final = "`table`, `database.table`, `catalog.database.table`, or `database.*`"
TablePattern = Annotated[str, text_like(_TABLES, _TABLES_IN_WORDS)]
TablePatternOrAll = Annotated[str, text_like(r"^\*$|" + _TABLES, f"{_TABLES_IN_WORDS}, or `*`")]
# A table as `database.name` or `catalog.database.name`, which is the same one in whatever database a session is.
QualifiedTableOrNothing = Annotated[
    str,
    text_like(r"^([^.`]+(\.[^.`]+){1,2})?$", "`database.table` or `catalog.database.table`, or an empty text"),
]


class Counts(Enum):
    """The time at which a new value counts where the configuration is read anew (proxy/config/reload.py)."""

    AT_ONCE = "at once"
    AFTER_RESTART = "after a restart"


# Marks of keys that differ from their section: `Annotated[Seconds, AFTER_RESTART]`.
AT_ONCE: Final = Meta(extra={"counts": Counts.AT_ONCE})
AFTER_RESTART: Final = Meta(extra={"counts": Counts.AFTER_RESTART})


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of the TOML file: unknown keys are errors."""

    # Of keys that are not marked.
    counts: ClassVar[Counts] = Counts.AT_ONCE

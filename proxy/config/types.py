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
# As `starpruner hash-password` prints it.
PasswordHash = Annotated[str, Meta(pattern=r"^scrypt\$[0-9]{1,2}\$[0-9]{1,2}\$[0-9]{1,2}\$[\w+/=]+\$[\w+/=]+$")]
# With less, a single long statement could take all of it.
HistoryBytes = Annotated[int, Meta(ge=4_000_000)]
# An IPv6 host stands in brackets. Port 0 takes a free one.
HostAndPort = Annotated[str, Meta(pattern=r"^(\[[0-9A-Fa-f:.]+\]|[^:\[\]\s]+):[0-9]{1,5}$")]
HostAndPortOrNothing = Annotated[str, Meta(pattern=r"^((\[[0-9A-Fa-f:.]+\]|[^:\[\]\s]+):[0-9]{1,5})?$")]
# A name without a port, as browsers send it.
HostName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?$", max_length=255)]
# A table of HBase as `name` or `namespace:name`.
HBaseTableName = Annotated[str, Meta(pattern=r"^([A-Za-z0-9_]+:)?[A-Za-z0-9_][A-Za-z0-9_.-]*$")]
HttpPath = Annotated[str, Meta(pattern=r"^/[^?#\s]*[^/?#\s]$")]

# Also set by a client for its session (proxy/session/session_settings.py).
Mode = Literal["rewrite", "shadow"]
Consistency = Literal["window", "strict"]
Staleness = Annotated[float, Meta(ge=0, le=86_400)]
# A table as `name`, `database.name` or `catalog.database.name`; `*` stands for all tables of a database.
_TABLES: Final = r"^[^.`*]+(\.[^.`*]+){0,2}(?<!\*)$|^[^.`*]+(\.[^.`*]+)?\.\*$"
TablePattern = Annotated[str, Meta(pattern=_TABLES)]
TablePatternOrAll = Annotated[str, Meta(pattern=r"^\*$|" + _TABLES)]
# A table as `database.name` or `catalog.database.name`, which is the same one in whatever database a session is.
QualifiedTableOrNothing = Annotated[str, Meta(pattern=r"^([^.`]+(\.[^.`]+){1,2})?$")]


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

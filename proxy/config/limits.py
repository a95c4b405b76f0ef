"""Sections of the configuration that bound what one statement may read: see docs/limits.md.

The comment above a key is its text in docs/configuration.md (see proxy/config/serving.py).
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from proxy.config.errors import ConfigError
from proxy.config.types import Section, TablePatternOrAll, text_like

# Zero is no limit.
CountOrUnlimited = Annotated[int, Meta(ge=0)]
LimitName = Annotated[str, text_like(r"^[A-Za-z0-9_.-]{1,60}$", "1 to 60 letters, digits, `_`, `.` or `-`")]


class LimitSection(Section, frozen=True):
    """A limit on what one scan may read: see docs/limits.md. The first that names user and table counts."""

    # Its name in refusals, the history, the metrics and the log.
    name: LimitName
    # Users by their names, with `*` for any characters, and groups of [limiting] groups behind an @: ["bi_*",
    # "@analysts"]. Empty: all users.
    users: tuple[str, ...] = ()
    # Tables, and databases by `logs.*`, also where they are read through views.
    tables: tuple[TablePatternOrAll, ...] = ("*",)
    # The most partitions, files and bytes of one scan. 0: any number. A limit without any bound exempts its users
    # from those behind it.
    partitions_max: CountOrUnlimited = 0
    files_max: CountOrUnlimited = 0
    bytes_max: CountOrUnlimited = 0
    # With true a scan of a partitioned table must have a filter on a partition column, its own or an inserted one.
    partition_filter: bool = False
    # With "reject" the statement fails and is not sent; with "warn" it runs, and the log, the history and the
    # metrics tell of it.
    action: Literal["reject", "warn"] = "reject"
    # With "reject" a statement fails of which it is not known what it would read. With action = "warn" none does.
    unknown: Literal["allow", "reject"] = "allow"


class LimitingSection(Section, frozen=True):
    """Terms of all limits."""

    # With true no limit rejects: each one warns, to see whom it would meet.
    dry_run: bool = False
    # Groups of users by their names, for `users` of the limits: {analysts = ["anna", "bi_*"]}.
    groups: dict[str, tuple[str, ...]] = {}  # noqa: RUF012 - msgspec makes a new one for each


def expect_whole(limits: tuple[LimitSection, ...], terms: LimitingSection) -> None:
    """Raise ConfigError for a limit that has another one's name, or a group of users that is not there."""
    names = [limit.name for limit in limits]
    for limit in limits:
        where = f"limits {limit.name}"
        if names.count(limit.name) > 1:
            raise ConfigError(f"{where}: two limits have this name")
        for user in limit.users:
            if user.startswith("@") and user[1:] not in terms.groups:
                raise ConfigError(f"{where}: users: there is no group {user[1:]} in [limiting] groups")

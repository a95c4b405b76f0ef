"""Sections of the configuration that say when statements are rewritten, and what that may cost."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from proxy.config.types import (
    AFTER_RESTART,
    Bytes,
    Consistency,
    Count,
    Mode,
    QualifiedTableOrNothing,
    Seconds,
    Section,
    Staleness,
    StoreBytes,
    TablePattern,
)
from rewriter import Rule


class RewriteSection(Section, frozen=True):
    """When a statement is rewritten and what a rewrite may cost."""

    # The kill switch: with false everything passes through untouched.
    enabled: bool = True
    # With shadow the statement runs as it came, and the rewritten one beside it, to compare the answers.
    mode: Mode = "rewrite"
    # Whether keys that change before the statement reads them may be missed (docs/decisions/0008).
    consistency: Consistency = "window"
    # Asks for keys only where that pays. With false, whatever is sound is narrowed.
    cost_gate: bool = True
    # A shape of statement that was left alone is narrowed again after this long, to see whether that pays by now.
    gate_retry_s: Seconds = 600.0
    # How old remembered keys may be. 0: keys are asked for with each statement.
    key_staleness_s: Staleness = 0.0
    # The same for keys that were read at the snapshot of an Iceberg table, and are used only while it is current.
    # Not for servers whose sessions see other rows of it as rights or defaults change: no snapshot tells of that.
    key_snapshot_s: Staleness = 0.0
    # Keys remembered, all sessions together.
    key_cache_bytes_max: Annotated[Bytes, AFTER_RESTART] = 64 * 1024 * 1024
    # A statement or a rule that caused a failure is quarantined for this long, and longer if it does so again.
    quarantine_s: Seconds = 600.0
    # Ways to narrow that are switched off, by their names (rewriter/vocabulary/rule.py).
    rules_off: tuple[Rule, ...] = ()
    # Facts that are never narrowed.
    tables_off: tuple[TablePattern, ...] = ()
    # A statement that fails is run again as it came if it failed within this time: users wait for an error once.
    rerun_within_s: Annotated[Seconds, AFTER_RESTART] = 60.0
    # sqlglot reads 250 KB in about a second; a statement beyond that is generated, and rarely a star join.
    statement_chars_max: Count = 262_144
    # Thirteen years of days. 5,000 literals cost Spark's planner some tenths of a second at most, and fit in
    # predicate_chars_max; of more keys, ranges around them are asked for.
    key_rows_max: Count = 5_000
    # Key queries run one after the other before the statement does; a star has a handful of dimensions.
    key_queries_max: Count = 8
    # Measured key queries take 0.1 to 0.3 s. A small side that needs more than a few seconds is not small.
    key_query_deadline_s: Seconds = 5.0
    # Each takes a thread and some cores of the backend for its 0.1 to 0.3 s: with this many at once it would be
    # busy with nothing else.
    key_queries_at_once_max: Annotated[Count, AFTER_RESTART] = 16
    # A table of this size is read in some ten seconds by a small cluster, longer than key_query_deadline_s.
    # Counts where the size is known; else the deadline alone bounds a key query.
    small_side_bytes_max: Bytes = 10 * 1024 * 1024 * 1024
    # 5,000 keys of 200 bytes each.
    key_query_bytes_max: Bytes = 1024 * 1024
    # Ranges around keys that are too many to be fetched: the widest gaps between them are left out.
    key_ranges_max: Annotated[int, Meta(ge=1, le=10_000)] = 200
    # The database behind the metastore, which bounds what it is sent of the keys (rewriter/domains/consumers.py).
    # The embedded Derby is the least able one, so its limits are safe for all.
    metastore: Literal["derby", "postgresql"] = "derby"
    # Text inserted for one scan: 5,000 keys of about 25 characters.
    predicate_chars_max: Count = 131_072


class ShadowSection(Section, frozen=True):
    """Shadow mode: statements run as they came, and the rewritten ones beside them, to compare the answers."""

    # The part of the statements that would be rewritten which run in shadow mode where a session has not said so.
    fraction: Annotated[float, Meta(ge=0, le=1)] = 0.0
    # Each query of a comparison; the client's statement has run about as long by then.
    statement_s: Seconds = 60.0
    # A comparison in all: five such queries where the answers differ.
    total_s: Seconds = 300.0
    # Each takes one of the backend's threads, and as many cores as the client's own statement.
    at_once_max: Annotated[Count, AFTER_RESTART] = 2
    # A file to which answers that differed are added, with both texts. Empty: they are only counted and logged.
    differences_path: Annotated[str, AFTER_RESTART] = ""
    # Some hundreds of statements as dashboards send them.
    differences_bytes_max: Annotated[Bytes, AFTER_RESTART] = 16 * 1024 * 1024


class CatalogSection(Section, frozen=True):
    """Table facts, asked for in the client's session and kept with it."""

    # How long a description may be old. A changed type is caught by the inserted type check at any age.
    facts_ttl_s: Seconds = 60.0
    # Descriptions kept per session.
    tables_max: Count = 1_000
    # DESCRIBE and SHOW PARTITIONS: a busy metastore answers in seconds, and then a rewrite no longer pays.
    query_deadline_s: Seconds = 5.0
    # A table has a few thousand columns at most; the detail rows come on top.
    describe_rows_max: Count = 20_000
    # For explain's counts; a longer list is reported as unknown.
    partitions_max: Count = 200_000
    # How long a partition list may be old. To ask for 10,000 takes up to a second; one that has grown since costs
    # pruning, never rows.
    partitions_ttl_s: Seconds = 600.0
    # The directory in which partition lists are kept. Empty: a temporary one, removed when the proxy stops.
    store_path: Annotated[str, AFTER_RESTART] = ""
    # About 100 bytes a partition, and room for a second copy while a list is replaced. The file grows up to this
    # size as it is used; lists that do not fit are not kept.
    store_bytes_max: Annotated[StoreBytes, AFTER_RESTART] = 512 * 1024 * 1024


class FilesSection(Section, frozen=True):
    """The file index: what `starpruner pipeline` has written of each file's columns, to skip files by.

    The limits hold for the files of Iceberg tables too, of which Iceberg's own metadata tables tell.
    """

    # Its table. Empty: there is none, and nothing is asked. Read in the client's own session, by its own rights.
    index: QualifiedTableOrNothing = ""
    # How long it is believed which tables are indexed, and that their rows are the same. To ask takes a tenth of a
    # second; rows that have changed since cost pruning, never rows.
    tables_ttl_s: Seconds = 300.0
    # Tables that are indexed. A warehouse has some thousands; with more, none of them is used.
    tables_max: Count = 10_000
    # The rows of 40,000 files with ten columns come in some seconds, once for each user and change of the index. A
    # statement that waits longer than this goes on without them.
    query_deadline_s: Seconds = 10.0
    # Of one table; of a larger one the index is not used. With ten columns each takes 700 bytes to fetch and
    # 2.5 KB to keep; the rows of 40,000 take a second or two of processor time.
    files_max: Count = 50_000
    # The rows of files_max files as they are fetched, with ten columns each and room for longer values.
    fetch_bytes_max: Bytes = 64 * 1024 * 1024
    # Of all tables together, and for each user anew: 250 MB with ten columns. Those used last are kept; with fewer
    # than are in use, their rows are fetched over and over.
    files_kept_max: Count = 100_000
    # Text inserted for one scan to skip files: some 3,500 of them. Those that save most come first.
    hint_chars_max: Count = 512 * 1024


class SplitsSection(Section, frozen=True):
    """Narrowed scans of many small files, read in fewer tasks. Needs the file index, which knows their sizes."""

    enabled: bool = True
    # Splits, as Spark packs them, that one task is to read at most. A hundred tasks become ten; with many more the
    # last task to end may take as long as the others saved.
    max_small_splits_grouped: Annotated[int, Meta(ge=1, le=1_000)] = 10
    # Fewer tasks than this are not worth a hint: each takes some milliseconds of a core before it reads anything.
    saved_min: Count = 32
    # How long it is believed how many tasks run at once, by which settings files are packed, and which tables are
    # cached in memory. To ask takes some hundredths of a second; what has changed since costs time, never rows.
    asked_every_s: Seconds = 300.0

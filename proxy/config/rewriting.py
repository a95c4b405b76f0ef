"""Sections of the configuration that say when statements are rewritten, and what that may cost.

The comment above a key is its text in docs/configuration.md (see proxy/config/serving.py).
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from proxy.config.types import (
    AFTER_RESTART,
    Bytes,
    Consistency,
    Count,
    HBaseTableName,
    HostAndPortOrNothing,
    Mode,
    QualifiedTableOrNothing,
    Seconds,
    Section,
    Staleness,
    StoreBytes,
    TablePattern,
    TablePatternOrAll,
)
from rewriter import Rule


class RewriteSection(Section, frozen=True):
    """When a statement is rewritten and what a rewrite may cost."""

    # The kill switch: with false everything passes through untouched.
    enabled: bool = True
    # With "shadow" the original runs for the client, and the rewritten statement beside it, to compare the
    # answers.
    mode: Mode = "rewrite"
    # With "window", keys that are written past the proxy between key query and statement may be missed; with
    # "strict" never: only keys of Iceberg tables at a snapshot and of literals are used, and other scans are left
    # alone (docs/decisions/0008). The target of a MERGE is narrowed in both, with a check.
    consistency: Consistency = "window"
    # Asks for keys only where that pays (docs/decisions/0010). With false, every scan that may be narrowed is.
    cost_gate: bool = True
    # Expert. A fingerprint that the cost gate left alone is narrowed again no sooner than after this long, to see
    # whether that pays by now.
    gate_retry_s: Seconds = 600.0
    # How old keys may be that the same session has read. 0: keys are asked for with each statement.
    key_staleness_s: Staleness = 0.0
    # The same for keys that were read at the snapshot of an Iceberg table, and are used only while it is current.
    # Not for servers whose sessions see other rows of it as rights or defaults change: no snapshot tells of that.
    key_snapshot_s: Staleness = 0.0
    # How old remembered keys may be that are asked for again while the statement runs: no answer is let out before
    # they are confirmed (docs/decisions/0032). Older ones are rarely those of now: most small sides are loaded
    # hourly or daily. 0: keys are asked for first.
    keys_remembered_s: Staleness = 3_600.0
    # Expert. Keys remembered, all sessions together.
    key_cache_bytes_max: Annotated[Bytes, AFTER_RESTART] = 64 * 1024 * 1024
    # Expert. A fingerprint or a rule that caused a failure is quarantined for this long, and longer if it does so
    # again: for that user, and for all once it has for two (docs/decisions/0053).
    quarantine_s: Seconds = 600.0
    # Rules, which are ways to narrow, that are switched off by their names: ["exists", "views"]
    # (rewriter/vocabulary/rule.py).
    rules_off: tuple[Rule, ...] = ()
    # Takes Hive's SKEWED BY off CREATE TABLE and ALTER TABLE, which Spark refuses, and keeps the skewed values as
    # properties of the table, for `starpruner pipeline load` (docs/decisions/0039).
    skewed_by: bool = True
    # Facts that are never narrowed: ["sales", "shop.sales", "logs.*"].
    tables_off: tuple[TablePattern, ...] = ()
    # The only facts that are narrowed, by such names, and the only users for whom: to begin with few. Empty: all.
    only_tables: tuple[TablePattern, ...] = ()
    only_users: tuple[str, ...] = ()
    # A file: while it exists, every statement goes as it came, within a second and in all processes.
    off_file: Annotated[str, AFTER_RESTART] = ""
    # Tables of Delta or Iceberg into which a MERGE reads only the files that may hold keys of its source
    # (docs/writes.md): ["sales", "shop.sales", "logs.*"], or ["*"] for all.
    merge_tables: tuple[TablePatternOrAll, ...] = ()
    # Expert. If a rewritten statement fails within this time, the original is run (docs/decisions/0009). Later, it
    # is not: users wait for an error once.
    rerun_within_s: Annotated[Seconds, AFTER_RESTART] = 60.0
    # Expert. The longest statement that is parsed. sqlglot reads 250 KB in about a second; a longer statement is
    # generated, and rarely a star join.
    statement_chars_max: Count = 262_144
    # Keys of one reducer that are inserted one by one: thirteen years of days. 5,000 literals cost Spark's planner
    # some tenths of a second at most, and fit in predicate_chars_max; of more keys, ranges around them are asked
    # for.
    key_rows_max: Count = 5_000
    # Expert. Key queries of one statement. They run one after the other before it does; a star has a handful of
    # dimensions.
    key_queries_max: Count = 8
    # The time of one key query. Measured ones take 0.1 to 0.3 s; a small side that needs more than a few seconds
    # is not small.
    key_query_deadline_s: Seconds = 5.0
    # Expert. Key queries at once, all sessions and workers together. Each takes a thread and some cores of the
    # backend for its 0.1 to 0.3 s: with this many at once it would be busy with nothing else.
    key_queries_at_once_max: Annotated[Count, AFTER_RESTART] = 16
    # A small side of this size is read in some ten seconds by a small cluster, longer than key_query_deadline_s.
    # Counts where the size is known; else the deadline alone bounds a key query.
    small_side_bytes_max: Bytes = 10 * 1024 * 1024 * 1024
    # Expert. A small side of this size at most is asked for its keys without a filter: parameter tables,
    # seeds, the temporary tables of BI tools. 16 KiB are some hundreds of rows; a calendar of ten years is larger,
    # and without a filter it would have all keys. 0: none is.
    tiny_side_bytes_max: Annotated[int, Meta(ge=0)] = 16 * 1024
    # Expert. The answer of one key query: 5,000 keys of 200 bytes each.
    key_query_bytes_max: Bytes = 1024 * 1024
    # Expert. Ranges around keys that are too many to be fetched: the widest gaps between them are left out.
    key_ranges_max: Annotated[int, Meta(ge=1, le=10_000)] = 200
    # Expert. Partitions that Spark is asked about in one query, where keys do not tell which of them match. 10,000
    # take 0.1 to 0.4 s and 150 KB of text.
    partition_list_max: Annotated[int, Meta(ge=1, le=100_000)] = 20_000
    # The database behind the metastore, which bounds what it is sent of the keys (rewriter/domains/consumers.py);
    # MariaDB is a "mysql". Derby is the least able one, so its limits are safe for all. No session can be asked:
    # Spark does not know the database of a metastore that is a service, and redacts the address of another.
    metastore: Literal["derby", "postgresql", "mysql"] = "derby"
    # Expert. Text inserted for one scan: 5,000 keys of about 25 characters.
    predicate_chars_max: Count = 131_072


class ShadowSection(Section, frozen=True):
    """Shadow mode: originals run for the clients, and rewritten statements beside them, to compare the answers."""

    # The part of the rewritable statements that run in shadow mode although `rewrite.mode` is "rewrite" and the
    # session has not asked for it; 0.01 is one in a hundred.
    fraction: Annotated[float, Meta(ge=0, le=1)] = 0.0
    # Expert. Time for each query of a comparison; the client's statement has run about as long by then.
    statement_s: Seconds = 60.0
    # Expert. Time for a comparison in all: five such queries where the answers differ.
    total_s: Seconds = 300.0
    # Comparisons at once, all workers together. Each takes one of the backend's threads, and as many cores as the
    # client's own statement. Runs that ask about splits beside a statement (docs/decisions/0040) count as well.
    at_once_max: Annotated[Count, AFTER_RESTART] = 2
    # A file to which answers that differed are added, with both texts. Empty: they are only counted and logged.
    differences_path: Annotated[str, AFTER_RESTART] = ""
    # Expert. The size of the file `differences_path`: some hundreds of statements as dashboards send them.
    differences_bytes_max: Annotated[Bytes, AFTER_RESTART] = 16 * 1024 * 1024


class CatalogSection(Section, frozen=True):
    """Table facts, asked for by the client's login and kept for its sessions."""

    # How long a description is used without being asked for again. A statement whose keys are checked while it
    # runs may use it for rewrite.keys_remembered_s more: the check asks for it again. A changed type is caught by
    # the inserted type check at any age.
    facts_ttl_s: Seconds = 60.0
    # Expert. Descriptions kept per session.
    tables_max: Count = 1_000
    # Expert. Time for a DESCRIBE or SHOW PARTITIONS: a busy metastore answers in seconds, and then a rewrite no
    # longer pays.
    query_deadline_s: Seconds = 5.0
    # Expert. Tables without statistics are asked for by EXPLAIN COST where their size alone tells whether they are
    # worth asking without a filter: some 20 ms a table, once in facts_ttl_s.
    asks_sizes: bool = True
    # Expert. Rows of one description. A table has a few thousand columns at most; the detail rows come on top.
    describe_rows_max: Count = 20_000
    # Expert. Partitions of one table, for the counts in `explain`; a longer list is reported as unknown.
    partitions_max: Count = 200_000
    # How long a partition list may be old. To ask for 10,000 takes up to a second; one that has grown since costs
    # pruning, never rows.
    partitions_ttl_s: Seconds = 600.0
    # Where partition lists are kept: with "lmdb" in this proxy alone, with "hbase" also in a table of HBase, where
    # other proxies in front of the same servers find them (docs/decisions/0042). They also tell one another there
    # what is quarantined, and how long statements took (docs/decisions/0044).
    store: Annotated[Literal["lmdb", "hbase"], AFTER_RESTART] = "lmdb"
    # HBase's Thrift gateway (Thrift 1, not framed), as HOST:PORT. Users who can write to the table can make
    # lists wrong and switch rules off, which costs pruning, and release what is quarantined; users who can read it
    # see the partitions of all users' tables.
    store_gateway: Annotated[HostAndPortOrNothing, AFTER_RESTART] = ""
    # The table of HBase. It is made if there is none; each group of proxies in front of the same servers has one.
    store_table: Annotated[HBaseTableName, AFTER_RESTART] = "starpruner"
    # Expert. The time that a statement waits for HBase to say whether its lists are still those that all proxies
    # share, all of them together. A read takes a millisecond or two where all is well; later, the statement goes
    # on without.
    store_deadline_s: Annotated[Annotated[float, Meta(gt=0, le=1)], AFTER_RESTART] = 0.005
    # The directory in which partition lists are kept. Empty: a temporary one, removed when the proxy stops.
    store_path: Annotated[str, AFTER_RESTART] = ""
    # Expert. The size of the store of partition lists: about 100 bytes a partition, and room for a second copy
    # while a list is replaced. The file grows up to this size as it is used; lists that do not fit are not kept.
    store_bytes_max: Annotated[StoreBytes, AFTER_RESTART] = 512 * 1024 * 1024


class FilesSection(Section, frozen=True):
    """The file index: bounds of each file's columns, written by `starpruner pipeline`, to skip files by.

    The limits hold for the files of Iceberg tables too, of which Iceberg's own metadata tables tell.
    """

    # The table of the file index, such as "starpruner.file_index". Empty: there is none, and nothing is asked.
    # Read by the client's login, with its rights.
    index: QualifiedTableOrNothing = ""
    # Expert. How long an answer is believed to the question which tables are indexed, and since when. To ask takes
    # a tenth of a second; rows that have changed since cost pruning, never rows.
    tables_ttl_s: Seconds = 300.0
    # Expert. Tables that are indexed. A warehouse has some thousands; with more, none of them is used.
    tables_max: Count = 10_000
    # Expert. Time for a query to the index. The rows of 40,000 files with ten columns come in some seconds, once
    # for each user and change of the index. A statement that waits longer than this goes on without them.
    query_deadline_s: Seconds = 10.0
    # Files of one table; of a table with more the index is not used. With ten columns each takes 700 bytes to
    # fetch and 2.5 KB to keep; the rows of 40,000 take a second or two of processor time.
    files_max: Count = 50_000
    # Expert. One answer of the index: the rows of files_max files, with ten columns each and room for longer
    # values.
    fetch_bytes_max: Bytes = 64 * 1024 * 1024
    # Expert. Files of all tables together, and for each user anew: 250 MB with ten columns. Those used last are
    # kept; with fewer than are in use, their rows are fetched over and over.
    files_kept_max: Count = 100_000
    # Expert. Text inserted for one scan to skip files: some 3,500 of them. Those that save most come first.
    hint_chars_max: Count = 512 * 1024


class SplitsSection(Section, frozen=True):
    """Scans of many small files, read in fewer tasks. Their sizes are known of the file index, or of Iceberg."""

    # Narrowed scans get a COALESCE hint (docs/decisions/0026).
    enabled: bool = True
    # Scans that nothing narrows get the hint too, where it cannot lose much: executors are not added while
    # statements run, the table's size is told and is that of its index, and the answer is the same in whatever
    # order rows are read (docs/decisions/0040). Nothing is waited for. On: generated statements of many kinds
    # answer as their originals do.
    unnarrowed_scans: bool = True
    # Expert. Splits, as Spark packs them, that one task is to read at most. A hundred tasks become ten; with many
    # more the last task to end may take as long as the others saved.
    max_small_splits_grouped: Annotated[int, Meta(ge=1, le=1_000)] = 10
    # Expert. Tasks that a hint has to save: each takes some milliseconds of a core before it reads anything. To
    # save 28 of 32 was measured to pay with 1, 8 and 32 clients (docs/decisions/0040); fewer are not worth it.
    saved_min: Count = 28
    # Expert. Rows of a scan for each task that a hint saves. The hint ends the code that Spark generates for a
    # scan, and each row that passes it is copied once.
    rows_per_saved_max: Count = 100_000
    # Expert. How long an answer is believed to the questions how many tasks run at once, by which settings files
    # are packed, and which tables are cached in memory. To ask takes some hundredths of a second; what has changed
    # since costs time, never rows.
    asked_every_s: Seconds = 300.0

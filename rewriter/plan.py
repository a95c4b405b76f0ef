"""Plan of a statement: the scans that can be narrowed, and the key queries whose answers `rewrite` needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeAlias

from rewriter.catalog.table_facts import Catalog, TableFacts, TableKind
from rewriter.domains.keys import Keys
from rewriter.domains.keyset import KeyRanges, KeySet
from rewriter.domains.literals import Key, UnreadableKeyError, literal
from rewriter.domains.partition_matches import PartitionMatches
from rewriter.partitions.index import PartitionIndexes
from rewriter.planning.scans import beside_foreign, by_fixed_keys, refused, scans
from rewriter.planning.snapshot_pins import pins
from rewriter.planning.switched_off import beside, with_written, without_switched_off
from rewriter.planning.views import FollowedViews, follow_views
from rewriter.predicates.metastore_filter import may_reach_cast
from rewriter.scopes.scopes import Scopes
from rewriter.scopes.steps import Steps, StepsSpentError
from rewriter.semijoins.limits import RewriteLimits
from rewriter.semijoins.planned_scan import PlannedScan
from rewriter.semijoins.reducer import KeyQuery, Reducer
from rewriter.semijoins.small_sides import PartOfTable, TinySides
from rewriter.splits.fewer_splits import may_be_grouped, must_keep_splits
from rewriter.sql.statement import Statement
from rewriter.sql.task_dependence import called, word_of_tasks
from rewriter.vocabulary.cited import listed
from rewriter.vocabulary.identifiers import TableName, quoted
from rewriter.vocabulary.rule import Rule
from rewriter.vocabulary.skip_reason import Refusal, SkipReason, UnpinnedReason

# The result of a key query: the keys, or the reason why there are none.
KeyAnswer: TypeAlias = Keys | SkipReason


@dataclass(frozen=True)
class Plan:
    """A plan for a statement. `missing` names the tables whose facts are needed to make one."""

    statement: Statement
    scans: tuple[PlannedScan, ...]
    missing: frozenset[TableName] = frozenset()
    # The Iceberg tables that key queries read, each with the reason why it is read without a snapshot. With None
    # the statement can be planned again at the table's snapshot (`rewriter.planning.snapshot_pins.pin_snapshots`).
    # With strict consistency, that plan may have key queries where this one has none.
    pins: Mapping[TableName, UnpinnedReason | None] = field(default_factory=dict)
    # All tables and views that the statement reads, views' own tables among them, if scans could be narrowed.
    names: frozenset[TableName] = frozenset()
    # True if the splits of its scans must not be changed.
    keeps_splits: bool = False
    # The partition columns of all tables among the names whose partitions a metastore filters.
    partition_columns: frozenset[str] = frozenset()
    # The tables whose partition values the metastore casts to filter them.
    cast_tables: frozenset[TableName] = frozenset()
    # True if a table may compare with an inferred filter in another way than Spark; True if an unknown table may.
    reads_foreign: bool = False
    reads_unknown: bool = False
    # The tables that count as unknown because they were not described in time.
    late: frozenset[TableName] = frozenset()
    # The tables whose sizes are not known and would tell whether they are worth asking without a filter.
    unsized: frozenset[TableName] = frozenset()
    # Parts of partitioned tables whose sizes are not known, where these decide: some of them may be asked for.
    unsized_parts: frozenset[PartOfTable] = frozenset()
    # Partitioned tables whose lists would tell which part `(SELECT max(dt) FROM users)` chooses.
    unlisted: frozenset[TableName] = frozenset()
    # The lists of partitions and the facts of tables that the plan was made with.
    partitions: PartitionIndexes = field(default_factory=dict)
    catalog: Catalog = field(default_factory=dict, repr=False)
    # The reason why no scan was planned; None for a plan that was made to its end.
    skip: SkipReason | None = None
    # The steps that it took (`rewriter.scopes.steps`).
    steps: int = 0

    @property
    def pinnable(self) -> frozenset[TableName]:
        """The tables of which the statement can name a snapshot."""
        return frozenset(name for name, why in self.pins.items() if why is None)

    @property
    def unpinned(self) -> Mapping[TableName, UnpinnedReason]:
        """The Iceberg tables that key queries read and that the statement cannot pin, with the reason."""
        return {name: why for name, why in self.pins.items() if why is not None}

    @property
    def calls_missing_function(self) -> bool:
        """True if it is refused for a function that the server is not known to have."""
        return any(scan.skip is SkipReason.MISSING_FUNCTION for scan in self.scans)

    @property
    def follows(self) -> frozenset[TableName]:
        """The views whose texts the plan rests on, and the tables behind them that it takes to be as described.

        A view among the small sides may have got a text that gives other rows each time it is read.
        """
        reducers = [reducer for scan in self.scans for reducer in scan.reducers]
        asked = frozenset[TableName]().union(*(reducer.key_query.tables for reducer in reducers))
        views = frozenset(name for name in asked if _is_lasting_view(self.catalog.get(name)))
        return views.union(*(reducer.follows for reducer in reducers))

    @property
    def key_queries(self) -> tuple[KeyQuery, ...]:
        """The key queries to run first, each once however many scans use it."""
        return self.pending({})

    def pending(self, answers: Mapping[KeyQuery, KeyAnswer]) -> tuple[KeyQuery, ...]:
        """The queries to run next, given the answers of others; none if all have been run."""
        asked = (r.key_query for scan in self.scans for r in effective_reducers(scan, answers))
        return tuple(query for query in dict.fromkeys(asked) if query not in answers)

    def joining_views(self, answers: Mapping[KeyQuery, KeyAnswer]) -> frozenset[tuple[TableName, str]]:
        """The views that are narrowed by joins in their texts, each with a condition for rows of one key.

        Without a key the condition is empty.
        """
        return frozenset(
            (scan.reference.name, _of_one_key(reducer, answer))
            for scan in self.scans
            for reducer in effective_reducers(scan, answers)
            if reducer.follows and not isinstance(answer := answers.get(reducer.key_query), SkipReason | None)
        )

    def wants_lists(self, answers: Mapping[KeyQuery, KeyAnswer]) -> tuple[TableName, ...]:
        """The tables whose partitions could be asked about, if the plan were made again with a list of them."""
        wanted = dict.fromkeys(scan.reference.name for scan in self.scans if _wants_list(scan, answers))
        wanted.update(dict.fromkeys(sorted(self.unlisted, key=str)))
        return tuple(name for name in wanted if name not in self.partitions)

    def wants_partitions(self, answers: Mapping[KeyQuery, KeyAnswer]) -> tuple[TableName, ...]:
        """The tables whose partition lists would help to widen the many keys of their scans."""
        wanted = (
            scan.reference.name
            for scan in self.scans
            if scan.partition_columns
            for reducer in effective_reducers(scan, answers)
            if key_count(answers.get(reducer.key_query)) > FEW_KEYS
        )
        return tuple(dict.fromkeys(wanted))

    def wants_values(self, answers: Mapping[KeyQuery, KeyAnswer]) -> frozenset[TableName]:
        """The tables whose partition lists tell if a metastore reads their values as Spark does."""
        compared = (
            column.type_name
            for scan in self.scans
            for reducer in effective_reducers(scan, answers)
            if not isinstance(answers.get(reducer.key_query), SkipReason | None)
            for column in reducer.key_query.columns
        )
        return self.cast_tables if any(map(may_reach_cast, compared)) else frozenset()

    def wants_files(
        self, answers: Mapping[KeyQuery, KeyAnswer], *, for_splits: bool = False
    ) -> tuple[TableName, ...]:
        """The tables whose file index would show files without rows that are asked for.

        With `for_splits` also the tables whose file index would show only the sizes of the files that are left.
        """
        sized = self.wants_packings(answers) if for_splits else ()
        wanted = (scan.reference.name for scan in self.scans if _wants_files(scan, answers))
        return tuple(dict.fromkeys([*wanted, *sized]))

    def wants_packings(self, answers: Mapping[KeyQuery, KeyAnswer]) -> tuple[TableName, ...]:
        """The tables whose scans may be read in fewer splits, if their files are small and many."""
        if self.keeps_splits:
            return ()
        packed = (scan for scan in self.scans if scan.facts is not None and scan.facts.packs_files)
        may_be = (scan for scan in packed if scan.grouped_within is not None or _may_be_narrowed(scan, answers))
        return tuple(dict.fromkeys(scan.reference.name for scan in may_be))

    @property
    def may_be_grouped(self) -> bool:
        """True if a scan may be read in fewer splits although nothing narrows it."""
        return any(scan.grouped_within is not None for scan in self.scans)

    def grouped_alone(self, answers: Mapping[KeyQuery, KeyAnswer]) -> frozenset[TableName]:
        """The tables of which nothing is wanted but the sizes of files, for scans that nothing narrows."""
        grouped = {scan.reference.name for scan in self.scans if scan.grouped_within is not None}
        return frozenset(grouped - {scan.reference.name for scan in self.scans if _may_be_narrowed(scan, answers)})


def _of_one_key(reducer: Reducer, keys: Keys) -> str:
    """A condition for rows of one of the keys; empty if there is none without a null."""
    if isinstance(keys, KeySet) and keys.rows and None not in keys.rows[-1]:
        key: Sequence[Key | None] = keys.rows[-1]
    elif isinstance(keys, KeyRanges) and keys.ranges:
        key = keys.ranges[0][:1]
    else:
        return ""
    columns = zip(reducer.columns, keys.type_names, key, strict=True)
    try:
        return " AND ".join(f"{quoted(name)} = {literal(type_name, value)}" for name, type_name, value in columns)
    except UnreadableKeyError:
        return ""


def _is_lasting_view(facts: TableFacts | None) -> bool:
    """True for a view that other sessions may replace."""
    return facts is not None and facts.view is not None and not facts.view.is_temporary


# So few keys are always listed: the metastore accepts them, and a list of partitions would cost more than it could
# save.
FEW_KEYS = 16


def _wants_list(scan: PlannedScan, answers: Mapping[KeyQuery, KeyAnswer]) -> bool:
    return scan.wants_list or any(
        reducer.if_types_differ is SkipReason.PARTITIONS_NOT_LISTED
        and _types_differ(reducer, answers.get(reducer.key_query))
        for reducer in scan.reducers
    )


def _types_differ(reducer: Reducer, answer: KeyAnswer | None) -> bool:
    """True if the keys are of another type than the column. `unix_date` in a key query fails for all but days."""
    has_days = any(column.type_name == "date" for column in reducer.key_query.columns)
    return answer is SkipReason.KEY_TYPE_CHANGED or (has_days and answer is SkipReason.KEY_QUERY_FAILED)


def _wants_files(scan: PlannedScan, answers: Mapping[KeyQuery, KeyAnswer]) -> bool:
    return not scan.own_cover.is_all or any(
        key_count(answers.get(reducer.key_query)) and any(map(scan.has_files_by, reducer.columns))
        for reducer in effective_reducers(scan, answers)
    )


def _may_be_narrowed(scan: PlannedScan, answers: Mapping[KeyQuery, KeyAnswer]) -> bool:
    return _wants_files(scan, answers) or any(
        key_count(answers.get(reducer.key_query)) for reducer in effective_reducers(scan, answers)
    )


def key_count(answer: KeyAnswer | None) -> int:
    """The number of keys, of ranges of keys, or of partitions that were asked about, in an answer."""
    if isinstance(answer, KeySet):
        return len(answer.rows)
    if isinstance(answer, PartitionMatches):
        return len(answer.asked)
    return len(answer.ranges) if isinstance(answer, KeyRanges) else 0


def effective_reducers(scan: PlannedScan, answers: Mapping[KeyQuery, KeyAnswer]) -> Iterator[Reducer]:
    """The scan's reducers, with others in the place of those that have too many keys, or keys of another type."""
    pending = list(reversed(scan.reducers))
    while pending:
        reducer = pending.pop()
        answer = answers.get(reducer.key_query)
        if reducer.alternatives and answer is SkipReason.TOO_MANY_KEYS:
            pending += reversed(reducer.alternatives)
        elif isinstance(reducer.if_types_differ, Reducer) and _types_differ(reducer, answer):
            pending.append(reducer.if_types_differ)
        else:
            yield reducer


def plan(
    statement: Statement,
    catalog: Catalog,
    limits: RewriteLimits,
    partitions: PartitionIndexes = MappingProxyType({}),
    steps: Steps | None = None,
) -> Plan:
    """Find the fact scans that may be narrowed, given what is known of the tables.

    If tables are missing from the catalog, the plan names them and has no scans: look them up and plan again. If
    it `wants_lists` of the partitions of tables, or names tables as `unsized`, it may ask for more when it is made
    again with them. A plan that would take too many steps has no scans, and says so. Several plans share `steps`
    and what is left of them; a plan without them has the limits' own number.
    """
    steps = steps or Steps(limits.plan_steps_max)
    before = steps.taken
    try:
        planned = _planned(statement, catalog, limits, partitions, steps)
    except StepsSpentError:
        planned = Plan(statement, (), partitions=partitions, catalog=catalog, skip=SkipReason.TOO_INTRICATE)
    return replace(planned, steps=steps.taken - before)


def _planned(
    statement: Statement, catalog: Catalog, limits: RewriteLimits, partitions: PartitionIndexes, steps: Steps
) -> Plan:
    given, catalog = catalog, without_switched_off(statement, catalog, limits)
    scopes = _scopes(statement, catalog, limits, steps)
    may_narrow = scopes.may_narrow or (limits.has_file_index and scopes.has_conditions)
    may_narrow = may_narrow or _may_read_a_join(scopes, limits) or may_be_grouped(limits)
    followed = follow_views(statement, catalog, steps) if may_narrow else FollowedViews(catalog, frozenset())
    if followed.missing:
        return Plan(statement, (), followed.missing)
    known = catalog if Rule.VIEWS in limits.rules_off else followed.catalog
    known = beside(known, lost_times=followed.may_lose_times, delta=followed.reads_delta)
    known = with_written(statement, known)
    if known is not catalog:
        scopes = _scopes(statement, known, limits, steps)
    refusal = _refusal_of_target(followed.target, given) or _refusal(statement, followed, limits)
    if refusal is not None:
        return Plan(statement, refused(scopes, refusal))
    tiny = TinySides(scopes.catalog, limits.tiny_side_bytes_max)
    found = beside_foreign(scans(scopes, limits, partitions, tiny), followed.foreign)
    return Plan(
        statement,
        by_fixed_keys(found) if limits.strict else found,
        pins=pins(scopes, found, reads_unnamed=followed.reads_unnamed),
        names=followed.names,
        keeps_splits=not followed.is_whole or must_keep_splits(statement, followed.queries),
        partition_columns=followed.partition_columns,
        cast_tables=followed.cast_tables,
        reads_foreign=bool(followed.foreign),
        reads_unknown=bool(followed.unknown),
        unsized=frozenset(tiny.unsized) | _unsized_by_files(found, scopes.catalog),
        unsized_parts=frozenset(tiny.unsized_parts),
        unlisted=frozenset() if limits.strict else frozenset(tiny.unlisted),
        partitions=partitions,
        catalog=given,
    )


def _scopes(statement: Statement, catalog: Catalog, limits: RewriteLimits, steps: Steps) -> Scopes:
    narrows_merges = bool(limits.merge_tables) and Rule.MERGE not in limits.rules_off
    return Scopes(
        statement, catalog, has_variables=limits.has_variables, narrows_merges=narrows_merges, steps=steps
    )


def _unsized_by_files(found: Sequence[PlannedScan], catalog: Catalog) -> frozenset[TableName]:
    """Delta and Iceberg tables without a size, where the size decides.

    No description of a Delta table tells its size, nor does that of an Iceberg table on Spark 3.5.
    """
    if not any(scan.skip is SkipReason.SMALL_SIDE_LARGER for scan in found):
        return frozenset()
    tables = ((name, facts) for name, facts in catalog.items() if facts is not None)
    return frozenset(name for name, facts in tables if facts.size_bytes is None and (facts.delta or facts.iceberg))


def _may_read_a_join(scopes: Scopes, limits: RewriteLimits) -> bool:
    """True if a name may be that of a view with a join in its text."""
    is_off = {Rule.VIEWS, Rule.VIEW_JOINS} & limits.rules_off
    return not is_off and any(str(name).lower() not in limits.table_names for name in scopes.tables)


def _refusal_of_target(target: TableName | None, catalog: Catalog) -> Refusal | None:
    """The reason to leave a MERGE alone: its target may be a view of a table that the statement reads."""
    facts = catalog.get(target) if target is not None else None
    if target is None or (facts is not None and facts.kind is TableKind.TABLE):
        return None
    return SkipReason.WRITES_WHAT_IT_READS.because(f"perhaps {target}, which is not known to be a table")


def _refusal(statement: Statement, followed: FollowedViews, limits: RewriteLimits) -> Refusal | None:
    """The reason to leave a whole statement as it is, by its text and the texts of its views."""
    for text in (statement, *followed.queries):
        function = called(text, limits.missing_functions)
        if function is not None:
            return SkipReason.MISSING_FUNCTION.because(f"{function}(..)")
        word = word_of_tasks(text)
        if word is not None:
            return SkipReason.NUMBERED_BY_TASK.because(word if text is statement else f"{word} in a view")
    may_read_any_delta = not followed.is_whole and (limits.has_delta or followed.reads_delta)
    if followed.generating or may_read_any_delta:
        # Spark infers a filter for each table from an equality, and Delta turns it into one on such a column.
        names = followed.generating | (followed.unknown if may_read_any_delta else frozenset())
        found = listed(sorted(map(str, names))) or "a table that is read by no certain name"
        return SkipReason.PROVIDER.because(f"partition columns of {found} may be generated, as Delta can")
    written = [name for name in followed.names if statement.may_write(name.parts)]
    if written and not statement.inserts:
        return SkipReason.WRITES_WHAT_IT_READS.because(listed(sorted(map(str, written))))
    return None

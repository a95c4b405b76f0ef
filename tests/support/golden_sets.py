"""The sets of golden cases: their tables, their limits, and how each case is rewritten and stamped."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from demo.java import spark_home
from rewriter import KeyQuery, Keys, Plan, Rewrite, RewriteLimits, Rule, SkipReason, apply
from rewriter.splits.packing import SplitHints
from support import cheap_spark, golden_tables
from support.golden_cases import DATABASE, FOLDER, Expected, Refusal, Row, Take, expectations, table_statements
from support.golden_tables import Index
from support.goldens import planned_with
from support.stamps import Answered, Execution, spark_version

# With cheap settings Spark 4.3.0 fails with "IN dynamicpruning .. has not finished", in a filter of the branch
# that has no partitions.
_AS_USERS_RUN_IT: Final = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
_NOT_CHEAP: Final = {"views: a view with a branch over a table that is not partitioned"}

Answers = Mapping[KeyQuery, Keys | SkipReason]
# The rows that a key query answers with; None where nobody knows them.
Ask = Callable[[KeyQuery], Sequence[Row] | None]


def sent(question: KeyQuery) -> str:
    """A key query as the proxy sends it first."""
    return question.sql_with_repeats or question.sql


def shown(question: KeyQuery) -> str:
    """A key query as users see it: without the list of partitions that it may have."""
    return getattr(question, "outline", "") or sent(question)


def recorded(case: Take) -> Ask:
    """The answers in the case's golden file."""
    expected = expectations(case.rule).get(case.name)
    if expected is None:
        return lambda _: None
    known = dict(zip(expected.key_queries, expected.answers, strict=True))
    return lambda question: known.get(shown(question))


def settings_of(case: Take | Refusal) -> Mapping[str, str]:
    """The settings of a session that executes the case."""
    return _AS_USERS_RUN_IT if str(case) in _NOT_CHEAP else {}


@dataclass(frozen=True)
class Outcome:
    """A plan with what its key queries answered, None where nobody knows it, and the rewrite with that."""

    found: Plan
    rows: Mapping[KeyQuery, Sequence[Row] | None]
    rewrite: Rewrite

    @property
    def is_known(self) -> bool:
        """Whether all of them have answers."""
        return None not in self.rows.values()

    @property
    def asked(self) -> list[Answered]:
        """The key queries' texts, which name them in stamps, with their answers."""
        return [(question.sql, rows or ()) for question, rows in self.rows.items()]

    @property
    def used(self) -> set[str]:
        """The key queries whose answers are in the text."""
        return {shown(reducer.key_query) for scan in self.rewrite.scans for reducer, _ in scan.reducers}

    @property
    def text(self) -> str:
        """The rewritten statement."""
        return self.rewrite.text

    @property
    def expected(self) -> Expected:
        """All of it as a golden file has it."""
        rows = tuple(tuple(answer or ()) for answer in self.rows.values())
        return Expected(tuple(map(shown, self.rows)), rows, self.text)


# Each set is itself alone, and can be a key.
@dataclass(frozen=True, eq=False)
class GoldenSet:
    """The cases of one folder, with the limits that they are rewritten with."""

    # That of its stamps.
    name: str
    limits: RewriteLimits
    # The folder within golden/, and the database of its tables.
    kind: str = ""
    database: str = DATABASE
    # Settings of the proxy that it goes through; None: the test rewrites its statements.
    proxy: Sequence[str] | None = None
    # Statements that its session begins with.
    session: Sequence[str] = ()

    def __str__(self) -> str:
        return self.name

    def planned(self, sql: str, answers: Answers | None = None) -> Plan:
        """The plan of a statement, given some answers, with the lists of partitions that it wants."""
        catalog, has_file_index = partial(golden_tables.catalog_of, self.kind), self.limits.has_file_index
        planned = partial(planned_with, sql, catalog, self.limits, has_file_index=has_file_index)
        found = planned()
        while self.kind == "listed" and (wanted := found.wants_lists(answers or {})):
            found = planned(partitions={**found.partitions, **golden_tables.partition_lists(wanted)})
        return found

    def outcome(self, sql: str, ask: Ask, index: Index | None = None) -> Outcome:
        """The rewrite of a statement with these answers, and a file index or the recorded one."""
        rows: dict[KeyQuery, Sequence[Row] | None] = {}
        answers: dict[KeyQuery, Keys | SkipReason] = {}
        found = self.planned(sql)
        while pending := [question for question in found.pending(answers) if question not in rows]:
            rows |= {question: ask(question) for question in pending}
            answers |= {
                question: question.read(answer) for question in pending if (answer := rows[question]) is not None
            }
            if self.kind == "listed":
                found = self.planned(sql, answers)
        return Outcome(found, rows, self.applied(found, answers, index))

    def applied(self, found: Plan, answers: Answers, index: Index | None = None) -> Rewrite:
        """The rewrite of a plan with the keys, and with the files that it wants."""
        if not self.limits.has_file_index:
            return apply(found, answers, self.limits)
        wanted = found.wants_files(answers, for_splits=True)
        known = golden_tables.recorded_index() if index is None else index
        files = {name: golden_tables.file_index(name, known) for name in wanted}
        hints = SplitHints(dict.fromkeys(wanted, golden_tables.PACKING))
        return apply(found, answers, self.limits, files=files, split_hints=hints)

    def execution(
        self, case: Take | Refusal, ask: Ask | None = None, spark: str | None = None
    ) -> Execution | None:
        """All that the answers to a case depend on, by the rewriter as it is now; None: nobody knows its keys."""
        if isinstance(case, Refusal):
            mode, text = "refused", case.sql
            asked: list[Answered] = [("the reason", [(case.reason.name,)])]
        else:
            outcome = self.outcome(case.sql, ask or recorded(case))
            if not outcome.is_known:
                return None
            mode, text, asked = self.name, outcome.text, outcome.asked
            if self.kind == "files":
                named = zip(outcome.expected.key_queries, outcome.expected.answers, strict=True)
                asked = [*named, ("the file index", [(repr(golden_tables.recorded_index()),)])]
        return Execution(
            mode=mode,
            statement=case.sql,
            rewritten=text,
            key_queries=asked,
            tables=(
                *table_statements(self.kind),
                (FOLDER / self.kind / "catalog.json").read_text(encoding="utf-8"),
            ),
            # Of either profile, so that a stamp of the deep run holds in the quick one.
            settings={**cheap_spark.CONF, **settings_of(case)},
            spark=spark or spark_version(spark_home()),
        )


PLAIN: Final = GoldenSet(
    "plain",
    # Lists of partitions have cases of their own.
    RewriteLimits(rules_off=frozenset({Rule.PARTITION_LIST})),
    # Sizes are those of the pure cases.
    proxy=('rewrite.rules_off=["partition_list"]', "catalog.asks_sizes=false"),
)
FILES: Final = GoldenSet("files", RewriteLimits(has_file_index=True), "files", "golden_files")
LISTED: Final = GoldenSet(
    "listed", RewriteLimits(), "listed", "golden_listed", proxy=("catalog.asks_sizes=false",)
)
# Days are those of the session's time zone, which stands in the texts.
ICEBERG: Final = GoldenSet("iceberg", RewriteLimits(), "iceberg", "ice.golden", session=("SET TIME ZONE 'UTC'",))
DELTA: Final = GoldenSet("delta", RewriteLimits(), "delta", "golden_delta")

_OF_KIND: Final = {one.kind: one for one in (PLAIN, FILES, LISTED, ICEBERG, DELTA)}


def set_of(case: Take | Refusal) -> GoldenSet:
    """The set of a case's folder."""
    return _OF_KIND[case.rule.rpartition("/")[0]]

"""The golden cases as executions that may have a stamp, with texts by the rewriter as it is now."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from demo.java import spark_home
from rewriter import KeyQuery, Keys, Plan, Rewrite, RewriteLimits, Rule, SkipReason, apply
from support import cheap_spark, file_golden_cases, iceberg_golden_cases
from support.golden_cases import (
    FOLDER,
    Refusal,
    Row,
    Take,
    expectations,
    pure_catalog,
    refusals,
    table_statements,
    takes,
)
from support.goldens import planned_with
from support.stamps import Answered, Execution, Stamps, spark_version, stamps_in

# Conditions that keys do not tell have cases and tables of their own (`support.listed_golden_cases`).
LIMITS = RewriteLimits(rules_off=frozenset({Rule.PARTITION_LIST}))
CHARS_MAX = 100_000

# With cheap settings Spark 4.3.0 fails with "IN dynamicpruning .. has not finished", in a filter of the branch
# that has no partitions.
AS_USERS_RUN_IT = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
NOT_CHEAP = {"views: a view with a branch over a table that is not partitioned"}

# The rows that a key query answers with; None where nobody knows them.
Ask = Callable[[KeyQuery], Sequence[Row] | None]


@contextmanager
def golden_stamps(mode: str, kind: str = "", *, updating: bool) -> Iterator[Stamps]:
    """The stamps of a mode for the cases of a kind."""
    cases = [str(case) for case in (refusals(kind) if mode.startswith("refused") else takes(kind))]
    with stamps_in(FOLDER / "verified" / f"{mode}.json", cases, updating=updating) as stamps:
        yield stamps


def planned(sql: str, limits: RewriteLimits = LIMITS) -> Plan:
    """The plan of a statement over the golden tables."""
    return planned_with(sql, pure_catalog, limits)


def rewritten(found: Plan, limits: RewriteLimits, ask: Ask) -> tuple[Rewrite, Sequence[Answered]] | None:
    """The rewrite with the answers, and these; None where one of them is not known."""
    answers: dict[KeyQuery, Keys | SkipReason] = {}
    asked: list[Answered] = []
    while pending := found.pending(answers):
        for question in pending:
            rows = ask(question)
            if rows is None:
                return None
            answers[question] = question.read(rows)
            asked.append((question.sql, rows))
    return apply(found, answers, limits), asked


def recorded(found: Plan, case: Take) -> Ask:
    """The answers that the file of the case's rule has."""
    expected = expectations(case.rule).get(case.name)
    if expected is None or len(expected.answers) != len(found.key_queries):
        return lambda _: None
    return dict(zip(found.key_queries, expected.answers, strict=True)).get


def execution(  # noqa: PLR0913 - all that an answer depends on
    mode: str,
    case: Take | Refusal,
    text: str,
    asked: Sequence[Answered],
    *,
    kind: str = "",
    settings: Mapping[str, str] | None = None,
    spark: str | None = None,
) -> Execution:
    """The execution of a case that is rewritten to a text."""
    return Execution(
        mode=mode,
        statement=case.sql,
        rewritten=text,
        key_queries=asked,
        tables=(*table_statements(kind), (FOLDER / kind / "catalog.json").read_text(encoding="utf-8")),
        # Of either profile, so that a stamp of the deep run holds in the quick one.
        settings={**cheap_spark.CONF, **(settings or {})},
        spark=spark or spark_version(spark_home()),
    )


def plain_execution(case: Take) -> Execution | None:
    """A case as the proxy rewrites it."""
    found = planned(case.sql)
    known = rewritten(found, LIMITS, recorded(found, case))
    return None if known is None else execution("plain", case, known[0].text, known[1])


def strict_execution(case: Take, limits: RewriteLimits, ask: Ask, settings: Mapping[str, str]) -> Execution | None:
    """A case whose keys are checked as the statement runs."""
    known = rewritten(planned(case.sql, limits), limits, ask)
    if known is None:
        return None
    return execution("strict", case, known[0].text, known[1], settings=settings)


def file_execution(case: Take) -> Execution | None:
    """A case about files, which are called by their order."""
    expected = expectations(case.rule).get(case.name)
    found = file_golden_cases.planned(case.sql)
    if expected is None or len(expected.answers) != len(found.key_queries):
        return None
    index = file_golden_cases.recorded_index()
    text = file_golden_cases.Outcome.of(found, expected, index).rewrite().text
    asked: list[Answered] = [
        *zip(expected.key_queries, expected.answers, strict=True),
        ("the file index", [(repr(index),)]),
    ]
    return execution("files", case, text, asked, kind=file_golden_cases.KIND)


def iceberg_execution(case: Take, spark: str) -> Execution | None:
    """A case about Iceberg tables on that Spark."""
    limits = iceberg_golden_cases.LIMITS
    found = iceberg_golden_cases.planned(case.sql)
    known = rewritten(found, limits, recorded(found, case))
    if known is None:
        return None
    return execution("iceberg", case, known[0].text, known[1], kind=iceberg_golden_cases.KIND, spark=spark)


def refused_execution(case: Refusal, kind: str = "", spark: str | None = None) -> Execution:
    """A statement that goes out as it came, for a reason."""
    reason: list[Answered] = [("the reason", [(case.reason.name,)])]
    return execution("refused", case, case.sql, reason, kind=kind, settings=settings_of(case), spark=spark)


def settings_of(case: Refusal) -> Mapping[str, str]:
    """The settings of a session that executes the case."""
    return AS_USERS_RUN_IT if str(case) in NOT_CHEAP else {}

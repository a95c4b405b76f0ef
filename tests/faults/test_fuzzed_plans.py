"""Mutated statements without a server: planning never fails, never takes long, and only ever inserts."""

import re
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from random import Random

import pytest
from grammar import Query, random_query
from mutants import Mutator
from seeding import seeded, seeds
from sieve import Sieve, check
from star_tables import VALUES, random_star
from support.golden_cases import pure_catalog, refusals, takes
from support.worst_texts import seconds
from tally import Tally

from rewriter import KeyQuery, Keys, Plan, Rewrite, RewriteLimits, SkipReason, TableName, apply, parse, plan
from rewriter.planning.views import VIEW_NESTING_MAX
from rewriter.predicates.named_columns import of_table
from rewriter.semijoins.range_query import KeyRangesQuery

LIMITS = RewriteLimits()
CHARS_MAX = 100_000
# A second of processor time is a hundred times what the slowest of the seeds takes.
SECONDS_MAX = 1.0

GOLDEN = Mutator([*(case.sql for case in takes()), *(case.sql for case in refusals())])
GOLDEN_SEEDS = seeds(quick=8, deep=1_000)
MUTANTS_PER_SEED = 100

STAR_SEEDS = seeds(quick=6, deep=1_000)
STATEMENTS_PER_STAR = 20
MUTANTS_PER_STAR = 60

# Of these words' statements, one answer is as good as another.
UNCERTAIN = ("limit", "rand", "first", "any_value", "row_number", "offset", "sample")
# What DuckDB refuses before it runs, and Spark casts.
STRICTER_THAN_SPARK = "Binder Error: Cannot mix values of type"


def planned(sql: str) -> Plan | SkipReason:
    statement = parse(sql, chars_max=CHARS_MAX)
    if isinstance(statement, SkipReason):
        return statement
    names: frozenset[TableName] = frozenset()
    for _ in range(VIEW_NESTING_MAX + 2):
        found = plan(statement, pure_catalog(names), LIMITS)
        if not found.missing:
            return found
        names |= found.missing
    return SkipReason.TABLES_UNSETTLED


def answered(question: KeyQuery, rng: Random) -> Keys | SkipReason:
    """What some rows of the types that were asked for come to."""
    width = 2 if isinstance(question, KeyRangesQuery) else 1
    return question.read([_row(question, width, rng) for _ in range(rng.choice((0, 1, 3, 40)))])


def _row(question: KeyQuery, width: int, rng: Random) -> list[object]:
    row: list[object] = []
    for column in question.columns:
        key = rng.choice(VALUES.get(column.type_name, ("a",)))
        row += [key if isinstance(key, int) else str(key), column.type_name] * width
    return [*row, *("2026-01-01" for _ in question.assumes)]


def rewritten(sql: str, rng: Random) -> Rewrite | None:
    """What becomes of a statement, if anything may."""
    found = planned(sql)
    if isinstance(found, SkipReason):
        return None
    answers: dict[KeyQuery, Keys | SkipReason] = {}
    while pending := found.pending(answers):
        answers |= {question: answered(question, rng) for question in pending}
    return apply(found, answers, LIMITS)


def insertions(rewrite: Rewrite, original: str) -> Iterator[tuple[int, int, str]]:
    """The places of the original that are replaced, each with the pattern of what stands there."""
    for outcome in rewrite.scans:
        reference, conjunct_start = outcome.scan.reference, outcome.scan.conjunct_start
        if outcome.predicate is None:
            continue
        if conjunct_start is not None:
            conjunct = of_table(outcome.predicate, original[reference.alias_start : reference.alias_stop])
            yield conjunct_start, conjunct_start, re.escape(f"{conjunct} AND ")
            continue
        name = re.escape(original[reference.start : reference.stop])
        scan = rf"\(SELECT \* FROM {name} WHERE {re.escape(outcome.predicate)}\)(?: AS (?:\w+|`[^`]+`))?"
        yield reference.start, reference.stop, scan


def is_original_with_insertions(rewrite: Rewrite, original: str) -> bool:
    """Whether the text is, byte for byte, the original with narrowed scans, and conjuncts for tables in view."""
    pattern, copied = "", 0
    for start, stop, inserted in sorted(insertions(rewrite, original)):
        pattern += re.escape(original[copied:start]) + inserted
        copied = stop
    return re.fullmatch(pattern + re.escape(original[copied:]), rewrite.text) is not None


@pytest.mark.parametrize("seed", GOLDEN_SEEDS)
def test_a_mutant_is_left_alone_or_gains_narrowed_scans_and_nothing_else(seed: int) -> None:
    narrowed = 0
    for index in range(MUTANTS_PER_SEED):
        rng = seeded(seed, index)
        sql = GOLDEN.mutant(rng)
        started = time.thread_time()
        try:
            result = rewritten(sql, rng)
        except Exception as error:  # noqa: BLE001 - no text may make the rewriter raise
            pytest.fail(f"seed {seed}, mutant {index}: {error!r}\n{sql!r}")
        if time.thread_time() - started > SECONDS_MAX:
            # The collector of garbage may have looked through all that the process holds.
            least_s = seconds(partial(rewritten, sql, rng), tries=3)
            assert least_s < SECONDS_MAX, f"seed {seed}, mutant {index} takes {least_s} s:\n{sql!r}"
        if result is not None and result.text != sql:
            narrowed += 1
            assert is_original_with_insertions(result, sql), (
                f"seed {seed}, mutant {index}:\n{sql!r}\n{result.text!r}"
            )
    assert narrowed, f"seed {seed} has no mutant that is narrowed: it proves nothing"


@pytest.fixture(scope="module")
def tally() -> Iterator[Tally]:
    """What all the stars come to: one may have no key that can be asked for, and then no answer to compare."""
    tally = Tally()
    yield tally
    assert tally.outcomes["compared"] or len(STAR_SEEDS) == 1, f"compares no answers: {tally.outcomes}"


@pytest.mark.parametrize("seed", STAR_SEEDS)
def test_a_mutant_that_still_is_sql_answers_the_same_once_it_is_narrowed(seed: int, tally: Tally) -> None:
    star = random_star(seeded(seed))
    statements = [random_query(star, seeded(seed, index)) for index in range(STATEMENTS_PER_STAR)]
    mutator = Mutator([query.sql for query in statements if query.comparable and query.read_back is None])
    with closing(Sieve(star)) as sieve:
        for index in range(MUTANTS_PER_STAR):
            rng = seeded(seed, index)
            sql = mutator.mutant(rng)
            comparable = not any(word in sql.lower() for word in UNCERTAIN)
            failure = next(check(sieve, Query(sql, frozenset(), comparable), rng, tally), None)
            if failure is not None and STRICTER_THAN_SPARK in failure:
                continue
            assert failure is None, f"seed {seed}, mutant {index}:\n{failure}\n\n{star}"

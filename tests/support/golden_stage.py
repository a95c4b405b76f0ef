"""A set of golden cases on a real server: same rows with and without the rewrite, and the recorded text.

A quick run leaves out cases that have a stamp (`support/stamps.py`); `--update-goldens` records what the server
says, to be read before it is committed. Statements of a set with a proxy go through that. Those of another one are
rewritten here, by the recorded keys, or by those of now where the statement checks them.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from pyhive import hive
from pyhive.exc import OperationalError

from demo.hive import Endpoint, connect, run
from demo.proxy_process import ProxyProcess, proxy_process
from proxy.operations.query import ResultColumn, Rows
from proxy.operations.spark_versions import older_view_text_sql, read_older_view_text
from proxy.session.catalog.describe import read_description, read_view_text
from rewriter import KeyQuery, Rewrite, TableFacts, TableKind, TableName, ViewText
from support import golden_cases, golden_tables
from support.explain_requests import explanation_of
from support.golden_cases import FOLDER, Expected, Refusal, Row, Take, refusals, table_statements, takes
from support.golden_sets import Ask, GoldenSet, Outcome, recorded, sent, settings_of
from support.golden_tables import INDEXED, SKEWED, Index, IndexRow
from support.goldens import recorded_rows
from support.metrics_of_proxy import recovered_count
from support.proxies import patient
from support.server_version import CAST_OPERATOR, needs
from support.stamps import UNCHANGED, Execution, Stamps, stamps_in


def answer(session: hive.Connection, sql: str) -> Counter[str]:
    """The rows of a statement, in any order."""
    return Counter(map(repr, run(session, sql)))


def assert_equal(found: object, expected: object, what: object) -> None:
    """Two results must be equal. An assertion here tells neither: pytest rewrites those of test modules alone."""
    assert found == expected, f"{what}\nexpected: {expected}\nfound:    {found}"


@dataclass(frozen=True)
class Stage:
    """The set, with its tables on a server, and sessions there."""

    cases: GoldenSet
    direct: hive.Connection
    stamps: Stamps
    refused: Stamps
    # The versions of another engine than the environment's Spark.
    engine: str | None = None
    proxy: ProxyProcess | None = None
    proxied: hive.Connection | None = None

    def check_rule(self, rule: str, *, updating: bool) -> None:
        """Compare the cases of a file that are due with those on the server, all of them if these are recorded."""
        cases = [case for case in takes(self.cases.kind) if case.rule == rule]
        due = [case for case in cases if updating or self.stamps.is_due(str(case), self._execution(case))]
        found = {case.name: self.as_recorded_now(case) for case in due}
        if updating:
            golden_cases.write(rule, found)
        expected = golden_cases.expectations(rule)
        for name, one in found.items():
            assert_equal(one, expected[name], name)

    def as_recorded_now(self, case: Take) -> Expected:
        """The case with the keys of the server's tables, as the proxy explains it too."""
        outcome = self.cases.outcome(case.sql, self.ask)
        if self.proxy is not None:
            explained = self.explain(case.sql)
            assert explained["changed"], f"{case}: {explained['scans']}"
            queries = {reducer["key_query"] for scan in explained["scans"] for reducer in scan["reducers"]}
            assert_equal((queries, explained["rewritten"]), (outcome.used, outcome.text), case)
        return outcome.expected

    def ask(self, question: KeyQuery) -> tuple[Row, ...]:
        """The answer of a key query now: as the proxy asks, each key once if all rows are too many."""
        rows = run(self.direct, sent(question))
        return recorded_rows(rows if len(rows) <= question.rows_max else run(self.direct, question.sql))

    def explain(self, sql: str) -> dict[str, Any]:
        """The proxy's explanation of a statement."""
        assert self.proxy is not None
        found = explanation_of(self.proxy.admin_url, sql=sql, database=self.cases.database)
        assert isinstance(found, dict)
        return found

    def check_take(self, case: Take) -> None:
        """Execute a case that is due as it came and rewritten, and stamp it."""
        if not self.stamps.is_due(str(case), self._execution(case)):
            pytest.skip(UNCHANGED)
        if "::" in case.sql:
            needs(self.direct, *CAST_OPERATOR)
        outcome = self.cases.outcome(case.sql, recorded(case), index=self.index)
        assert outcome.text != case.sql, case
        if self.index is not None:
            by_order = self.cases.outcome(case.sql, recorded(case))
            assert_equal(_skipped(outcome.rewrite), _skipped(by_order.rewrite), case)
        # Of what an INSERT writes the index would not know.
        if not (self.index is not None and case.sql.startswith("INSERT")):
            direct = answer(self.direct, case.sql)
            assert_equal(self._rewritten_answer(case, outcome), direct, f"{case.sql}\n{outcome.text}")
        execution = self._execution(case, outcome.rows.get)
        assert execution is not None, "a key query has no recorded answer"
        self.stamps.came_out_equal(str(case), execution)

    def _execution(self, case: Take | Refusal, ask: Ask | None = None) -> Execution | None:
        return self.cases.execution(case, ask, self.engine)

    def _rewritten_answer(self, case: Take, outcome: Outcome) -> Counter[str]:
        if self.proxy is None:
            return answer(self.direct, outcome.text)
        before = recovered_count(self.proxy)
        found = answer(self.proxied, case.sql)
        assert recovered_count(self.proxy) == before, "what was rewritten failed, and was run again as it came"
        return found

    def check_refusal(self, case: Refusal) -> None:
        """Have a case that is due explained, execute it, directly and by the proxy, and stamp it."""
        execution = self._execution(case)
        if not self.refused.is_due(str(case), execution):
            pytest.skip(UNCHANGED)
        if self.proxy is not None:
            found = self.explain(case.sql)
            scans = [found] if case.scan is None else [one for one in found["scans"] if one["alias"] == case.scan]
            assert_equal({one["skip_reason"] for one in scans}, {case.reason.name}, case)
        if case.executes:
            sessions = [one for one in (self.direct, self.proxied) if one is not None]
            for name, setting in settings_of(case).items():
                _ = [run(session, f"SET {name}={setting}") for session in sessions]
            answers = [answer(session, case.sql) for session in sessions]
            assert_equal(answers[-1], answers[0], case.sql)
            _ = [run(session, f"RESET {name}") for name in settings_of(case) for session in sessions]
        assert execution is not None
        self.refused.came_out_equal(str(case), execution)

    def described(self, name: str) -> TableFacts:
        """A table as the proxy reads its description."""
        facts = read_description(self._rows(f"DESCRIBE TABLE EXTENDED {name}"))
        assert facts is not None, name
        if self.cases.kind == "files":
            # The sizes of files are not those of the next server.
            return replace(golden_tables.with_layout(name, facts), size_bytes=None, view=None)
        if facts.kind is TableKind.VIEW and facts.view is None:
            return replace(facts, view=self._text_of_view(name))
        return facts

    def _text_of_view(self, name: str) -> ViewText | None:
        try:
            return read_view_text(self._rows(f"DESCRIBE TABLE EXTENDED {name} AS JSON"))
        except OperationalError:  # before Spark 4
            older = older_view_text_sql(TableName((name,)))
            return read_older_view_text(self._rows(older), TableName((name,))) if older is not None else None

    def _rows(self, sql: str) -> Rows:
        return Rows((ResultColumn("col_name", "string"),), tuple(tuple(row) for row in run(self.direct, sql)), 0.0)

    @cached_property
    def index(self) -> Index | None:
        """The rows that an index of the real files has, in the order of the recorded ones; None: no index."""
        if not self.cases.limits.has_file_index:
            return None
        known = golden_tables.facts(self.cases.kind)
        return {name: self._files(name, known[name]) for name in INDEXED if known[name].takes_file_hints}

    def _files(self, name: str, facts: TableFacts) -> list[IndexRow]:
        """The contents of a table's files, by one pass over their rows."""
        types = {column.name: column.type_name for column in facts.columns}
        bounds = ", ".join(
            f"'{column}', named_struct('type', '{types[column]}', 'low', CAST(min({column}) AS STRING),"
            f" 'high', CAST(max({column}) AS STRING), 'nulls', count_if({column} IS NULL))"
            for column in INDEXED[name]
        )
        selected = (
            "SELECT _metadata.file_path, _metadata.file_size, unix_millis(_metadata.file_modification_time),"
            f" count(*), to_json(map({bounds})) FROM {name} GROUP BY ALL"
        )
        found = [(*row, json.dumps(self._lacks(name, row[0]))) for row in run(self.direct, selected)]
        return [
            (*row[:4], json.dumps(json.loads(row[4])), row[5]) for row in sorted(found, key=lambda row: row[4:])
        ]

    def _lacks(self, name: str, path: str) -> list[dict[str, object]]:
        """The skewed tuples that no row of a file has."""
        if name not in SKEWED:
            return []
        columns, tuples = SKEWED[name]
        selected = f"SELECT DISTINCT {', '.join(columns)} FROM {name} WHERE _metadata.file_path = '{path}'"
        held = {tuple(map(str, row)) for row in run(self.direct, selected)}
        return [{"columns": list(columns), "tuples": [list(values) for values in tuples if values not in held]}]


def _skipped(rewrite: Rewrite) -> list[int]:
    return [len(outcome.files.misses) if outcome.files is not None else 0 for outcome in rewrite.scans]


@contextmanager
def staged(
    cases: GoldenSet, endpoint: Endpoint, directory: Path, *, updating: bool, engine: str | None = None
) -> Iterator[Stage]:
    """Makes the tables on the server, unless another set has, and starts the proxy if the set has one."""
    kind = cases.kind
    with ExitStack() as stack:
        direct = stack.enter_context(closing(connect(endpoint)))
        is_new = not run(direct, f"SHOW DATABASES LIKE '{cases.database}'")
        created = [f"CREATE DATABASE {cases.database}"] if is_new else []
        tables = table_statements(kind) if is_new else []
        for statement in (*created, f"USE {cases.database}", *cases.session, *tables):
            run(direct, statement)

        def stamps(name: str, of: Sequence[Take | Refusal]) -> Stamps:
            path = FOLDER / "verified" / f"{name}.json"
            return stack.enter_context(stamps_in(path, list(map(str, of)), updating=updating))

        taken = stamps(cases.name, takes(kind))
        refused = stamps("_".join(filter(None, ("refused", kind))), refusals(kind))
        stage = Stage(cases, direct, taken, refused, engine)
        if cases.proxy is None:
            yield stage
            return
        proxy = stack.enter_context(proxy_process(endpoint, directory, options=patient(*cases.proxy)))
        proxied = stack.enter_context(closing(connect(proxy.endpoint, database=cases.database)))
        yield replace(stage, proxy=proxy, proxied=proxied)

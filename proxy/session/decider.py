"""Decides about the statements of one session: whether they are rewritten, by which keys, and why not."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from proxy.operations.query import QueryResult, Sharing
from proxy.session.decision import Decision, DecisionTerms
from proxy.session.decision_run import DecisionRun, may_narrow
from proxy.session.feedback.spark_listings import SessionListings
from proxy.session.session_catalog import KnownPartitions, Queries, SessionCatalog, SessionCatalogs
from proxy.session.shared_state import SharedState
from proxy.statements.statement_class import StatementClass
from proxy.statements.written_tables import WriteTargets, words_in
from rewriter import TableName

T = TypeVar("T")

# Statements that may change the columns of a table, which Iceberg's catalog keeps as they were for each session.
_DEFINING = frozenset({"alter", "call", "create", "drop", "replace"})


class Decider:
    """The catalogs of one client session, and the decisions that they lead to.

    `state` is the digest of the session's state, None where it is like that of no other session.
    """

    def __init__(self, shared: SharedState, list_owner: tuple[str, ...] = ()) -> None:
        """See `SessionCatalogs` for `list_owner`."""
        self._shared = shared
        self._catalogs = SessionCatalogs(shared, list_owner)
        self.listings = SessionListings(shared.clock)

    def decide(self, statement: StatementClass, terms: DecisionTerms) -> Queries[Decision]:
        """Decide about a statement; `terms.is_explained` tells whether it is going to be sent."""
        catalog = self._catalogs.of_state(terms.state)
        run = DecisionRun(self._shared, catalog, self.listings, statement, terms)
        return self._shared_decision(run, catalog)

    def _shared_decision(self, run: DecisionRun, catalog: SessionCatalog) -> Queries[Decision]:
        """The decision. Its metadata is asked for in the proxy's own session of the state, also beside it."""
        decision = yield from self._shared_queries(run.decision(), catalog)
        beside, unchecked = decision.beside, decision.unchecked
        if beside is not None:
            decision = replace(decision, beside=self._shared_queries(beside, catalog))
        if unchecked is not None:
            # The check needs answers of now: none that is on its way will do.
            queries = self._shared_queries(unchecked.queries, catalog, key=object())
            decision = replace(decision, unchecked=replace(unchecked, queries=queries))
        return decision

    def _shared_queries(
        self, queries: Queries[T], catalog: SessionCatalog, key: Hashable | None = None
    ) -> Queries[T]:
        """The queries for the proxy's own session of the state, where the session shares its answers.

        Several sessions may wait for one answer: until a write to its tables goes through the proxy, one that is
        on its way is as good as one that is asked for now.
        """
        state = catalog.shared_state
        if state is None:
            return (yield from queries)
        answer: QueryResult | None = None
        try:
            while True:
                # None starts a generator, which its type cannot express.
                query = queries.send(answer)  # type: ignore[arg-type]
                if query.is_for_client:
                    # Of keys, a session is promised those of a moment after its statement came.
                    answer = yield query
                    continue
                fence, reads = self._shared.writes.open(), query.reads
                is_fresh = fence.is_quiet if reads is None else partial(fence.holds, reads)
                answer = yield replace(query, sharing=Sharing(state, key or catalog.sharing_key, is_fresh))
        except StopIteration as end:
            value: T = end.value
            return value
        finally:
            queries.close()

    def may_narrow(self, statement: StatementClass, state: bytes | None) -> bool:
        """Whether a statement may be rewritten, by a cheap look at its text."""
        return may_narrow(statement, self._shared.config, self._catalogs.of_state(state))

    def is_table(self, name: TableName, state: bytes | None) -> bool:
        """Whether a name is known to be that of a table, and of no view."""
        return self._catalogs.of_state(state).is_table(name)

    def known_partitions(self, name: TableName, condition: str, state: bytes | None) -> Queries[KnownPartitions]:
        """A table and its partitions, or those that the filter keeps, as far as the session may know them."""
        catalog = self._catalogs.of_state(state)
        return self._shared_queries(catalog.known_partitions(name, condition), catalog)

    def look_up_written(self, statement: StatementClass, state: bytes | None) -> Queries[None]:
        """Ask whether the target of a write is a table, where it could as well be a view of one."""
        tables = statement.written
        if isinstance(tables, WriteTargets) and tables.maybe_views:
            catalog = self._catalogs.of_state(state)
            yield from self._shared_queries(catalog.look_up(tables.maybe_views), catalog)

    def forget_changed(self, statement: StatementClass, state: bytes | None) -> None:
        """Forget the metadata that a statement may change: meanings of names and settings, partitions, costs.

        One that says which tables it writes changes those alone: the tables that it reads are as they were. One
        that writes none changes nothing for other sessions.
        """
        tables = statement.written
        if isinstance(tables, WriteTargets):
            names = tables.names
            self._catalogs.forget_written(tables, state)
        else:
            names = words_in(statement.text)
            self._catalogs.forget(names, state)
        if tables is None:
            return
        if state is not None and statement.first_word in _DEFINING:
            self._shared.own_sessions.renew(state)
        self._shared.lists.forget(names)
        self._shared.gate.written(names)

    def forget_own(self) -> None:
        """Forget the answers that the session got while its state was like that of no other: it has changed."""
        self._catalogs.forget_own()

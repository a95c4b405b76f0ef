"""Decides about the statements of one session: whether they are rewritten, by which keys, and why not."""

from __future__ import annotations

from proxy.session.chances import chances_of
from proxy.session.decide import decide
from proxy.session.decision import Decision, DecisionTerms
from proxy.session.feedback.spark_listings import SessionListings
from proxy.session.session_catalog import KnownPartitions
from proxy.session.session_catalogs import SessionCatalogs
from proxy.session.shared_state import SharedState
from proxy.statements.statement_class import StatementClass
from proxy.statements.written_tables import WriteTargets, words_in
from rewriter import TableName

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

    async def decide(self, statement: StatementClass, terms: DecisionTerms) -> Decision:
        """Decide about a statement; `terms.is_explained` tells whether it is going to be sent."""
        return await decide(self._shared, self._catalogs.of_state(terms.state), self.listings, statement, terms)

    def may_narrow(self, statement: StatementClass, state: bytes | None) -> bool:
        """Whether a statement may be rewritten, by a cheap look at its text."""
        return chances_of(statement, self._shared.config, self._catalogs.of_state(state)).has_any

    def is_table(self, name: TableName, state: bytes | None) -> bool:
        """Whether a name is known to be that of a table, and of no view."""
        return self._catalogs.of_state(state).is_table(name)

    async def known_partitions(self, name: TableName, condition: str, state: bytes | None) -> KnownPartitions:
        """A table and its partitions, or those that the filter keeps, as far as the session may know them."""
        return await self._catalogs.of_state(state).known_partitions(name, condition)

    async def look_up_written(self, statement: StatementClass, state: bytes | None) -> None:
        """Ask whether the target of a write is a table, where it could as well be a view of one."""
        tables = statement.written
        if isinstance(tables, WriteTargets) and tables.maybe_views:
            await self._catalogs.of_state(state).look_up(tables.maybe_views)

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

"""Decides about the statements of one session: whether they are rewritten, by which keys, and why not."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from proxy.limits.limits import Limit
from proxy.session.catalog.answer_policy import AnswerPolicy
from proxy.session.catalog.answers import Answer
from proxy.session.catalog.metadata_cache import SessionMetadata
from proxy.session.chances import chances_of
from proxy.session.decide import decide
from proxy.session.decision import Decision, DecisionTerms
from proxy.session.feedback.spark_listings import SessionListings
from proxy.session.layout.partition_lists import PartitionLists
from proxy.session.layout.partition_store import StoreWait
from proxy.session.limit_judge import LimitJudge
from proxy.session.session_catalog import KnownPartitions, SessionCatalog, asking
from proxy.session.shared_state import SharedState
from proxy.statements.statement_class import StatementClass
from proxy.statements.written_tables import WriteTargets, words_in
from rewriter import SkipReason, TableName

# First words of statements that may change the columns of a table. Iceberg's catalog keeps the old columns for
# each session.
_DEFINING = frozenset({"alter", "call", "create", "drop", "replace"})


class SessionCatalogs:
    """The catalogs of one client session: one for each state that it is in."""

    def __init__(self, shared: SharedState, list_owner: tuple[str, ...] = ()) -> None:
        """`list_owner` is the owner of lists, given for a session of the proxy's own that no client uses."""
        self._shared = shared
        # A new configuration counts from the next session on.
        self._settings = shared.config.catalog
        self._lists = PartitionLists(shared.lists, self._settings, shared.clock)
        self._list_owner = list_owner
        self._cache = shared.metadata
        self._unshared = self._cache.of_nobody_else(list_owner)

    def of_state(self, state: bytes | None) -> SessionCatalog:
        """A catalog for one statement of the session in this state (`SessionState.digest`).

        It has the time that the statement may wait for a store, and shares its metadata with other sessions of the
        state. The metadata is this session's alone where the state has no digest, or where the proxy has no
        session of its own in that state to ask in.
        """
        if self._cache is not self._shared.metadata:
            # The configuration was read anew.
            self._cache = self._shared.metadata
            self._unshared = self._cache.of_nobody_else(self._list_owner)
        known = None if state is None else self._shared.own_sessions.state_of(state)
        metadata = self._unshared if known is None else self._shared.metadata.of(known)
        return SessionCatalog(
            self._shared,
            self._settings,
            self._lists,
            StoreWait(self._settings.store_deadline_s),
            is_like_no_other=state is None,
            metadata=metadata,
            policy=AnswerPolicy(asking(metadata, self._shared.writes)),
        )

    def forget(self, words: Collection[str], state: bytes | None) -> None:
        """Forget the meanings of names and settings, for all sessions of a state.

        This session also forgets the overview of the file index. The others do so where these words may name the
        index. Files that it has listed need not be asked for again (`proxy.session.layout.file_lists`).
        """
        is_of_index = self._shared.files.is_named_by(words)
        for metadata in self._kept(state):
            metadata.forget()
            if is_of_index or metadata is self._unshared:
                metadata.indexed = None

    def forget_written(self, tables: WriteTargets, state: bytes | None) -> None:
        """Forget these tables, which may differ from here on, for all sessions of a state."""
        for metadata in self._kept(state):
            metadata.forget_written(tables)
            if self._shared.files.is_named_by(tables.names):
                metadata.indexed = None

    def _kept(self, state: bytes | None) -> Iterator[SessionMetadata]:
        """The metadata of this session, and of the state, whether the proxy has a session to ask in or not."""
        yield self._unshared
        shared = None if state is None else self._shared.metadata.kept(state)
        if shared is not None:
            yield shared

    def forget_unshared(self) -> None:
        """Forget the answers that this session got while its state was like that of no other."""
        self._unshared.forget()
        self._unshared.indexed = None


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

    def judge(self, statement: StatementClass, terms: DecisionTerms, limits: Sequence[Limit]) -> LimitJudge:
        """The judge of a statement by its user's limits."""
        catalog = self._catalogs.of_state(terms.state)
        policy = AnswerPolicy(catalog.policy.ask, terms.grace_s, is_session_unchanged=terms.is_session_unchanged)
        return LimitJudge(catalog.by(policy), statement, limits)

    def may_narrow(self, statement: StatementClass, state: bytes | None) -> bool:
        """True if a statement may be rewritten, by a cheap look at its text."""
        return chances_of(statement, self._shared.config, self._catalogs.of_state(state)).has_any

    def is_table(self, name: TableName, state: bytes | None) -> bool:
        """True if a name is known to be that of a table, and of no view."""
        return self._catalogs.of_state(state).is_table(name)

    def note_evolution(self, state: bytes | None, backend: str) -> None:
        """Note whether a backend lets writes add columns, as it told a session that has set nothing about it."""
        told = self._catalogs.of_state(state).last_settings
        if told is not None and told.value.uncertainty is not SkipReason.SETTINGS_UNKNOWN:
            answer = Answer(told.value.evolves_schemas, told.came_at, told.until)
            self._shared.evolving.told(backend, answer)

    async def known_partitions(self, name: TableName, condition: str, state: bytes | None) -> KnownPartitions:
        """A table and its partitions, or those that the filter keeps, as far as the session may know them."""
        return await self._catalogs.of_state(state).known_partitions(name, condition)

    async def look_up_written(self, statement: StatementClass, state: bytes | None) -> None:
        """Ask whether the target of a write is a table, where it could as well be a view of one."""
        tables = statement.written
        if isinstance(tables, WriteTargets) and tables.maybe_views:
            await self._catalogs.of_state(state).look_up(tables.maybe_views)

    async def look_up_settings(self, state: bytes | None) -> None:
        """Ask for the server's settings, unless they are known."""
        _ = await self._catalogs.of_state(state).server_settings()

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

    def forget_unshared(self) -> None:
        """Forget the answers that the session got while its state was like that of no other: it has changed."""
        self._catalogs.forget_unshared()

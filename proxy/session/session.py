"""One HiveServer2 session: decides about each of its statements. No sockets, no asyncio.

A decision is async code that asks by `ask_driver`. The rewrite service answers, in the client's own session or in
one of the proxy's own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from uuid import uuid4

import msgspec

from proxy.limits.limits import SQL_STATE, Finding, Limit, Result, limits_for, unknown
from proxy.operations.dispatch import (
    Dispatch,
    Outcome,
    OutcomeKind,
    Premises,
    Refusal,
    WriteUnderWay,
    never_own_fault,
    never_unread,
)
from proxy.operations.key_check import ASK_FIRST, KeyCheck, KeyTerms
from proxy.operations.session_port import KnownState, SessionOpening
from proxy.operations.spark_versions import is_filter_refused
from proxy.session.catalog.iceberg_snapshots import SNAPSHOT_GONE
from proxy.session.consistency.session_state import SessionState
from proxy.session.consistency.session_writes import SessionWrites
from proxy.session.decider import Decider
from proxy.session.decision import Decision, DecisionTerms
from proxy.session.feedback.cost_gate import PRIVATE_SCOPE, Run, StatementKey, Way, owner_of
from proxy.session.feedback.own_faults import is_own_fault
from proxy.session.feedback.quarantine import Suspects, learn
from proxy.session.feedback.quarantine_list import Cause
from proxy.session.feedback.spark_errors import is_write_conflict
from proxy.session.limit_judge import LimitJudge, may_read
from proxy.session.session_catalog import KnownPartitions
from proxy.session.session_settings import (
    SessionSettings,
    setting_statement,
    settings_of_opening,
)
from proxy.session.shadow.compare import Comparison, Pair, ShadowLimits, ShadowVerdict
from proxy.session.shadow.differences import watch
from proxy.session.shared_state import SharedState
from proxy.session.statement_log import LoggedStatement, NoStatementLog, StatementEntry, StatementLog
from proxy.statements.parse_failures import parse_failure_of
from proxy.statements.skewed_by import skew_statement
from proxy.statements.statement_class import StatementClass
from proxy.statements.written_tables import WriteTargets, words_in
from rewriter import SkipReason, TableName
from rewriter.domains.literals import literal
from rewriter.sql.statement import parse_failure

_log = logging.getLogger(__name__)

_WRITE_OVERTAKEN = (
    "statement %s, which writes, read %s by keys, and a table that the keys came from was written while it ran:"
    " it may lack rows of keys that were added then"
)


class Session:
    """One client session: its settings and its state, and the decisions about its statements."""

    def __init__(
        self,
        shared: SharedState,
        opened: SessionOpening | None = None,
        log: StatementLog | None = None,
        *,
        is_own: bool = False,
    ) -> None:
        """`is_own` tells that it is a session of the proxy's own, which no client uses."""
        opened = opened or SessionOpening(owner=uuid4().hex)
        self._shared = shared
        self._log = (log or NoStatementLog()).session_opened(opened)
        self._decider = Decider(shared, KnownState(b"", opened).list_owner if is_own else ())
        self._backend, self._opened_at = opened.backend, shared.clock()
        self._owner, self._user = owner_of(opened.counts_for), opened.user
        self._is_seen = opened.is_seen
        self._state = SessionState(opened, shared.clock)
        self._writes = SessionWrites(shared.writes)
        # Rewritten statements that write, until their ends have been told.
        self._rewritten_writes: set[WriteUnderWay] = set()
        # The number of changes of its state when it last forgot its unshared answers; -1 during a change.
        self._told_after = 0
        # Names this session in remembered keys.
        self._asker = uuid4().hex
        # The session settings that the client has set, by name.
        self._own: Mapping[str, str]
        self._own, wrong = settings_of_opening(opened.configuration)
        for name in wrong:
            _log.warning("a client opened a session with a setting that is not understood: %s", name)
        self._log.labelled(self._settings.label)

    async def rewrite(self, statement: StatementClass, keys: KeyTerms = ASK_FIRST) -> Dispatch:
        """Decide about a statement of the client: the original is dispatched, or its rewritten text.

        `keys` are the remembered keys that it may use.

        The order of the steps matters to soundness. The number of changes is taken before the session asks
        anything, and compared after its last query. The statement itself is counted as a write and a change last:
        keys are not out of date by a statement's own doing.
        """
        # Read once for the statement: a reload may change the configuration while its keys are asked for.
        settings = self._settings
        handled = self._setting(statement) or self._skew(statement, settings)
        if handled is not None:
            return handled
        if not statement.keeps_meanings:
            self._decider.forget_changed(statement, self._state.digest)
        judge = self._judge(statement, settings)
        if self._state.is_changing:
            # Keys could be asked for before the change, and the statement run after it.
            return self._forward(statement, await _findings(judge))
        self._catch_up()
        changes = self._state.changes
        await self._look_up_written(statement)
        if not settings.enabled:
            return self._undecided(statement, SkipReason.SWITCHED_OFF, await _findings(judge))[0]
        if self._is_shadowed(statement, settings):
            findings = await _findings(judge)
            dispatch, entry = self._undecided(statement, SkipReason.IN_SHADOW, findings)
            shadow = partial(self._shadow, statement, settings, entry)
            return dispatch if dispatch.refusal is not None else replace(dispatch, beside=shadow)
        if judge is not None and not await judge.is_within():
            # A narrowed statement may be within the limit, so it is narrowed whether that saves time or not.
            settings = msgspec.structs.replace(settings, cost_gate=False)
        decision = await self._decider.decide(statement, self._terms(settings, keys))
        self._note_evolution()
        findings = await _findings(judge, decision)
        if self._state.changes != changes:
            # A statement on another connection changed the session.
            return self._forward(statement, await _findings(judge))
        premises = self._premises(decision, changes)
        run = decision.run(self._decider.listings)
        lists_files = self._shared.gate.lists_files(run) if run is not None else None
        decision.timings.total_s += judge.seconds if judge is not None else 0.0
        entry = self._log.began(statement.text, decision, lists_files=lists_files)
        self._note(decision, entry.id)
        self._tell_limits(findings, entry)
        refusal = _refusal(findings)
        of_original = judge.original if judge is not None and decision.is_narrowed else ()
        told = *self._begin(statement, entry), self._learning(decision, run)
        dispatch = self._dispatch(decision, premises, told, entry.id)
        return replace(
            dispatch,
            is_unread=_parse_failure(statement) if dispatch.text == statement.text else never_unread,
            beside=decision.beside if refusal is None else None,
            on_operation=entry.operation_opened,
            statement_id=entry.id,
            refusal=refusal,
            original_refusal=_refusal(of_original),
            on_original_refused=partial(self._tell_limits, of_original, entry),
        )

    def is_quick(self, statement: StatementClass) -> bool:
        """True if a decision takes no more than a look at the text."""
        return not (self._decider.may_narrow(statement, self._state.digest) or self._limits_of(statement))

    def known_state(self) -> KnownState | None:
        """The state of the session now; None where it is not known, or is like that of no other session."""
        return self._state.known

    def forward_unchanged(self, statement: StatementClass) -> Dispatch:
        """Dispatch the original, which may write, or change the session. It is not known what it would read."""
        limits = self._limits_of(statement)
        return self._forward(statement, (unknown(limits, "it was not looked at"),) if limits else ())

    def _forward(self, statement: StatementClass, findings: Sequence[Finding]) -> Dispatch:
        return self._original(statement, self._log.began(statement.text), findings)

    def writes_before(self, statement: StatementClass) -> Sequence[WriteUnderWay]:
        """Rewritten statements that have to end before this one, which may change the session, is released."""
        if not self._rewritten_writes or not self._state.may_be_changed_by(statement):
            return ()
        setting = setting_statement(statement.text, self._own)
        if setting is not None and setting.verb != "reset":
            # It is a setting of ours.
            return ()
        return tuple(write for write in self._rewritten_writes if not write.is_over)

    async def explain(self, sql: str, *, run_key_queries: bool) -> Decision:
        """Decide as `rewrite` does where no keys are remembered, and tell everything.

        Without key queries nothing is inserted.
        """
        self._catch_up()
        settings, statement = self._settings, StatementClass(sql)
        terms = replace(self._terms(settings), run_key_queries=run_key_queries, is_explained=True)
        judge = self._judge(statement, settings)
        if judge is not None and settings.enabled and not await judge.is_within():
            terms = replace(terms, settings=msgspec.structs.replace(settings, cost_gate=False))
        decision = await self._decider.decide(statement, terms)
        findings = await _findings(judge, None if _left_as_original(settings) else decision)
        failure = parse_failure(sql) if decision.skip is SkipReason.DOES_NOT_PARSE else None
        skip = _left_as_original(settings) or decision.skip
        return replace(decision, skip=skip, parse_failure=failure, limits=findings)

    async def known_partitions(self, name: TableName, condition: str) -> KnownPartitions:
        """A table and its partitions, or those that the filter keeps, as far as the session may know them."""
        self._catch_up()
        return await self._decider.known_partitions(name, condition, self._state.digest)

    def last_statements(self) -> Sequence[LoggedStatement]:
        """The last statements of the session, the newest first."""
        return self._log.last_statements()

    def answer(self, statement: StatementClass, query: str, deciding_s: float = 0.0) -> Dispatch:
        """Dispatch a query that holds the proxy's own answer to a statement."""
        entry = self._log.answered(statement.text, deciding_s)
        return Dispatch(query, on_outcome=entry.ended, on_operation=entry.operation_opened, statement_id=entry.id)

    def used_elsewhere(self) -> None:
        """Another process has forwarded statements of the session, which may have changed its settings."""
        self._state.note_unseen_settings()
        self._writes.evolve()

    def closed(self, *, is_forgotten: bool = False) -> None:
        """The session has ended, or is forgotten here and goes on."""
        self._writes.closed(is_forgotten=is_forgotten)
        self._log.closed()

    def _original(
        self, statement: StatementClass, entry: StatementEntry, findings: Sequence[Finding] = ()
    ) -> Dispatch:
        self._tell_limits(findings, entry)
        return Dispatch(
            statement.text,
            is_unread=_parse_failure(statement),
            on_outcome=_Listeners(self._begin(statement, entry)),
            on_operation=entry.operation_opened,
            statement_id=entry.id,
            refusal=_refusal(findings),
        )

    def _undecided(
        self, statement: StatementClass, reason: SkipReason, findings: Sequence[Finding]
    ) -> tuple[Dispatch, StatementEntry]:
        """Dispatch an original: the times of rewritten runs, in any session, are compared with its own."""
        gate = self._shared.gate
        facts = gate.facts_among(words_in(statement.text)) if statement.may_have_a_join else ()
        run = Run(StatementKey("", ""), Way.ORIGINAL, self._decider.listings, facts=facts) if facts else None
        lists_files = gate.lists_files(run) if run is not None else None
        entry = self._log.began(statement.text, None, reason, lists_files=lists_files)
        dispatch = self._original(statement, entry, findings)

        def ended(outcome: Outcome) -> None:
            if run is not None and outcome.kind is OutcomeKind.FINISHED:
                gate.files_listed(run)

        return replace(dispatch, on_outcome=_Listeners((dispatch.on_outcome, ended))), entry

    # --- limits on what it may read

    def _limits_of(self, statement: StatementClass) -> tuple[Limit, ...]:
        """The limits that may count for a statement; all limits where its user is not known."""
        limits = self._shared.limits
        if not limits or not may_read(statement):
            return ()
        return limits_for(limits, self._user if self._is_seen else None)

    def _judge(self, statement: StatementClass, settings: SessionSettings) -> LimitJudge | None:
        """The judge of a statement; None where no limit can count for it."""
        limits = self._limits_of(statement)
        return self._decider.judge(statement, self._terms(settings), limits) if limits else None

    def _tell_limits(self, findings: Sequence[Finding], entry: StatementEntry) -> None:
        """Tell of the limits that a statement met."""
        if not findings:
            return
        entry.limited(findings)
        for found in findings:
            self._shared.metrics.limit_met(found.limit, found.result)
            if found.result is not Result.UNKNOWN:
                _log.warning(
                    "statement %s of %s met the limit %s on %s: %s",
                    *(entry.id, self._user, found.limit, found.table, found.result.value),
                )

    async def _look_up_written(self, statement: StatementClass) -> None:
        """Ask about the target of a write: other sessions need the answer, also where this one is left alone."""
        tables = statement.written
        if tables is None or not self._shared.config.rewrite.enabled or self._state.hidden_names is not None:
            return
        await self._decider.look_up_written(statement, self._state.digest)
        is_known = self._shared.evolving.evolves(self._backend, self._opened_at) is not None
        if not is_known and not tables.may_change_columns:
            await self._decider.look_up_settings(self._state.digest)
            self._note_evolution()

    def _note_evolution(self) -> None:
        if not self._state.may_set_evolution:
            self._decider.note_evolution(self._state.digest, self._backend)

    def _catch_up(self) -> None:
        """Forget the answers that this session shares with no other, from before the last change and during it."""
        if self._told_after != self._state.changes:
            self._decider.forget_unshared()
            # While a change lasts, an answer may still be from before it.
            self._told_after = -1 if self._state.is_changing else self._state.changes

    @property
    def _settings(self) -> SessionSettings:
        config = self._shared.config
        settings, users = SessionSettings.configured(config, self._own), config.rewrite.only_users
        is_off = self._shared.off_switch.is_off or bool(users and self._user not in users)
        return msgspec.structs.replace(settings, enabled=False) if is_off else settings

    @property
    def _scope(self) -> str:
        """Sessions of one state share lessons, and so do those of one user whose states are like no other.

        The temporary views of the latter may differ, but lessons only decide what is worth the time. dbt opens a
        session with a temporary view for each run of a model.
        """
        digest = self._state.digest
        return PRIVATE_SCOPE + self._owner if digest is None else digest.hex()

    def _terms(self, settings: SessionSettings, keys: KeyTerms = ASK_FIRST) -> DecisionTerms:
        state = self._state
        # Read before the digest: a change in between counts.
        changes = state.changes

        def is_session_unchanged() -> bool:
            return self._is_as_after(changes) and keys.is_session_here()

        return DecisionTerms(
            settings,
            self._scope,
            self._owner,
            self._asker,
            state.digest,
            hidden_names=state.hidden_names,
            has_variables=state.has_variables,
            keys=keys,
            is_session_unchanged=is_session_unchanged,
        )

    def _begin(self, statement: StatementClass, entry: StatementEntry) -> tuple[Callable[[Outcome], None], ...]:
        """Count a statement that is about to be released. Returns the listeners for its outcome."""
        may_evolve = self._shared.evolving.evolves(self._backend, self._opened_at) is not False
        write = self._writes.begin(statement, self._is_table, may_evolve=may_evolve)
        told = self._state.begin(statement), write, entry.ended
        # Read last: of a write and a setting that begin at once, one sees the other.
        if self._state.may_set_evolution:
            self._writes.evolve()
        return tuple(listener for listener in told if listener is not None)

    def _is_table(self, name: TableName) -> bool:
        """True if a name is known to be that of a table, and of no view."""
        is_certain = not self._state.is_changing and self._state.hidden_names is None
        return is_certain and self._decider.is_table(name, self._state.digest)

    def _dispatch(
        self,
        decision: Decision,
        premises: Premises,
        told: tuple[Callable[[Outcome], None], ...],
        statement_id: str,
    ) -> Dispatch:
        sql, rewrite = decision.original, decision.rewrite
        if not decision.is_narrowed or rewrite is None:
            return Dispatch(sql, on_outcome=_Listeners(told))
        if not decision.only_reads:
            return self._write(decision, premises, told, statement_id)
        return Dispatch(
            decision.text,
            may_fall_back=True,
            is_own_fault=never_own_fault if rewrite.is_narrowed else is_own_fault,
            premises=premises,
            check=self._check(decision),
            on_outcome=_Listeners(told),
        )

    def _check(self, decision: Decision) -> KeyCheck | None:
        """The check of the remembered keys that a statement uses."""
        unchecked = decision.unchecked
        if unchecked is None:
            return None
        # One more deadline is for the connection, and for the views that the keys rest on.
        deadline_s = self._shared.config.rewrite.key_query_deadline_s * (len(unchecked.keys) + 1)
        told = self._shared.metrics.keys_checked
        return KeyCheck(unchecked.work, unchecked.began_at, deadline_s, on_settled=told)

    def _write(
        self,
        decision: Decision,
        premises: Premises,
        told: tuple[Callable[[Outcome], None], ...],
        statement_id: str,
    ) -> Dispatch:
        """The dispatch of a rewritten statement that writes: changes of the session wait for its end."""
        write = WriteUnderWay()
        facts = ", ".join(sorted(map(str, decision.rewrite.tables))) if decision.rewrite is not None else ""
        # A statement that does not name its target may write any table by a path, and its premises would see its
        # own write.
        names_target = isinstance(StatementClass(decision.original).written, WriteTargets)

        def over(outcome: Outcome) -> None:
            write.is_over = True
            self._rewritten_writes.discard(write)
            is_finished = outcome.kind is OutcomeKind.FINISHED
            if is_finished and names_target and not premises.are_tables_unchanged():
                self._shared.metrics.write_overtaken()
                _log.warning(_WRITE_OVERTAKEN, statement_id, facts)

        self._rewritten_writes.add(write)
        return Dispatch(
            decision.text,
            # Our own check fails a MERGE before it commits. Any other failure may come after that.
            may_fall_back=bool(decision.check_failure),
            fall_back_on=decision.check_failure,
            is_own_fault=partial(_lacks, decision.check_failure),
            premises=Premises(premises.is_session_unchanged),
            write=write,
            on_outcome=_Listeners((*told, over)),
        )

    def _premises(self, decision: Decision, changes: int) -> Premises:
        """The state of the session and its tables for which the text is right. The decision itself is not kept."""
        is_session_unchanged = partial(self._is_as_after, changes)
        read_set = decision.read_set
        if read_set is None:
            return Premises(is_session_unchanged)
        return Premises(is_session_unchanged, read_set.is_unchanged)

    def _is_as_after(self, changes: int) -> bool:
        """True if nothing has changed the session since so many changes."""
        return self._state.changes == changes

    def _note(self, decision: Decision, statement_id: str) -> None:
        self._shared.metrics.decided(decision.rewrite, decision.skip, decision.timings.total_s)
        _log_decision(decision, statement_id)

    # --- what is learned from a statement's end

    def _learning(self, decision: Decision, run: Run | None) -> Callable[[Outcome], None]:
        """The listener that learns from the outcome, which may be hours away: the decision is not kept until then.

        A decision holds the statement's tree, which takes much memory, and lists of partitions, for which the
        store keeps all pages that were replaced since.
        """
        shared, suspects, is_narrowed = self._shared, _suspects(decision), decision.is_narrowed
        check_failure = decision.check_failure
        rules = decision.rewrite.rules if decision.rewrite is not None and is_narrowed else frozenset()

        def ended(outcome: Outcome) -> None:
            if outcome.kind is OutcomeKind.REFUSED:
                return
            was_rewritten = is_narrowed and not outcome.original_instead
            shared.metrics.statement_ended(outcome.kind, outcome.seconds, rewritten=was_rewritten)
            if outcome.kind.is_fallback:
                shared.metrics.fell_back(rules)
            # Failures that say nothing about the rewrite itself: keys had changed, a filter was too long for the
            # metastore, or a snapshot was expired as soon as another one was current.
            is_gone = SNAPSHOT_GONE in outcome.message
            is_of_check = bool(check_failure) and check_failure in outcome.message
            expected = is_gone or is_of_check or is_filter_refused(outcome.message)
            if suspects is not None and was_rewritten and check_failure:
                # No second run tells whether the rewrite is to blame, so the next statement runs as the original
                # in any case. Conflicts do not count: an original reads more, and conflicts with other writers
                # more often.
                conflicts = outcome.kind is OutcomeKind.FAILED and is_write_conflict(outcome.message)
                ended_badly = {OutcomeKind.FAILED, OutcomeKind.RECOVERED, OutcomeKind.FAILED_TWICE}
                if outcome.kind in ended_badly and not conflicts:
                    cause = Cause.FAILED if outcome.kind is OutcomeKind.RECOVERED else Cause.MERGE_FAILED
                    shared.quarantine.blame(frozenset(), suspects.key, cause)
            elif suspects is not None and was_rewritten and not is_gone:
                learn(outcome, suspects, shared.quarantine, shared.metastore)
            if run is not None and not expected and not outcome.original_instead:
                shared.gate.ended(run, outcome)

        return ended

    # --- shadow mode

    def _is_shadowed(self, statement: StatementClass, settings: SessionSettings) -> bool:
        if not self._decider.may_narrow(statement, self._state.digest):
            return False
        return settings.mode == "shadow" or self._shared.chance() < self._shared.config.shadow.fraction

    async def _shadow(self, statement: StatementClass, settings: SessionSettings, entry: StatementEntry) -> None:
        """Decide about a statement while its original runs, and compare the answers."""
        shared, limits = self._shared, self._shared.config.shadow
        # Every sound rewrite is compared, whether it pays or not. Other statements of the session go on meanwhile,
        # so its metadata is left to them.
        sound = msgspec.structs.replace(settings, cost_gate=False)
        terms = replace(self._terms(sound), state=None, is_compared=True)
        decision = await Decider(shared).decide(statement, terms)
        key, rewrite, run = decision.key, decision.rewrite, decision.run(self._decider.listings)
        if run is not None:
            # The original has listed their files. From now on `facts_among` finds these facts by their names.
            shared.gate.files_listed(run)
        if not (decision.is_narrowed and decision.only_reads) or rewrite is None or key is None:
            entry.compared(None, decision)
            return

        def told(comparison: Comparison) -> None:
            shared.metrics.shadow_compared(comparison.verdict)
            entry.compared(comparison, decision)
            is_refused = comparison.verdict is ShadowVerdict.REFUSED
            if is_refused and rewrite.tables_sent_to_metastore:
                # As with a statement that is sent rewritten, only the filter is to blame.
                shared.metastore.refused(rewrite.tables_sent_to_metastore, self._owner)
            elif is_refused or comparison.blames_us:
                cause = Cause.DIFFERENT if comparison.verdict is ShadowVerdict.DIFFERENT else Cause.FAILED
                is_wrong = cause is Cause.DIFFERENT
                rules = rewrite.rules if is_wrong else Suspects.of(rewrite, key).rules
                shared.quarantine.blame(rules, key, cause)

        bounds = ShadowLimits(limits.statement_s, limits.total_s, shared.config.rewrite.key_query_bytes_max)
        pair = replace(Pair.of(statement.text, rewrite, decision.snapshots), statement_id=entry.id)
        await watch(pair, bounds, shared.clock, shared.differences, told)

    # --- skewed values of a table

    def _skew(self, statement: StatementClass, settings: SessionSettings) -> Dispatch | None:
        """The dispatch of DDL with Hive's clauses about skewed values; in shadow mode it goes on as it is.

        The statement that is sent keeps the values in table properties, and counts by what it writes itself.
        """
        if not (settings.enabled and settings.skewed_by and settings.mode == "rewrite"):
            return None
        chars_max = self._shared.config.rewrite.statement_chars_max
        skew = skew_statement(statement.text, statement.first_word, chars_max)
        if skew is None:
            return None
        if skew.refusal:
            return self.answer(statement, f"SELECT raise_error({literal('string', skew.refusal)})")
        sent = StatementClass(skew.text)
        self._decider.forget_changed(sent, self._state.digest)
        return self._original(sent, self._log.began(statement.text))

    # --- settings of the session

    def _setting(self, statement: StatementClass) -> Dispatch | None:
        """The dispatch of a statement about a setting of ours. It is set here, and in Spark too, which keeps any.

        Where Spark cannot know the answer, a query that holds the answer is sent.
        """
        setting = setting_statement(statement.text, self._own)
        if setting is None:
            return None
        self._own = setting.own
        if setting.verb == "reset":
            # It may reset the settings of Spark too.
            self._decider.forget_changed(statement, self._state.digest)
        if setting.error:
            return self.answer(statement, f"SELECT raise_error({literal('string', setting.error)})")
        self._log.labelled(self._settings.label)
        if setting.verb == "set" and setting.name == "label" and ";" not in setting.own["label"]:
            # A label changes nothing that answers depend on: remembered keys stay valid.
            return self.answer(statement, statement.text)
        if setting.verb != "show":
            return self.forward_unchanged(statement)
        key = literal("string", f"starpruner.{setting.name}")
        value = literal("string", _shown(getattr(self._settings, setting.name)))
        return self.answer(statement, f"SELECT {key} AS key, {value} AS value")


@dataclass(frozen=True)
class _Listeners:
    """Outcome listeners that are called one after the other."""

    listeners: tuple[Callable[[Outcome], None], ...]

    def __call__(self, outcome: Outcome) -> None:
        for listener in self.listeners:
            listener(outcome)


async def _findings(judge: LimitJudge | None, decision: Decision | None = None) -> tuple[Finding, ...]:
    """The limits that a statement meets as it is sent; without a decision, as the original."""
    if judge is None:
        return ()
    return await judge.findings(decision.rewrite if decision is not None and decision.is_narrowed else None)


def _parse_failure(statement: StatementClass) -> Callable[[str], bool]:
    """The test of failure messages: true if the statement has neither written nor changed the session."""
    does_nothing = statement.written is None and statement.leaves_session_unchanged
    return never_unread if does_nothing else parse_failure_of(statement.text)


def _refusal(findings: Sequence[Finding]) -> Refusal | None:
    """The refusal of a statement that met these limits, if one rejects it."""
    rejecting = next((one for one in findings if one.result is Result.REJECTED), None)
    return None if rejecting is None else Refusal(rejecting.error, SQL_STATE)


def _lacks(check_failure: str, message: str) -> bool:
    """True if anything but its own check failed a narrowed statement that writes."""
    return not check_failure or check_failure not in message


def _suspects(decision: Decision) -> Suspects | None:
    """The rules and tables that may be to blame for a failure; None where nothing was inserted."""
    rewrite, key = decision.rewrite, decision.key
    if not decision.is_narrowed or rewrite is None or key is None:
        return None
    return Suspects.of(rewrite, key)


def _left_as_original(settings: SessionSettings) -> SkipReason | None:
    """The reason why all statements of a session go on as originals, if there is one."""
    if not settings.enabled:
        return SkipReason.SWITCHED_OFF
    return SkipReason.IN_SHADOW if settings.mode == "shadow" else None


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _log_decision(decision: Decision, statement_id: str) -> None:
    if decision.rewrite is None:
        reason = decision.skip.name if decision.skip is not None else "none"
        characters = len(decision.original)
        _log.debug("statement %s: an original of %d characters goes on: %s", statement_id, characters, reason)
        return
    _log.info(
        "statement %s: narrowed %d of %d scans; key queries took %.3f s, table descriptions %.3f s",
        statement_id,
        sum(outcome.predicate is not None for outcome in decision.rewrite.scans) if decision.is_narrowed else 0,
        len(decision.rewrite.scans),
        decision.timings.key_queries_s,
        decision.timings.catalog_s,
    )

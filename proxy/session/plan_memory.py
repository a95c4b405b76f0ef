"""Statements that were parsed and planned before: clients such as dashboards send the same texts again.

A plan is a function of the text, of the facts of the tables that it may read, and of the limits. It is used again
only where these equal those that it was made by. So nothing in it is older than they are, and it tells nobody more
than they do. A parsed statement is a function of its text alone.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Final, TypeAlias

from rewriter import (
    Catalog,
    PartitionIndexes,
    Plan,
    RewriteLimits,
    SkipReason,
    Statement,
    TableName,
    parse,
    plan,
)
from rewriter.planning.views import names_in
from rewriter.scopes.steps import Steps

# Plans of one text that are kept: of users and sessions whose settings differ, and with and without sizes.
_PLANS_MAX: Final = 4
# One text may take so much of the whole room, and one plan: a larger one would drive out a whole dashboard.
_SHARE_OF_ONE: Final = 1 / 8
# A column of a table takes half as much as a character of a text: 284 bytes, measured.
_COLUMNS_PER_CHARACTER: Final = 2

# A text, the limit of its length, and whether a file index, views or small files may help it.
_Asked: TypeAlias = tuple[str, int, bool, bool, bool]


@dataclass(frozen=True)
class _KnownPlan:
    """A plan, and the limits that it was made within. It has the facts that it was made by."""

    limits: RewriteLimits
    plan: Plan

    @property
    def weight(self) -> int:
        """The memory of its facts and of its views' trees, in characters. All else is small beside the text's."""
        known = [facts for facts in self.plan.catalog.values() if facts is not None]
        columns = sum(len(facts.columns) for facts in known)
        return columns // _COLUMNS_PER_CHARACTER + sum(len(facts.view.text) for facts in known if facts.view)


@dataclass
class _Known:
    """A statement with its plans, the newest last."""

    asked: _Asked
    statement: Statement
    plans: tuple[_KnownPlan, ...] = ()

    @property
    def weight(self) -> int:
        """Its memory, in characters."""
        return len(self.statement.text) + sum(one.weight for one in self.plans)


class PlanMemory:
    """The statements of all sessions, those used last kept longest. Used by several threads at once."""

    def __init__(self, characters_max: int) -> None:
        """Keep texts of so many characters, all together: a tree takes hundreds of bytes for each.

        The facts that plans were made by count as well. They are those of the metadata, until these are asked for
        again.
        """
        self._characters_max = characters_max
        self._lock = Lock()
        self._known: OrderedDict[_Asked, _Known] = OrderedDict()
        # The same by the ids of their statements: an id is valid as long as its statement is kept here.
        self._by_statement: dict[int, _Known] = {}
        self._weight = 0

    def parse(
        self, text: str, *, chars_max: int, has_file_index: bool, has_views: bool, has_small_files: bool
    ) -> Statement | SkipReason:
        """See `rewriter.parse`."""
        asked = (text, chars_max, has_file_index, has_views, has_small_files)
        with self._lock:
            known = self._known.get(asked)
            if known is not None:
                self._known.move_to_end(asked)
                return known.statement
        parsed = parse(
            text,
            chars_max=chars_max,
            has_file_index=has_file_index,
            has_views=has_views,
            has_small_files=has_small_files,
        )
        if isinstance(parsed, Statement) and self._may_be_kept(parsed):
            self._keep(_Known(asked, parsed))
        return parsed

    def _may_be_kept(self, statement: Statement) -> bool:
        """False for a long statement, and for a MERGE: planning moves parts of its tree to other parents."""
        return len(statement.text) <= self._characters_max * _SHARE_OF_ONE and statement.merged_into is None

    def names_in(self, statement: Statement) -> frozenset[TableName]:
        """The names that a plan of the statement may want: those in its text, and those behind views so far."""
        with self._lock:
            known = self._by_statement.get(id(statement))
            plans = known.plans if known is not None else ()
        return names_in(statement).union(plans[-1].plan.catalog if plans else ())

    def plan(
        self,
        statement: Statement,
        catalog: Catalog,
        limits: RewriteLimits,
        partitions: PartitionIndexes,
        steps: Steps | None,
    ) -> Plan:
        """See `rewriter.plan`. A known plan takes no steps. `catalog` has no names but those that a plan wants.

        A plan that is made by lists of partitions is not kept: the lists may be long, and belong to a store.
        """
        with self._lock:
            known = self._by_statement.get(id(statement)) if not partitions else None
            plans = known.plans if known is not None else ()
        for one in reversed(plans):
            if one.limits == limits and one.plan.catalog == catalog:
                return one.plan
        planned = plan(statement, catalog, limits, partitions, steps)
        # A plan that had too few steps left says nothing of the next one.
        if known is not None and planned.skip is None and not planned.missing:
            self._add_plan(known, _KnownPlan(limits, planned))
        return planned

    def _keep(self, known: _Known) -> None:
        with self._lock:
            if known.asked in self._known:
                return
            self._known[known.asked] = known
            self._by_statement[id(known.statement)] = known
            self._weight += known.weight
            self._make_room()

    def _add_plan(self, known: _Known, made: _KnownPlan) -> None:
        if made.weight > self._characters_max * _SHARE_OF_ONE:
            return
        with self._lock:
            if self._by_statement.get(id(known.statement)) is not known:
                return
            self._weight -= known.weight
            known.plans = (*known.plans, made)[-_PLANS_MAX:]
            self._weight += known.weight
            self._make_room()

    def _make_room(self) -> None:
        while self._weight > self._characters_max:
            _, dropped = self._known.popitem(last=False)
            del self._by_statement[id(dropped.statement)]
            self._weight -= dropped.weight

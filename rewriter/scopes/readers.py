"""Readers of a SELECT: the FROM items that read it, as a derived table, a CTE or a branch of a UNION."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from sqlglot import exp

from rewriter.scopes.blocks import Scope
from rewriter.scopes.join_tree import Leaf
from rewriter.scopes.lineage import branches
from rewriter.scopes.scopes import Scopes


@dataclass(frozen=True, eq=False)
class ReadingItem:
    """A FROM item that reads a query, and the query's SELECTs: the branches of a UNION, or one."""

    scope: Scope
    item: Leaf
    selects: list[exp.Select]


class Readers:
    """The FROM items of a statement by the SELECTs that they read."""

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._by_select: dict[int, list[ReadingItem]] = defaultdict(list)
        for block in scopes.blocks:
            scope = scopes.scope_of(block.select)
            if scope is not None:
                self._add(scope)

    def _add(self, scope: Scope) -> None:
        for leaf in scope.block.tree.leaves:
            query = self._scopes.query_of(leaf)
            selects = branches(query) if query is not None else []
            for select in selects:
                self._by_select[id(select)].append(ReadingItem(scope, leaf, selects))

    def readers_of(self, select: exp.Select) -> list[ReadingItem]:
        """All FROM items that read a SELECT; none if there may be another one."""
        readers = self.known_readers_of(select)
        # A reader in a FROM that is not understood counts as a reference, but is not among the readers.
        is_all = bool(readers) and len(readers) == self._scopes.references_to(readers[0].item)
        return readers if is_all else []

    def known_readers_of(self, select: exp.Select) -> list[ReadingItem]:
        """The FROM items that read a SELECT and stand in a FROM that is understood."""
        return self._by_select.get(id(select), [])

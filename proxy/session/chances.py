"""Chances of a statement to be rewritten, by a cheap look at its text and at what is known of the names in it."""

from __future__ import annotations

from typing import Final, NamedTuple

from proxy.config.config import Config
from proxy.session.session_catalog import SessionCatalog
from proxy.session.table_files import TableFiles
from proxy.statements.statement_class import StatementClass
from rewriter import Rule

_RULES_OF_VIEWS: Final = frozenset({Rule.VIEWS, Rule.VIEW_JOINS})


class Chances(NamedTuple):
    """The parts of a rewrite that a statement may have: most have none."""

    # Fewer rows: it may have a join, read a view, or filter a table that the file index has.
    rows: bool = False
    # Without a join of its own it may read a view that has one.
    views: bool = False
    # Fewer splits: it may read a table of many small files.
    splits: bool = False

    @property
    def has_any(self) -> bool:
        """True if anything may be rewritten."""
        return self.rows or self.splits


def chances_of(
    statement: StatementClass, config: Config, catalog: SessionCatalog, *, believes_ungrouped: bool = True
) -> Chances:
    """The chances of a statement, as far as the session knows the names in it now."""
    if len(statement.text) > config.rewrite.statement_chars_max:
        return Chances()
    views = _RULES_OF_VIEWS.isdisjoint(config.rewrite.rules_off) and catalog.may_read_views(statement)
    files = TableFiles(catalog)
    rows = statement.may_have_a_join or views or _may_filter_files(statement, config, files)
    splits = Rule.SPLITS not in config.rewrite.rules_off
    if splits:
        names_small = files.may_name_small_files(statement, believes_ungrouped=believes_ungrouped)
        # If the index was not asked, or its answer has expired, any table may have many small files: the index is
        # asked beside the statement.
        splits = not catalog.is_like_no_other if names_small is None else names_small
    return Chances(rows, views, splits)


def _may_filter_files(statement: StatementClass, config: Config, files: TableFiles) -> bool:
    if not config.files.index or not statement.may_be_rewritten(has_file_index=True):
        return False
    indexed = files.current_overview()
    return indexed is None or indexed.is_named_in(statement.text)

"""The text of a view as a part of another text: its names are full ones, whatever database is current there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rewriter.catalog.table_facts import ViewText
from rewriter.scopes.join_tree import TableReference, reference_of
from rewriter.scopes.scopes import Scopes
from rewriter.sql.statement import parse_any
from rewriter.vocabulary.identifiers import TableName, quoted


def qualified_text(
    scopes: Scopes,
    view: ViewText,
    is_certain: Callable[[TableName], bool],
    derived: Callable[[TableName], str | None],
) -> str | None:
    """A view's text with the full name of each table, which keeps its alias; None if a name is not certain.

    `FROM sales JOIN calendar c` becomes ``FROM `spark_catalog`.`mart`.`sales` AS `sales` JOIN
    `spark_catalog`.`mart`.`calendar` c``. `derived` gives a SELECT that takes the place of a view in the text.
    """
    statement = scopes.statement
    references = list(_references(scopes))
    if scopes.ctes_read(statement.tree) is None or None in references:
        return None
    tokens = statement.tokens
    pieces, copied = [], tokens[0].start
    for reference in sorted((one for one in references if one is not None), key=lambda one: one.start):
        if not is_certain(reference.name):
            return None
        name = view.qualified(reference.name)
        query = derived(name)
        alias = "" if reference.has_alias else f" AS {quoted(reference.name.parts[-1])}"
        pieces += [statement.text[copied : reference.start], name.sql if query is None else f"({query})", alias]
        copied = reference.stop
    # A comment behind the last word would hide the words that follow the view.
    text = "".join([*pieces, statement.text[copied : tokens[-1].end + 1]])
    return text if parse_any(text) is not None else None


def _references(scopes: Scopes) -> Iterator[TableReference | None]:
    """The tables that the text names; None for one without a certain place, or with more than a name."""
    for table in scopes.statement.tables_read:
        reference = reference_of(table, scopes.statement)
        yield reference if reference is not None and _is_plain(reference) else None


def _is_plain(reference: TableReference) -> bool:
    """True if the reference is a name, perhaps with a version and an alias, and no column is named by database."""
    is_certain = reference.refusal is None and not reference.name.is_uncertain
    return is_certain and not reference.is_named_by_database

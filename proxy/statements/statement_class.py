"""The class of a statement: facts that its text alone tells, without a parser and without the session.

A connection makes it once for each statement, and passes it on in place of the text. Each fact is worked out when
it is first asked for, and kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from proxy.statements.written_tables import WrittenTables, begins_clearly, tables_written
from rewriter import SkipReason, may_be_rewritten, may_have_a_join, names_read
from rewriter.sql.classify import depends_on_quoting, first_word, is_found

# First words of statements that read, and leave the meaning of names and settings as it was.
_READING: Final = frozenset("select with from values show describe desc explain".split())
# First words of statements that leave the session as it was. The write fence sees their writes to tables.
_SESSION_UNCHANGED: Final = frozenset(
    """
    select values table with from show describe desc explain list
    insert create drop alter truncate update delete merge msck load analyze comment
    """.split()
)
# Of these, first words of statements that may drop a temporary view, so that its name is a table's again.
_DROPS_VIEWS: Final = frozenset({"drop", "alter"})
# First words of statements whose text says all that they do to a session of a known state.
_SESSION_COMMANDS: Final = frozenset({"set", "use", "reset"})
_SETTING: Final = frozenset({"set", "reset"})
# Words of a temporary view or a variable, which a session has under a name of its own; and text that Spark
# replaces before it reads it.
_SESSION_OBJECT: Final = re.compile(r"\b(?:temp|temporary|var|variable)\b|\$\{", re.IGNORECASE)
# Words of statements that set the path along which names without a database are searched, from Spark 4.2 on, or
# put a session's own functions before Spark's, from 4.3 on.
_SEARCH_PATH: Final = re.compile(
    r"(?<![\w.])path\b(?!\.)|\bspark\.sql\.(?:path|defaultpath|functionresolution)\b", re.IGNORECASE
)
# Settings by which each write of a session may add columns: spark.databricks.delta.schema.autoMerge.enabled, and
# spark.sql.iceberg.merge-schema, which Iceberg also takes as mergeSchema (SparkConfParser). Those of that name for
# Parquet and ORC are about reading.
_EVOLUTION: Final = re.compile(r"automerge|(?<!parquet\.)(?<!orc\.)merge-?schema", re.IGNORECASE)
# A word of CREATE TEMPORARY FUNCTION. Up to Spark 4.1, OR REPLACE lets a temporary function hide any function of
# Spark's until the session ends, also those behind BETWEEN and extract(.. FROM ..). From 4.3 on, a setting or the
# path decides.
_OWN_FUNCTION: Final = re.compile(r"\bfunction\b|\$\{", re.IGNORECASE)
# First words of statements that set no path and make no function, beside those that leave the session as it was;
# CREATE by its text. Any other may do both: a script, EXECUTE IMMEDIATE, text that Spark replaces, a command of an
# extension.
_NOTHING_HIDDEN: Final = frozenset(
    "use create add call optimize vacuum cache uncache refresh clear declare".split()
)
# The longest text that is searched for these words: that takes milliseconds in which the whole process waits. A
# longer text counts as if it had them.
_CHARS_MAX: Final = 250_000


@dataclass(frozen=True)
class StatementClass:
    """One statement, classified by its text.

    >>> StatementClass("/* a dashboard */ SELECT 1").first_word
    'select'
    >>> StatementClass("USE warehouse").leaves_session_unchanged
    False
    """

    text: str = field(repr=False)

    @cached_property
    def first_word(self) -> str:
        """The first word behind comments and parentheses, in lower case; empty where there is none."""
        return first_word(self.text)

    @cached_property
    def begins_clearly(self) -> bool:
        """True if the statement does what its first word says."""
        return begins_clearly(self.text)

    @property
    def keeps_meanings(self) -> bool:
        """True if names and settings certainly mean afterwards what they meant before."""
        return self.first_word in _READING and self.begins_clearly

    @cached_property
    def written(self) -> WrittenTables | None:
        """The tables that it may write; None where it certainly writes none."""
        return tables_written(self.text)

    # --- whether there is anything to rewrite

    @cached_property
    def may_have_a_join(self) -> bool:
        """True if the text could hold a query with a join."""
        return may_have_a_join(self.text)

    @cached_property
    def names_read(self) -> frozenset[str]:
        """The names that it may read without a join, in lower case and without quotes."""
        return names_read(self.text)

    def may_be_rewritten(
        self, *, has_file_index: bool, has_views: bool = False, has_small_files: bool = False
    ) -> bool:
        """True if the text could hold a query that reads less: by a join, a filter on indexed files, or a view.

        True as well if it could read small files in fewer splits.
        """
        if self.may_have_a_join or ((has_views or has_small_files) and self.names_read):
            return True
        return has_file_index and may_be_rewritten(self.text, has_file_index=True)

    @cached_property
    def depends_on_quoting(self) -> bool:
        """True if doubleQuotedIdentifiers or escapedStringLiterals can change how the text reads."""
        return depends_on_quoting(self.text)

    # --- effects on the session

    @cached_property
    def leaves_session_unchanged(self) -> bool:
        """True if the session stays as it was, but for temporary views that the statement may drop."""
        makes_session_object = self.first_word == "create" and self._names_session_object
        return self.first_word in _SESSION_UNCHANGED and not makes_session_object and self.begins_clearly

    @property
    def may_drop_views(self) -> bool:
        """True if a temporary view may be gone afterwards."""
        return self.first_word in _DROPS_VIEWS

    @property
    def has_known_effect(self) -> bool:
        """True if two sessions of equal states have equal states again once both have run it."""
        return self.first_word in _SESSION_COMMANDS and self.begins_clearly and not self._names_session_object

    @property
    def hidden_names(self) -> SkipReason | None:
        """The reason why a name may afterwards denote another table or function than the one in Spark's catalog.

        None if each name denotes what it did before.
        """
        word = self.first_word
        if word not in _NOTHING_HIDDEN and _may_hold(_SEARCH_PATH, ("path", "functionresolution"), self.text):
            return SkipReason.SEARCH_PATH
        makes_function = word == "create" and _may_hold(_OWN_FUNCTION, ("function", "${"), self.text)
        return SkipReason.OWN_FUNCTIONS if self._may_be_anything or makes_function else None

    @property
    def _may_be_anything(self) -> bool:
        """True if the text does not tell how the statement changes the session, if it does."""
        word = self.first_word
        is_replaced = word in _SETTING and "${" in self.text
        return word not in _NOTHING_HIDDEN | _SETTING or not self.begins_clearly or is_replaced

    @property
    def may_set_evolution(self) -> bool:
        """True if later writes of the session may be evolving ones, if it changes the session."""
        sets = self.first_word in _SETTING and _may_hold(_EVOLUTION, ("merge",), self.text)
        return sets or self._may_be_anything

    @property
    def may_declare_variables(self) -> bool:
        """True if the session may have a variable afterwards, if it does not have `hidden_names`."""
        return self.first_word == "declare"

    @cached_property
    def _names_session_object(self) -> bool:
        return _may_hold(_SESSION_OBJECT, ("temp", "var", "${"), self.text)


def is_search_path_setting(name: str) -> bool:
    """True if a setting of this name changes how bare names are resolved."""
    return _SEARCH_PATH.search(name) is not None


def is_evolution_setting(name: str) -> bool:
    """True if a setting of this name may let writes add columns to tables."""
    return _EVOLUTION.search(name) is not None


def _may_hold(pattern: re.Pattern[str], words: Sequence[str], text: str) -> bool:
    return len(text) > _CHARS_MAX or is_found(pattern, words, text)

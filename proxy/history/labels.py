"""Labels of statements: the dashboard, the model or the program that one comes from.

Of comments nothing but these values of these forms is taken, so that no literal becomes a label.

>>> label_in_comments('/* {"app": "dbt", "profile_name": "shop", "node_id": "model.shop.daily"} */ SELECT 1')
'dbt model.shop.daily'
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from proxy.operations.session_port import LABEL_CHARS_MAX
from proxy.statements.secret_names import holds_secret

# Characters at each end of a statement that are looked at. A comment of dbt has some 200.
_LOOKED_AT: Final = 1_000
# In OpenSession, by `applicationName=` in the URL of hive-jdbc.
_APPLICATION: Final = "set:hivevar:wmapp"
# The pattern tries no part of a comment twice.
_COMMENT: Final = re.compile(r"\s*+(?:--([^\r\n]*+)|/\*(?!\+)([^*]*+(?:\*(?!/)[^*]*+)*+)\*/)")
# Comments of dbt, Metabase and Redash, keys that a SQL_QUERY_MUTATOR of Superset's writes, and its example.
_FORMS: Final = (
    (re.compile(r'\A\{"app": "dbt",[^}]*"node_id": "([\w.-]+)"'), "dbt {}"),
    (re.compile(r'\A\{"app": "(dbt)"'), "{}"),
    (re.compile(r"\bMetabase:: userID: (\d+)"), "Metabase user {}"),
    (re.compile(r"\AUsername: [^,]*,.*\bquery[ _]id: (\w+)", re.IGNORECASE), "Redash query {}"),
    (re.compile(r"\bdashboard_id\W{1,4}(\d+)"), "dashboard {}"),
    (re.compile(r"\b(?:chart|slice)_id\W{1,4}(\d+)"), "chart {}"),
    (re.compile(r"\A\[(SQL LAB)\]"), "Superset {}"),
)


def label_of(text: str, own: str, configuration: Mapping[str, str]) -> str:
    """The label that the session has set, else that of a comment, else the program's name; empty without any."""
    label = own or label_in_comments(text) or configuration.get(_APPLICATION, "")
    return "" if not label or holds_secret(label) else " ".join(label.split())[:LABEL_CHARS_MAX]


def label_in_comments(text: str) -> str:
    """The label in a comment at the beginning or the end of a text; empty where there is none."""
    tried = ((form.search(comment), label) for comment in _comments(text) for form, label in _FORMS)
    return next((label.format(found[1]) for found, label in tried if found is not None), "")


def _comments(text: str) -> Iterator[str]:
    end = 0
    while (found := _COMMENT.match(text, end, _LOOKED_AT)) is not None:
        yield (found[1] or found[2] or "").strip()
        end = found.end()
    last = text[-_LOOKED_AT:].rstrip("; \t\r\n")
    # No text ends like this within a literal.
    if last.endswith("*/"):
        yield last[:-2].rpartition("/*")[2].strip()

"""Keys of the column that a table is bucketed by, one by one: Spark leaves out no bucket by ranges."""

from __future__ import annotations

from rewriter.catalog.table_facts import TableFacts
from rewriter.domains.keyset import KeySet
from rewriter.domains.literals import literals
from rewriter.predicate import Restriction, beside_uuids, doubts
from rewriter.vocabulary.identifiers import quoted

# The part of the buckets that keys may be expected to hit. Where it is larger, too few are left out for what it
# costs to look up each row that is read in the list of keys.
_SHARE_MAX = 0.8


def bucket_predicate(facts: TableFacts, restriction: Restriction, chars_max: int) -> str | None:
    """The condition that the bucket column holds a key; None where too few buckets would be left out by it."""
    asked = restriction.of_columns({facts.bucket_column} if facts.bucket_column is not None else set())
    if asked is None or not isinstance(asked.keys, KeySet) or not facts.bucket_count:
        return None
    if 1.0 - (1.0 - 1.0 / facts.bucket_count) ** len(asked.keys.rows) > _SHARE_MAX:
        return None
    name, (type_name,) = quoted(asked.names[0]), asked.keys.type_names
    points = [key for (key,) in asked.keys.rows if key is not None]
    terms = [f"{name} IN ({', '.join(literals(type_name, points))})"] if points else []
    terms += [f"{name} IS NULL"] if asked.keys.has_null else []
    text = f"({' OR '.join([*terms, *doubts([asked]), *beside_uuids([asked])])})"
    return text if terms and len(text) <= chars_max else None

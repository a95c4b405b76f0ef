"""Filters and key expressions over one source, in the spellings that users write."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from star_tables import COMPARABLE, VALUES, Value, literal

from rewriter import Column


@dataclass(frozen=True)
class Source:
    """Something in a FROM: its text, the name that the block calls it by, and the columns it shows."""

    sql: str
    alias: str
    columns: tuple[Column, ...]
    is_fact: bool = False
    # The table it is a plain reference to; None for anything else.
    table: str | None = None

    def qualified(self, column: Column) -> str:
        """The column as the block names it."""
        return f"{self.alias}.{column.name}" if self.alias else column.name

    def column(self, name: str) -> Column | None:
        """The column of that name, or None."""
        return next((column for column in self.columns if column.name == name), None)


def random_literal(rng: Random, type_name: str) -> tuple[Value, str]:
    """A value that may occur in the tables, and how it is written."""
    value = rng.choice(VALUES[type_name])
    return value, literal(type_name, value)


def attribute_filter(rng: Random, source: Source) -> str:
    """A condition on one column of the source, more often an attribute than a key."""
    known = [column for column in source.columns if column.type_name in VALUES]
    attributes = [column for column in known if column.name[0] in "abxym"]
    column = rng.choice(attributes if attributes and rng.random() < 0.8 else known)
    name, written = source.qualified(column), random_literal(rng, column.type_name)[1]
    other = random_literal(rng, column.type_name)[1]
    if rng.random() < 0.3:
        if column.type_name == "date":
            return rng.choice(
                (
                    f"CAST({name} AS TIMESTAMP) >= {written}",
                    f"{name} < TIMESTAMP '2026-01-01 12:00:00'",
                    f"date_trunc('MONTH', {name}) = date_trunc('MONTH', {written})",
                    f"{name} + INTERVAL '1' DAY > {written}",
                )
            )
        if column.type_name == "string":
            return rng.choice(
                (f"{name} <> 'Nowhere'", f"split({name}, '-')[0] = '2026'", f"{name} NOT LIKE 'today%'")
            )
    return rng.choice(
        (
            f"{name} = {written}",
            f"{written} = {name}",
            f"{name} <> {written}",
            f"{name} IN ({written}, {other})",
            f"{name} BETWEEN least({written}, {other}) AND greatest({written}, {other})",
            f"{name} >= {written}",
            f"{name} <= {written}",
            f"NOT ({name} = {written})",
            f"{name} IS NULL",
            f"{name} IS NOT NULL",
            f"{name} NOT IN ({written})",
            f"({name} = {written} OR {name} IS NULL)",
            f"({name} = {written} OR {name} = {other})",
            f"coalesce({name}, {written}) = {written}",
            f"CASE WHEN {name} = {written} THEN TRUE ELSE {name} = {other} END",
            f"NOT ({name} <=> {written})",
            f"{name} <=> {rng.choice((written, 'NULL'))}",
        )
    )


def computed_filter(rng: Random, source: Source) -> str:
    """A condition that is no comparison of a column, and lets no row padded with nulls pass, mostly."""
    column = rng.choice([column for column in source.columns if column.type_name in VALUES])
    name, written = source.qualified(column), random_literal(rng, column.type_name)[1]
    other = random_literal(rng, column.type_name)[1]
    return rng.choice(
        (
            f"coalesce({name} = {written}, FALSE)",
            f"({name} <> {written}) IS TRUE",
            f"NOT ({name} = {written} OR {name} = {other})",
            f"({name} = {written} OR {name} = {other} AND {name} IS NOT NULL)",
            f"CASE WHEN {name} = {written} THEN TRUE WHEN {name} <> {other} THEN TRUE ELSE FALSE END",
            f"CASE WHEN {name} = {written} THEN FALSE ELSE TRUE END",
            f"if({name} = {written}, TRUE, {name} = {other})",
            f"CASE WHEN {name} = {written} THEN 'Yes' ELSE 'No' END = '{rng.choice(('Yes', 'No'))}'",
            f"CASE WHEN {name} = {written} THEN 1 WHEN {name} = {other} THEN 2 ELSE 3 END = {rng.randint(1, 3)}",
            f"if({name} <> {written}, 'a', 'b') <> '{rng.choice('ab')}'",
            f"{written} BETWEEN {name} AND {name}",
            f"CAST({name} AS STRING) LIKE '%1%'",
            f"length(CAST({name} AS STRING)) > 1",
            f"nullif({name}, {written}) = {other}",
            f"coalesce({name}, {written}) <> {written}",
            f"({name} = {written}) IS NOT TRUE",
            f"greatest({name}, {written}) = {written}",
            f"lower(CAST({name} AS STRING)) || '-' <> '1-'",
        )
    )


def computed_output(rng: Random, name: str, column: Column) -> tuple[str, str]:
    """An expression over a column, and its type: null where the column is, mostly."""
    written = random_literal(rng, column.type_name)[1]
    forms = [
        (f"CASE WHEN {name} = {written} THEN 1 WHEN {name} <> {written} THEN 2 END", "int"),
        (f"CASE WHEN {name} <> {written} THEN 3 END", "int"),
        (f"CASE WHEN {name} = {written} THEN 1 ELSE 2 END", "int"),
        (f"nullif({name}, {written})", column.type_name),
        (f"coalesce({name}, {written})", column.type_name),
    ]
    if column.type_name == "int":
        forms += [(f"{name} + 1", "int"), (f"abs({name})", "int")]
    if column.type_name == "string":
        forms += [(f"upper({name})", "string"), (f"left({name}, 1)", "string"), (f"{name} || 'a'", "string")]
    if column.type_name == "date":
        forms.append((f"year({name})", "int"))
    return rng.choice(forms)


def accepts_nulls(rng: Random, source: Source) -> str:
    """A condition that a row padded with nulls passes: the trap of a filter above an outer join."""
    column = rng.choice([column for column in source.columns if column.type_name in VALUES])
    name, written = source.qualified(column), random_literal(rng, column.type_name)[1]
    return rng.choice(
        (
            f"coalesce({name}, {written}) = {written}",
            f"nvl({name}, {written}) = {written}",
            f"({name} IS NULL OR {name} = {written})",
            f"if({name} IS NULL, TRUE, {name} = {written})",
            f"{name} IS NULL",
            f"NOT ({name} <=> {written})",
        )
    )


def implied_by_disjunction(rng: Random, fact: Source, small: Source) -> str:
    """A disjunction whose every branch filters the small side and the fact together."""
    branches = (f"({attribute_filter(rng, small)} AND {attribute_filter(rng, fact)})" for _ in "12")
    return "(" + " OR ".join(branches) + ")"


def key_expression(rng: Random, source: Source, column: Column) -> str:
    """A deterministic expression over the small side, of the column's own type."""
    name, written = source.qualified(column), random_literal(rng, column.type_name)[1]
    return rng.choice(
        (
            f"coalesce({name}, {written})",
            f"CAST({name} AS {column.type_name})",
            f"nullif({name}, {written})",
            f"CASE WHEN {name} = {written} THEN {name} END",
            f"greatest({name}, {written})",
        )
    )


def partition_condition(rng: Random, fact: Source, k: Column, small: Source, key: Column) -> str:
    """A condition on a fact's column, mostly one that it is partitioned by, that no equality of keys tells."""
    a, b = fact.qualified(k), small.qualified(key)
    written = random_literal(rng, k.type_name)[1]
    terms = [
        f"coalesce({a}, {written}) = {b}",
        f"nullif({a}, {written}) = {b}",
        f"({a} = {b} OR {a} IS NULL)",
        f"({a} = {b} OR {b} IS NULL)",
        f"NOT ({a} = {b})",
        f"CAST({a} AS STRING) = CAST({b} AS STRING)",
        f"CASE WHEN {a} = {written} THEN {b} IS NOT NULL ELSE {a} = {b} END",
    ]
    if k.type_name == key.type_name and k.type_name != "boolean":
        terms += [
            f"{a} > {b}",
            f"{a} <= {b}",
            f"{a} BETWEEN {b} AND greatest({b}, {written})",
            f"{a} NOT BETWEEN {b} AND greatest({b}, {written})",
        ]
        other = fact.qualified(rng.choice([column for column in fact.columns if column.type_name == k.type_name]))
        terms += [f"{a} {negation}BETWEEN {b} AND greatest({b}, {other})" for negation in ("", "", "NOT ")]
    return rng.choice(terms)


def equal_columns(rng: Random, left: Source, right: Source) -> Sequence[tuple[Column, Column]]:
    """The pairs of columns that may be compared, in random order, pairs of one type first."""
    pairs = [(a, b) for a in _keys(left) for b in _keys(right)]
    same = [(a, b) for a, b in pairs if a.type_name == b.type_name]
    cast = [(a, b) for a, b in pairs if b.type_name in COMPARABLE.get(a.type_name, ())]
    return [*rng.sample(same, len(same)), *rng.sample(cast, len(cast))]


def _keys(source: Source) -> list[Column]:
    keys = [column for column in source.columns if column.name[0] in "kls"]
    return keys or list(source.columns)

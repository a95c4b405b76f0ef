"""Small domains, boxes and covers for Hypothesis, over worlds small enough to ask about every row there is."""

from collections.abc import Callable
from decimal import Decimal
from itertools import product
from typing import Any

from hypothesis import HealthCheck, reject, settings
from hypothesis import strategies as st

from rewriter.domains.cover import Box, Cover
from rewriter.domains.domain import Domain
from rewriter.domains.literals import Key
from rewriter.vocabulary.identifiers import Column
from support.profile import DEEP

# A little in every test run, a lot in `make test-all`. A busy machine may be slow to make examples.
laws = settings(
    max_examples=600 if DEEP else 50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)

# All values that these tests know of each type, ascending. The zero bytes are there because a string with one more
# is what follows directly on a string.
WORLDS: dict[str, tuple[Key, ...]] = {
    "int": tuple(range(-2, 8)),
    "tinyint": (-128, -127, -1, 0, 1, 126, 127),
    "string": ("", "\0", "\0\0", "a", "a\0", "a\0\0", "a\0b", "aa", "b", "é", "\uffee", "😀"),
    "date": ("0001-01-01", "0001-01-02", "2026-02-28", "2026-03-01", "2026-03-02", "9999-12-30", "9999-12-31"),
    "decimal(3,1)": ("-99.9", "-99.8", "-0.1", "0.0", "0.1", "1.5", "99.9"),
    "boolean": (False, True),
}

COLUMNS = (Column("a", "int"), Column("b", "string"), Column("c", "boolean"))
# Few enough values of each column that boxes meet often.
VALUES: dict[str, tuple[Key | None, ...]] = {
    "a": (None, 1, 2, 3, 5),
    "b": (None, "a", "a\0", "b"),
    "c": (None, True),
}
# The rows that are asked about: those values, and some that lie between and around them.
AROUND: dict[str, tuple[Key, ...]] = {"a": (0, 4), "b": ("aa",), "c": (False,)}
ROWS = tuple(dict(zip(VALUES, row, strict=True)) for row in product(*(VALUES[c] + AROUND[c] for c in VALUES)))


def domains_of(type_name: str, values: tuple[Key, ...]) -> st.SearchStrategy[Domain]:
    """Domains made in every way there is: of values, of a range, as what another one leaves, and joined."""
    one = st.sampled_from(values)
    points = st.builds(Domain.of, st.just(type_name), st.lists(one, max_size=4), nullable=st.booleans())
    ranges = st.builds(Domain.between, st.just(type_name), st.none() | one, st.none() | one)
    return st.recursive(
        points | ranges,
        lambda parts: st.builds(Domain.complement, parts) | st.builds(Domain.union, parts, parts),
        max_leaves=3,
    )


types = st.sampled_from(sorted(WORLDS))


def several_domains(count: int) -> st.SearchStrategy[tuple[Domain, ...]]:
    """As many domains of one type."""
    return types.flatmap(lambda name: st.tuples(*[domains_of(name, WORLDS[name])] * count))


def members(domain: Domain) -> set[Key | None]:
    """Which of its world's values, and of null, a domain holds, each asked for by itself."""
    return {value for value in (*WORLDS[domain.type_name], None) if domain.holds(value)}


def _known(column: str) -> tuple[Key, ...]:
    return tuple(value for value in VALUES[column] if value is not None)


_some_domains = st.fixed_dictionaries(
    {}, optional={c.name: domains_of(c.type_name, _known(c.name)) for c in COLUMNS}
)


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    """Boxes over some of the columns, none of them empty."""
    box = Box.of(draw(_some_domains))
    return reject() if box is None else box


covers = st.lists(boxes(), max_size=4).map(Cover.of)
rows = st.lists(st.tuples(*(st.sampled_from(VALUES[column.name]) for column in COLUMNS)), max_size=12)


def held(cover: Cover) -> list[dict[str, Key | None]]:
    """The rows of the small world that a cover holds, each asked for by itself."""
    return [row for row in ROWS if cover.holds(row)]


def order(type_name: str) -> Callable[[Key], Any]:
    """How Spark orders values of the type, said in another way than the positions do."""
    if type_name == "string":
        return lambda value: str(value).encode()
    return Decimal if type_name.startswith("decimal") else lambda value: value

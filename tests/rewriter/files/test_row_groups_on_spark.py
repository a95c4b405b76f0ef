"""Keys for row groups on the server: no key of any type is lost, and the server takes all that is sent."""

import pytest
from pyhive import hive

from demo.hive import run
from rewriter.domains.consumers import PARQUET
from rewriter.domains.keyset import KeySet
from rewriter.domains.literals import Key, literals
from rewriter.predicates.data_columns import row_group_predicate
from rewriter.predicates.predicate import Restriction
from rewriter.vocabulary.identifiers import Column

# More keys than are listed, scattered and in runs.
_NUMBERS = sorted({*range(0, 4_000, 13), *range(500, 540), *range(700, 705)})
_KEYS: dict[str, list[Key]] = {
    "int": [number - 2_000 for number in _NUMBERS],
    "bigint": [number * 10**15 for number in _NUMBERS],
    "string": [f"it's {number}é" for number in _NUMBERS],
    "date": [f"{1 + number:04d}-02-{1 + number % 28:02d}" for number in _NUMBERS],
    "decimal(9,2)": [f"{number - 2_000}.{number % 100:02d}" for number in _NUMBERS],
}


@pytest.mark.parametrize("count", [3, 90, len(_NUMBERS)])
@pytest.mark.parametrize("type_name", _KEYS)
def test_no_key_is_lost(direct: hive.Connection, type_name: str, count: int) -> None:
    values = _KEYS[type_name]
    run(direct, "DROP TABLE IF EXISTS grouped")
    rows = ", ".join(f"({text})" for text in literals(type_name, values))
    run(direct, f"CREATE TABLE grouped USING parquet AS SELECT * FROM VALUES {rows} AS t(k)")
    keys = values[:: len(values) // count]
    restriction = Restriction((Column("k", type_name),), KeySet.of((type_name,), [(key,) for key in keys]))
    predicate = row_group_predicate(restriction, None, 100_000)
    assert predicate is not None
    assert ("IN (" in predicate.sql) or len(keys) > PARQUET.points_max
    listed = ", ".join(literals(type_name, keys))
    asked = f"SELECT count(*), count_if(k IN ({listed})) FROM grouped WHERE {predicate.sql}"
    ((kept, found),) = run(direct, asked)
    assert found == len(keys)
    assert kept < len(values) or len(keys) > PARQUET.points_max

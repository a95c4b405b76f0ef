"""An answer in a few numbers that do not depend on the order of its rows, computed by Spark itself."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from proxy.operations.query import Value

# Types that xxhash64 refuses (maps, variants), and floating-point numbers inside of others, which it would compare
# to the last digit. Names of struct fields count too: one that is called `map` is left out without need.
_NOT_HASHED: Final = re.compile(r"\b(?:map|variant|float|double|geometry|geography)\b", re.IGNORECASE)
# The distance that two sums of the same numbers may have, relative to the sum of their absolute values: the effect
# of the order of addition on doubles, and on a double that is then stored as a float.
_TOLERANCES: Final = {"double": 1e-9, "float": 1e-6}
# If large numbers cancel out, only their rounding is left, and every difference is large beside that.
_NOISE: Final = 1e-6
# Rows that differ in nothing but floating-point numbers share a weight; the number is prime, its size arbitrary.
_WEIGHTS: Final = 1_000_003
_SUMS: Final = 3


@dataclass(frozen=True)
class FloatSums:
    """A floating-point column: its sum, one weighted by the rest of the row, and that of absolute values."""

    plain: float
    weighted: float
    absolute: float

    def distance(self, other: FloatSums) -> float:
        """The distance of two sums, relative to the size of the numbers that were added."""
        scale = max(self.absolute, other.absolute)
        apart = max(_apart(self.plain, other.plain), _apart(self.weighted, other.weighted))
        return apart / scale if apart > _NOISE else 0.0


@dataclass(frozen=True)
class Checksum:
    """The checksum of an answer: number of rows, sum of their hashes, and sums of columns that are not hashed."""

    rows: int
    hash: str
    floats: tuple[FloatSums, ...] = ()


@dataclass(frozen=True)
class Columns:
    """The columns of an answer by how they are compared, each by its number."""

    hashed: tuple[int, ...]
    # With the type's name: float or double.
    floats: tuple[tuple[int, str], ...]
    left_out: tuple[int, ...]

    @classmethod
    def of(cls, type_names: Sequence[str]) -> Columns:
        """Columns of these types, as DESCRIBE QUERY writes them.

        >>> Columns.of(["int", "double", "map<int,int>"])
        Columns(hashed=(0,), floats=((1, 'double'),), left_out=(2,))
        """
        floats = {number: name for number, name in enumerate(type_names) if name in _TOLERANCES}
        left_out = [n for n, name in enumerate(type_names) if n not in floats and _NOT_HASHED.search(name)]
        hashed = [n for n in range(len(type_names)) if n not in floats and n not in left_out]
        return cls(tuple(hashed), tuple(floats.items()), tuple(left_out))

    @property
    def count(self) -> int:
        """The number of columns."""
        return len(self.hashed) + len(self.floats) + len(self.left_out)

    def query(self, statement: str) -> str:
        """The query for the checksum of a query's answer, which `read` reads. A comment may end the text.

        >>> print(Columns.of(["int"]).query("SELECT 1 AS a -- one"))
        SELECT count(*), CAST(sum(CAST(h AS DECIMAL(38, 0))) AS STRING) FROM (
        SELECT xxhash64(0, isnull(c0), c0) AS h FROM (
        SELECT 1 AS a -- one
        ) AS answer(c0)) AS rows
        """
        names = ", ".join(f"c{number}" for number in range(self.count))
        sums = "".join(
            f", sum({f}), sum({f} * (pmod(h, {_WEIGHTS}) / {_WEIGHTS}D)), sum(abs({f}))"
            for f in (f"f{number}" for number, _ in self.floats)
        )
        finite = "".join(f", {_finite(number)} AS f{number}" for number, _ in self.floats)
        summed = f"count(*), CAST(sum(CAST(h AS DECIMAL(38, 0))) AS STRING){sums}"
        hashed = f"xxhash64({', '.join(self._hash_of())}) AS h{finite}"
        head = f"SELECT {summed} FROM (\nSELECT {hashed} FROM ("  # noqa: S608 - the query inside is the client's
        return f"{head}\n{statement}\n) AS answer({names})) AS rows"

    def read(self, row: Sequence[Value]) -> Checksum | None:
        """The checksum in the row that `query` answers; None where it is not such a row."""
        if len(row) != 2 + _SUMS * len(self.floats) or not isinstance(row[0], int):
            return None
        _, hashes, *sums = row
        numbers = [float(value) if isinstance(value, float) else 0.0 for value in sums]
        starts = range(0, len(numbers), _SUMS)
        return Checksum(row[0], str(hashes), tuple(FloatSums(*numbers[at : at + _SUMS]) for at in starts))

    def float_distance(self, one: Checksum, other: Checksum) -> float:
        """The largest distance of a floating-point column that is not explained by the order of addition."""
        pairs = zip(self.floats, one.floats, other.floats, strict=True)
        distances = ((left.distance(right), _TOLERANCES[name]) for (_, name), left, right in pairs)
        return max((distance for distance, tolerance in distances if distance > tolerance), default=0.0)

    def same(self, one: Checksum, other: Checksum) -> bool:
        """True if two answers are equal, floating-point numbers up to rounding."""
        return (one.rows, one.hash) == (other.rows, other.hash) and self.float_distance(one, other) == 0.0

    def _hash_of(self) -> list[str]:
        """The hashed expressions of a row. xxhash64 skips nulls, so a flag for null stands beside each value."""
        told = ["0"]
        for number in self.hashed:
            told += [f"isnull(c{number})", f"c{number}"]
        for number, _ in self.floats:
            # NaN and the infinities are hashed; finite numbers are added up.
            told += [f"isnull(c{number})", f"if({_is_finite(number)}, NULL, CAST(c{number} AS STRING))"]
        return told


def _is_finite(number: int) -> str:
    # NaN is larger than any number in Spark.
    return f"abs(c{number}) <= 1.7976931348623157E308D"


def _finite(number: int) -> str:
    return f"if({_is_finite(number)}, CAST(c{number} AS DOUBLE), NULL)"


def _apart(one: float, other: float) -> float:
    """Sums that overflowed tell nothing: their difference is NaN."""
    apart = abs(one - other)
    return 0.0 if math.isnan(apart) else apart

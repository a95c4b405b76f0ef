"""Checksums of answers: what counts as the same, and what is left out."""

import math
from typing import TypeAlias

import pytest

from proxy.session.shadow.checksum import Checksum, Columns, FloatSums

DOUBLE = Columns.of(["int", "double"])
Sums: TypeAlias = tuple[float, float, float]


def with_sums(plain: float, weighted: float, absolute: float) -> Checksum:
    return Checksum(3, "7", (FloatSums(plain, weighted, absolute),))


@pytest.mark.parametrize(
    ("type_name", "left_out"),
    [
        *(("map<int,int>", True), ("struct<a:int,b:map<int,int>>", True), ("variant", True)),
        # They are compared to the last digit, which the order of addition changes.
        *(("array<double>", True), ("struct<a:float>", True)),
        *(("struct<a:int,b:string>", False), ("decimal(38,18)", False), ("string collate UTF8_LCASE", False)),
    ],
)
def test_what_cannot_be_hashed_is_left_out(type_name: str, *, left_out: bool) -> None:
    assert bool(Columns.of([type_name]).left_out) is left_out


def test_an_answer_of_columns_that_are_all_left_out_is_still_counted() -> None:
    columns = Columns.of(["map<int,int>"])
    assert "xxhash64(0)" in columns.query("SELECT map(1, 2)")
    assert not columns.same(Checksum(1, "42"), Checksum(2, "84"))


@pytest.mark.parametrize(
    "other",
    [
        with_sums(10.001, 4.0, 30.0),
        # The same numbers beside other rows.
        with_sums(10.0, 4.001, 30.0),
        with_sums(math.inf, 4.0, 30.0),
        Checksum(3, "8", (FloatSums(10.0, 4.0, 30.0),)),
        Checksum(2, "7", (FloatSums(10.0, 4.0, 30.0),)),
    ],
)
def test_everything_else_does(other: Checksum) -> None:
    assert not DOUBLE.same(with_sums(10.0, 4.0, 30.0), other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((10.0, 4.0, 30.0), (10.0 + 1e-9, 4.0, 30.0)),
        ((10.0, 4.0, 30.0), (10.0, 4.0 - 1e-9, 30.0 + 1e-9)),
        # Large numbers cancel out, and noise is left.
        ((1e-9, 1e-9, 1e-9), (-1e-8, 0.0, 1e-8)),
        # A sum that ran over equals itself.
        ((math.inf, math.nan, math.inf), (math.inf, math.nan, math.inf)),
    ],
)
def test_last_digits_do_not_count(one: Sums, other: Sums) -> None:
    assert DOUBLE.same(with_sums(*one), with_sums(*other))


def test_a_row_of_another_shape_is_no_checksum() -> None:
    assert DOUBLE.read((3, "7", 1.0, 1.0, 1.0)) == Checksum(3, "7", (FloatSums(1.0, 1.0, 1.0),))
    assert DOUBLE.read((3, "7")) is None
    assert DOUBLE.read(("3", "7", 1.0, 1.0, 1.0)) is None
    # Sums of no rows.
    assert DOUBLE.read((0, None, None, None, None)) == Checksum(0, "None", (FloatSums(0.0, 0.0, 0.0),))

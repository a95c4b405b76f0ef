"""A star of one fact by day with three dimensions, and the statements that a dashboard asks of it.

The fact's partitions are days by number; statements filter the calendar by dates. Every value is computed from its
row's number, and all sums are of whole numbers, so both sides' answers are equal to the last digit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

import click
from command_line import Decorator
from kept_tables import is_complete, mark_complete
from pyhive import hive

from demo.hive import run
from demo.progress import Progress

_FIRST_DAY = date(2020, 1, 1)
_STORES, _PRODUCTS, _CUSTOMERS = 60, 500, 2_000
# One INSERT writes so many partitions, or the sort of a large one would take the server's memory.
_PARTITIONS_PER_INSERT = 100

_DIMENSIONS = {
    "calendar": "SELECT day_key, day, weekofyear(day) AS week, month(day) AS month, dayofweek(day) AS weekday"
    f" FROM (SELECT CAST(id AS INT) AS day_key, date_add(DATE'{_FIRST_DAY}', CAST(id AS INT)) AS day"
    " FROM range(0, 4000, 1, 1))",
    "stores": "SELECT CAST(id AS INT) AS store, concat('city ', id % 15) AS city,"
    f" concat('region ', id % 4) AS region FROM range(0, {_STORES}, 1, 1)",
    "products": "SELECT CAST(id AS INT) AS product, concat('category ', id % 12) AS category, id % 50 AS brand"
    f" FROM range(0, {_PRODUCTS}, 1, 1)",
}

_JOIN = "FROM {fact} f JOIN star.calendar c ON f.day_key = c.day_key"
_STORE = f"{_JOIN} JOIN star.stores s ON f.store = s.store"
_PRODUCT = f"{_JOIN} JOIN star.products p ON f.product = p.product"
_BOTH = f"{_STORE} JOIN star.products p ON f.product = p.product"
_DAYS = "WHERE c.day BETWEEN DATE'{first}' AND DATE'{last}'"

# A statement's text, and how many days it reads.
_DASHBOARD = {
    f"SELECT count(*) AS orders, sum(f.amount) AS amount {_JOIN} {_DAYS}": 1,
    f"SELECT c.day, sum(f.amount) AS amount {_JOIN} {_DAYS} GROUP BY c.day": 7,
    f"SELECT c.weekday, count(DISTINCT f.customer) AS customers {_JOIN} {_DAYS} GROUP BY c.weekday": 7,
    f"SELECT s.region, sum(f.amount) AS amount {_STORE} {_DAYS} GROUP BY s.region": 7,
    f"SELECT p.category, sum(f.quantity) AS quantity {_PRODUCT} {_DAYS} GROUP BY p.category": 7,
    f"SELECT s.city, max(f.amount) AS largest {_STORE} {_DAYS} AND s.region = 'region 1' GROUP BY s.city": 7,
    f"SELECT c.week, sum(f.amount) AS amount {_JOIN} {_DAYS} GROUP BY c.week": 28,
    f"SELECT p.brand, sum(f.amount) AS n {_PRODUCT} {_DAYS} GROUP BY p.brand ORDER BY n DESC, brand LIMIT 9": 28,
    f"SELECT s.region, p.category, sum(f.amount) AS n {_BOTH} {_DAYS} GROUP BY s.region, p.category": 28,
    f"SELECT count(DISTINCT f.customer) AS customers {_STORE} {_DAYS} AND s.region = 'region 2'": 28,
    f"SELECT c.month, count(*) AS orders, sum(f.quantity) AS quantity {_JOIN} {_DAYS} GROUP BY c.month": 90,
    f"SELECT c.month, s.region, sum(f.amount) AS amount {_STORE} {_DAYS} GROUP BY c.month, s.region": 90,
}
# Joins with the calendar alone.
_SHORT = dict(list(_DASHBOARD.items())[:3])
# The longest window ends before the fact does.
WINDOW_DAYS_MAX = max(_DASHBOARD.values())


def partitions_option(default: int) -> Decorator:
    """The option of the number of the fact's partitions."""
    return click.option(
        "--partitions",
        type=click.IntRange(min=WINDOW_DAYS_MAX, max=3_000),
        default=default,
        show_default=True,
        help="Days of the fact.",
    )


@dataclass(frozen=True)
class DashboardTables:
    """The star for one number of partitions and of rows in each."""

    partitions: int
    rows_per_partition: int

    database = "star"

    @property
    def fact(self) -> str:
        """The fact, with the names of its database and of its sizes."""
        return f"{self.database}.orders_{self.partitions}_{self.rows_per_partition}"

    def dashboard(self, number: int) -> list[str]:
        """The dashboard's statements. With each number their windows move on by a day, in a circle."""
        return self._statements(_DASHBOARD, number)

    def short(self, count: int) -> list[str]:
        """So many statements that join the fact with the calendar alone, over a week at most."""
        return [self._statements(_SHORT, number)[number % len(_SHORT)] for number in range(count)]

    def _statements(self, templates: Mapping[str, int], number: int) -> list[str]:
        last = _FIRST_DAY + timedelta(WINDOW_DAYS_MAX - 1 + number % (self.partitions - WINDOW_DAYS_MAX + 1))
        return [
            template.format(fact=self.fact, first=last - timedelta(days - 1), last=last)
            for template, days in templates.items()
        ]

    def ensure(self, session: hive.Connection, progress: Progress) -> None:
        """Make the tables, unless they are there from a run before."""
        run(session, f"CREATE DATABASE IF NOT EXISTS {self.database}")
        for name, query in _DIMENSIONS.items():
            table = f"{self.database}.{name}"
            if not is_complete(session, table):
                run(session, f"DROP TABLE IF EXISTS {table}")
                run(session, f"CREATE TABLE {table} USING parquet AS {query}")
                mark_complete(session, table)
        if not is_complete(session, self.fact):
            self._make_fact(session, progress)

    def _make_fact(self, session: hive.Connection, progress: Progress) -> None:
        columns = "day_key INT, product INT, store INT, customer INT, quantity INT, amount BIGINT"
        run(session, f"DROP TABLE IF EXISTS {self.fact}")
        run(session, f"CREATE TABLE {self.fact} ({columns}) USING parquet PARTITIONED BY (day_key)")
        for first in range(0, self.partitions, _PARTITIONS_PER_INSERT):
            progress(f"Making {self.fact}, {first:,} of {self.partitions:,} partitions")
            last = min(first + _PARTITIONS_PER_INSERT, self.partitions)
            rows = f"range({first * self.rows_per_partition}, {last * self.rows_per_partition}, 1, 2)"
            run(
                session,
                f"INSERT INTO {self.fact} SELECT CAST(id * 7919 % {_PRODUCTS} AS INT),"
                f" CAST(id * 31 % {_STORES} AS INT), CAST(id * 104729 % {_CUSTOMERS} AS INT),"
                f" CAST(1 + id % 9 AS INT), 100 + id * 37 % 9900,"
                f" CAST(id DIV {self.rows_per_partition} AS INT) AS day_key FROM {rows} DISTRIBUTE BY day_key",
            )
        mark_complete(session, self.fact)

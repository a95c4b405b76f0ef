"""SQLAlchemy on PyHive's dialect works through the proxy as it does directly."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import (
    Column,
    Connection,
    Integer,
    MetaData,
    String,
    Table,
    create_engine,
    func,
    inspect,
    select,
    text,
)
from steps import Step, outcomes
from support.metrics_of_proxy import rewritten_count

from demo.hive import Endpoint
from demo.proxy_process import ProxyProcess
from demo.thrift_server import ThriftServer

pytestmark = [
    pytest.mark.usefixtures("small_star"),
    # The dialect is older than SQLAlchemy 2, which says so.
    pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning"),
]


@contextmanager
def _connected(endpoint: Endpoint) -> Iterator[Connection]:
    engine = create_engine(f"hive://tester@{endpoint}/small_star")
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def _steps(connection: Connection) -> dict[str, Step]:
    inspector = inspect(connection)
    reflected = MetaData()
    made = Table("made", MetaData(), Column("id", Integer), Column("label", String))

    def star_join() -> object:
        visits = Table("visits", reflected, autoload_with=connection)
        days = Table("days", reflected, autoload_with=connection)
        joined = select(visits.c.ds, func.count()).join(days, visits.c.ds == days.c.ds)
        found = joined.where(days.c.weekday == "Sunday").group_by(visits.c.ds).order_by(visits.c.ds)
        return connection.execute(found).fetchall()

    return {
        "parameters": lambda: connection.execute(
            text("SELECT :a AS a, :b AS b"), {"a": "it's", "b": 1}
        ).fetchall(),
        "schemas": lambda: [name for name in inspector.get_schema_names() if name == "small_star"],
        "tables": inspector.get_table_names,
        "views": inspector.get_view_names,
        "columns": lambda: [(c["name"], str(c["type"])) for c in inspector.get_columns("visits")],
        "primary key": lambda: inspector.get_pk_constraint("visits"),
        "foreign keys": lambda: inspector.get_foreign_keys("visits"),
        "partitions": lambda: inspector.get_indexes("visits"),
        "a table that is there": lambda: inspector.has_table("days"),
        "a table that is not": lambda: inspector.has_table("nights"),
        "a star join": star_join,
        "a table made": lambda: made.create(connection),
        "rows inserted": lambda: connection.execute(made.insert().values(id=1, label="é")).rowcount,
        "rows read back": lambda: connection.execute(select(made)).fetchall(),
        "the table dropped": lambda: made.drop(connection),
        "an error": lambda: connection.execute(text("SELECT * FROM no_such_table")),
    }


def test_reflection_and_statements_are_as_by_the_server(spark: ThriftServer, proxy: ProxyProcess) -> None:
    with _connected(spark.endpoint) as connection:
        direct = outcomes(_steps(connection))
    before = rewritten_count(proxy)
    with _connected(proxy.endpoint) as connection:
        proxied = outcomes(_steps(connection))
    assert proxied == direct
    assert [name for name, outcome in direct.items() if "failed" in repr(outcome)] == [
        # The dialect knows how Hive says that a table is missing, and Spark says it otherwise.
        "a table that is not",
        "an error",
    ]
    assert proxied["a star join"] == [("d1", 8), ("d3", 8)]
    assert rewritten_count(proxy) == before + 1

"""The tables of the golden cases on a server."""

from contextlib import closing

from demo.hive import connect, run
from demo.thrift_server import ThriftServer
from support.golden_cases import DATABASE, table_statements


def make_golden_tables(spark: ThriftServer) -> None:
    """Make them, unless another module of tests has."""
    with closing(connect(spark.endpoint)) as connection:
        if run(connection, f"SHOW DATABASES LIKE '{DATABASE}'"):
            return
        run(connection, f"CREATE DATABASE {DATABASE}")
        run(connection, f"USE {DATABASE}")
        for statement in table_statements():
            run(connection, statement)

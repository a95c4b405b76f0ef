"""The functions that answer by tasks or by order, held to what Spark says of its own."""

from contextlib import closing

from demo.hive import connect, run
from demo.thrift_server import ThriftServer
from rewriter.sql.deterministic_functions import TABLE_FUNCTIONS, WITH_UNIT
from rewriter.sql.task_dependence import _BY_ORDER, _BY_SEED, _BY_TASK, _OF_SPARK


def test_what_spark_calls_non_deterministic_is_known(spark: ThriftServer) -> None:
    with closing(connect(spark.endpoint)) as session:
        names = {str(row[0]) for row in run(session, "SHOW SYSTEM FUNCTIONS") if str(row[0]).isidentifier()}
        told = {name: str(run(session, f"DESCRIBE FUNCTION EXTENDED `{name}`")).lower() for name in names}
    found = {name for name, text in told.items() if "non-deterministic" in text}
    assert {"rand", "collect_list", "monotonically_increasing_id"} <= found
    assert found <= _BY_TASK | _BY_SEED | _BY_ORDER
    assert names >= _BY_TASK | _BY_SEED, "they are called otherwise now"


def test_the_functions_that_read_no_table_are_sparks_own(spark: ThriftServer) -> None:
    with closing(connect(spark.endpoint)) as session:
        names = {str(row[0]) for row in run(session, "SHOW SYSTEM FUNCTIONS")}
    assert (_OF_SPARK | TABLE_FUNCTIONS) - names <= WITH_UNIT | {"try_cast"}

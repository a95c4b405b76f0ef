"""Files that say of keys that their rows are deleted: Flink and others write them, and Spark only reads them."""

import os
from typing import Any

from iceberg_server import runtime_jar, spark_for_formats
from py4j.java_gateway import JavaGateway

from demo.java import find_java


def delete_keys(table: str, keys: str, column: str) -> None:
    """Commit that a table's rows with these keys are deleted; both tables are told by their directories.

    Iceberg finds the column in a file by its number, and the files of a table whose column has the same number are
    taken as they are.
    """
    jars = spark_for_formats() / "pyspark" / "jars"
    (py4j,) = jars.glob("py4j-*.jar")
    gateway: Any = JavaGateway.launch_gateway(
        jarpath=str(py4j),
        classpath=os.pathsep.join([str(runtime_jar()), f"{jars}/*"]),
        java_path=str(find_java().path),
        die_on_exit=True,
    )
    try:
        _commit(gateway, table, keys, column)
    finally:
        gateway.shutdown()


def _commit(gateway: Any, table: str, keys: str, column: str) -> None:
    java = gateway.jvm
    iceberg = java.org.apache.iceberg
    tables = iceberg.hadoop.HadoopTables(java.org.apache.hadoop.conf.Configuration())
    changed, source = tables.load(table), tables.load(keys)
    number = changed.schema().findField(column).fieldId()
    assert source.schema().findField(column).fieldId() == number
    numbers = gateway.new_array(java.int, 1)
    numbers[0] = number
    change, files = changed.newRowDelta(), source.newScan().planFiles().iterator()
    while files.hasNext():
        file = files.next().file()
        deletes = iceberg.FileMetadata.deleteFileBuilder(changed.spec()).ofEqualityDeletes(numbers)
        deletes = deletes.withPath(file.location()).withFormat("parquet")
        deletes = deletes.withFileSizeInBytes(file.fileSizeInBytes()).withRecordCount(file.recordCount())
        change.addDeletes(deletes.build())
    change.commit()

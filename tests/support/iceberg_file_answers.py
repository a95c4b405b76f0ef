"""The files of an Iceberg table as its metadata table lists them."""

import json

OF_K = "readable_metrics.`k`"


FILES_SQL = (
    "SELECT file_path, file_size_in_bytes, 0L, record_count, to_json(named_struct('k', named_struct('type', 'int',"
    f" 'low', CAST({OF_K}.lower_bound AS STRING), 'high', CAST({OF_K}.upper_bound AS STRING),"
    f" 'nulls', {OF_K}.null_value_count, 'row_groups', size(split_offsets)))), NULL"
    " FROM `ice`.`db`.`f`.`data_files`"
)


def a_file(path: str, low: int, high: int) -> tuple[str, int, int, int, str, None]:
    bounds = {"type": "int", "low": str(low), "high": str(high), "nulls": 0}
    return path, 1_000, 0, 10, json.dumps({"k": bounds}), None

"""Loads the sample star schema through Spark Thrift Server, unless it is there."""

import logging
from contextlib import closing
from pathlib import Path

from demo.hive import Endpoint, connect
from demo.sample import Sample, is_loaded, load

# Half a year in four regions: 736 partitions.
SAMPLE = Sample(days=184)
# Beside the tables, so that it is there as long as they are.
DIRECTORY = Path("/warehouse")

if __name__ == "__main__" and not is_loaded(DIRECTORY, SAMPLE):
    logging.basicConfig(level="INFO", format="%(message)s")
    with closing(connect(Endpoint("spark", 10_000))) as connection:
        load(connection, DIRECTORY, SAMPLE, logging.getLogger().info)

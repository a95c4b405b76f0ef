"""The JDBC drivers that users have: Hive 2.3's, which Spark brings along, and Hive 4's from Maven Central."""

from dataclasses import dataclass
from pathlib import Path

from support.maven import fetch

from demo.java import spark_home

CACHE = Path(__file__).parents[2] / ".starpruner" / "clients"
HIVE_4 = "4.0.1"


@dataclass(frozen=True)
class Driver:
    """A JDBC driver by the class path that has it."""

    name: str
    class_path: str


def spark_driver() -> Driver:
    """The driver that beeline of every Spark uses."""
    return Driver("hive-jdbc 2.3", f"{spark_home()}/jars/*")


def hive_4_driver(cache: Path = CACHE) -> Driver:
    """Hive 4's driver."""
    return hive_driver(HIVE_4, cache)


def hive_driver(version: str, cache: Path = CACHE) -> Driver:
    """A version of Hive's driver in its standalone form, fetched by Maven on first use."""
    jar = cache / f"hive-jdbc-{version}-standalone.jar"
    if not jar.exists():
        fetch(f"org.apache.hive:hive-jdbc:{version}:jar:standalone", cache)
    # 4.0.0 needs a class of Hadoop's that its jar does not have.
    hadoop = spark_home().joinpath("jars").glob("hadoop-client-api-*.jar")
    return Driver(f"hive-jdbc {version}", ":".join(map(str, (jar, *hadoop))))

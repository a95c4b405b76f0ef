"""The JDBC drivers that users have: Hive 2.3's, which Spark has, and Hive 4's and Kyuubi's, by Maven."""

from dataclasses import dataclass
from pathlib import Path

from support.maven import fetch

from demo.hive import Endpoint
from demo.java import spark_home

CACHE = Path(__file__).parents[2] / ".starpruner" / "clients"
HIVE_4 = "4.0.1"
KYUUBI = "1.9.2"


@dataclass(frozen=True)
class Driver:
    """A JDBC driver by the class path that has it."""

    name: str
    class_path: str
    # The scheme of its URLs, by which DriverManager chooses one of two drivers on a class path.
    scheme: str = "hive2"

    def url_of(self, endpoint: Endpoint) -> str:
        """The URL of a server, for this driver."""
        return endpoint.jdbc_url.replace("hive2", self.scheme, 1)


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


def kyuubi_driver(cache: Path = CACHE) -> Driver:
    """Kyuubi's driver, beside Spark's, of which a program of the tests names a class."""
    jar = cache / f"kyuubi-hive-jdbc-shaded-{KYUUBI}.jar"
    if not jar.exists():
        fetch(f"org.apache.kyuubi:kyuubi-hive-jdbc-shaded:{KYUUBI}", cache)
    return Driver(f"Kyuubi's JDBC {KYUUBI}", f"{jar}:{spark_driver().class_path}", "kyuubi")

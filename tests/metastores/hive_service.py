"""A Hive metastore as a service of its own, of the version that is asked for, from Maven's jars."""

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from subprocess import run
from tempfile import mkdtemp
from xml.sax.saxutils import escape
from zipfile import ZipFile

from mariadb import MariaDb
from support.cheap_spark import QUICK_JAVA
from support.maven import fetch_with_dependencies

from demo.child import Child
from demo.hive import Endpoint, free_port
from demo.java import Java, spark_home

CACHE = Path(__file__).parents[2] / ".starpruner"
MODULES = ("hive-metastore", "hive-exec", "hive-common", "hive-serde")
# What versions need beside. Those jars serve the client too, `spark.sql.hive.metastore.jars`. Spark brings 2.3.
EXTRA: Mapping[str, tuple[str, ...]] = {
    "3.1.3": (),
    "4.0.1": ("org.apache.hive:hive-standalone-metastore-server:4.0.1", "org.apache.hadoop:hadoop-hdfs:3.3.6"),
}
SERVICE = "org.apache.hadoop.hive.metastore.HiveMetaStore"
SCHEMA_TOOL = "org.datanucleus.store.schema.SchemaTool"
OPENED = ("java.lang", "java.net", "java.nio", "java.util", "java.util.concurrent")
START_SECONDS_MAX = 240
START_POLL_SECONDS = 0.1


class HiveServiceError(Exception):
    """The service did not start; the message ends with the tail of its log."""


@contextmanager
def hive_service(
    java: Java, directory: Path, version: str, database: MariaDb | None = None
) -> Iterator[Mapping[str, str]]:
    """Runs a service, on Derby in memory or the database, as long as the context lasts.

    Yields the settings of a Spark server that uses it. Raises ClientMissingError, HiveServiceError.
    """
    jars = _jars(version)
    of_spark = spark_home() / "jars"
    paths = [directory, *of_spark.glob("hadoop-client-*.jar"), *([database.driver] if database else ())]
    classes = ":".join(map(str, [*paths, (jars or of_spark) / "*"]))
    options = [*QUICK_JAVA.split(), "-Xmx512m", *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED)]
    command = [str(java.path), *options, "-cp", classes]
    endpoint = Endpoint("127.0.0.1", free_port())
    settings = {
        "hive.metastore.warehouse.dir": str(directory / "warehouse"),
        "hive.metastore.schema.verification": "false",
        "hive.metastore.thrift.bind.host": endpoint.host,
        "hive.async.log.enabled": "false",
        "datanucleus.connectionPoolingType": "None",
        "datanucleus.schema.autoCreateAll": "true",
        **(database.jdo if database else {"javax.jdo.option.ConnectionURL": "jdbc:derby:memory:hive;create=true"}),
    }
    (directory / "hive-site.xml").write_text(_site(settings), encoding="utf-8")
    if database and jars:
        _make_schema(command, database, jars, directory)
    log = directory / "metastore.log"
    start = [*command, SERVICE, "-p", str(endpoint.port)]
    with Child.start(start, log=log, directory=directory, environment={}) as child:
        deadline = time.monotonic() + START_SECONDS_MAX
        while not endpoint.listens():
            if child.exit_code is not None or time.monotonic() > deadline:
                raise HiveServiceError(f"Hive {version} did not start:\n{child.log_tail()}")
            time.sleep(START_POLL_SECONDS)
        yield {"spark.hadoop.hive.metastore.uris": f"thrift://{endpoint}", **_client(version, jars)}


def _client(version: str, jars: Path | None) -> Mapping[str, str]:
    """What operators set for a metastore that is newer than Spark's own client."""
    if jars is None:
        return {}
    return {
        "spark.sql.hive.metastore.version": version,
        "spark.sql.hive.metastore.jars": "path",
        "spark.sql.hive.metastore.jars.path": f"file://{jars}/*.jar",
    }


def _jars(version: str) -> Path | None:
    """The folder of a version's jars, fetched by Maven on first use; none for the version that Spark brings."""
    if version not in EXTRA:
        return None
    folder = CACHE / f"hive-{version}"
    if not folder.exists():
        CACHE.mkdir(exist_ok=True)
        # Two runs may fetch at once, and one that was interrupted must not leave half of it.
        unfinished = Path(mkdtemp(prefix="hive-", dir=CACHE))
        try:
            modules = [f"org.apache.hive:{name}:{version}" for name in MODULES]
            fetch_with_dependencies([*modules, *EXTRA[version]], unfinished)
            if not folder.exists():
                unfinished.rename(folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def _make_schema(command: list[str], database: MariaDb, jars: Path, directory: Path) -> None:
    """Makes the tables before the service needs them.

    It would make a table from a second connection in the middle of a transaction, and each wait for the other.
    """
    (jar,) = jars.glob("hive-standalone-metastore-[0-9]*.jar")
    with ZipFile(jar) as archive:
        model = archive.extract("package.jdo", directory)
    properties = {
        **database.jdo,
        "javax.jdo.PersistenceManagerFactoryClass": "org.datanucleus.api.jdo.JDOPersistenceManagerFactory",
        "datanucleus.identifierFactory": "datanucleus1",
        "datanucleus.connectionPoolingType": "None",
    }
    listed = directory / "schema.properties"
    listed.write_text("\n".join(f"{name}={value}" for name, value in properties.items()), encoding="utf-8")
    tool = [SCHEMA_TOOL, "-create", "-api", "JDO", "-props", str(listed), model]
    run([*command, *tool], check=True, timeout=START_SECONDS_MAX)


def _site(settings: Mapping[str, str]) -> str:
    properties = "".join(
        f"<property><name>{name}</name><value>{escape(value)}</value></property>"
        for name, value in settings.items()
    )
    return f"<configuration>{properties}</configuration>"

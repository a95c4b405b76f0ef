"""A PostgreSQL server of the tests' own, from Debian's packages, for a metastore that is not Derby."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from debian import unpacked

from demo.hive import Endpoint, free_port

PACKAGES = ("postgresql", "libpostgresql-jdbc-java")
USER = "hive"
INITDB_OPTIONS = (
    *("--username", USER, "--auth", "trust", "--encoding", "UTF8", "--no-sync"),
    # The order of a dictionary ('a' before 'B', punctuation aside), as most installations have and Spark has not:
    # a range of strings means something else to such a metastore.
    *("--locale-provider", "icu", "--icu-locale", "en-US", "--locale", "C.UTF-8"),
)

# An empty metastore makes its tables as it comes to need them: from a second connection, in the middle of a
# transaction, and the foreign keys of the second then wait for the first for ever. So these are made before.
MODEL = "org.apache.hadoop.hive.metastore.model"
MADE_AT_START = """
    MDatabase MTable MPartition MStorageDescriptor MColumnDescriptor MSerDeInfo MConstraint MIndex
    MTablePrivilege MPartitionPrivilege MTableColumnPrivilege MPartitionColumnPrivilege
    MTableColumnStatistics MPartitionColumnStatistics
""".split()

READY = "database system is ready to accept connections"


@dataclass(frozen=True)
class Postgresql:
    """A running server with an empty database."""

    endpoint: Endpoint
    driver: Path

    @property
    def spark_conf(self) -> dict[str, str]:
        """What makes a Spark Thrift Server keep its metastore here."""
        jdo = {
            "ConnectionURL": f"jdbc:postgresql://{self.endpoint}/postgres",
            "ConnectionDriverName": "org.postgresql.Driver",
            "ConnectionUserName": USER,
            # Anything: this server asks for none, and the metastore's connection pool must be given one.
            "ConnectionPassword": USER,
        }
        return {
            "spark.driver.extraClassPath": str(self.driver),
            **{f"spark.hadoop.javax.jdo.option.{name}": setting for name, setting in jdo.items()},
            "spark.hadoop.datanucleus.schema.autoCreateAll": "true",
            "spark.hadoop.datanucleus.autoStartMechanism": "Classes",
            "spark.hadoop.datanucleus.autoStartClassNames": ",".join(f"{MODEL}.{name}" for name in MADE_AT_START),
            "spark.hadoop.hive.metastore.schema.verification": "false",
        }


@contextmanager
def postgresql(download_directory: Path) -> Iterator[Postgresql]:
    """Runs a server as long as the context lasts. Raises PackageMissingError."""
    with unpacked(PACKAGES, download_directory) as packages:
        programs = packages.find("usr/lib/postgresql/*/bin/postgres").parent
        driver = packages.find("usr/share/java/postgresql.jar")
        cluster = packages.directory / "cluster"
        packages.run(programs / "initdb", "-D", cluster, *INITDB_OPTIONS)
        endpoint = Endpoint("127.0.0.1", free_port())
        with packages.serving(READY, programs / "postgres", "-D", cluster, *_settings(endpoint)):
            yield Postgresql(endpoint, driver)


def _settings(endpoint: Endpoint) -> Iterator[str]:
    settings = {
        "listen_addresses": endpoint.host,
        "port": str(endpoint.port),
        # The default directory for sockets belongs to the installed package's user.
        "unix_socket_directories": "",
        # Nothing here outlives the tests.
        "fsync": "off",
    }
    for name, setting in settings.items():
        yield from ("-c", f"{name}={setting}")

"""A MariaDB server of the tests' own, from Debian's packages, for the metastore of a Hive service."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from debian import unpacked
from support.maven import fetch

from demo.hive import Endpoint, free_port

PACKAGES = ("mariadb-server-core",)
DRIVER = ("org.mariadb.jdbc:mariadb-java-client:3.5.6", "mariadb-java-client-3.5.6.jar")
READY = "ready for connections"
URL_OPTIONS = {
    "createDatabaseIfNotExist": "true",
    # Hive 2.3 and 3.1 know MySQL and not MariaDB, and send any other database no SQL of their own.
    "useMysqlMetadata": "true",
    # Else the table PARTITIONS is taken for the one that information_schema has.
    "nullDatabaseMeansCurrent": "true",
}


@dataclass(frozen=True)
class MariaDb:
    """A running server without users, and its driver."""

    endpoint: Endpoint
    driver: Path

    @property
    def jdo(self) -> Mapping[str, str]:
        """The settings that make a metastore keep its tables here."""
        options = "&".join(f"{name}={value}" for name, value in URL_OPTIONS.items())
        return {
            "javax.jdo.option.ConnectionURL": f"jdbc:mariadb://{self.endpoint}/hive?{options}",
            "javax.jdo.option.ConnectionDriverName": "org.mariadb.jdbc.Driver",
            "javax.jdo.option.ConnectionUserName": "hive",
            "javax.jdo.option.ConnectionPassword": "hive",
        }


@contextmanager
def mariadb(download_directory: Path) -> Iterator[MariaDb]:
    """Runs a server as long as the context lasts. Raises PackageMissingError, ClientMissingError."""
    artifact, driver = DRIVER
    if not (download_directory / driver).exists():
        fetch(artifact, download_directory)
    with unpacked(PACKAGES, download_directory) as packages:
        endpoint = Endpoint("127.0.0.1", free_port())
        # It may be empty: without users the server needs no tables of its own.
        data = packages.directory / "data"
        packages.run("mkdir", data)
        messages = packages.find("usr/share/mysql/english").parent
        settings = {
            "lc-messages-dir": messages,
            "character-sets-dir": messages / "charsets",
            "datadir": data,
            "socket": data / "socket",
            "bind-address": endpoint.host,
            "port": endpoint.port,
            # As Hive's own schema for MySQL has it.
            "character-set-server": "latin1",
            "collation-server": "latin1_bin",
            # Nothing here outlives the tests.
            "innodb-flush-log-at-trx-commit": 0,
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        program = packages.find("usr/sbin/mariadbd")
        with packages.serving(READY, program, "--no-defaults", "--skip-grant-tables", *options):
            yield MariaDb(endpoint, download_directory / driver)

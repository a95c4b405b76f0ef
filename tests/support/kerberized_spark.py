"""A Spark Thrift Server with hive.server2.authentication=KERBEROS in the realm of a test's KDC, and its clients."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import escape

from demo.hive import Endpoint
from demo.java import Java, beeline_command, spark_home
from demo.thrift_server import ServerSettings, ThriftServer, thrift_server
from support.cheap_spark import QUICK_JAVA
from support.kdc import Kdc

BEELINE_SECONDS_MAX = 180


def hadoop_conf(directory: Path, settings: Mapping[str, str]) -> Path:
    """A directory for Java's class path with Hadoop's core-site.xml."""
    directory.mkdir(parents=True, exist_ok=True)
    properties = "".join(
        f"<property><name>{name}</name><value>{escape(value)}</value></property>"
        for name, value in settings.items()
    )
    (directory / "core-site.xml").write_text(f"<configuration>{properties}</configuration>")
    return directory


@contextmanager
def kerberized_spark(
    directory: Path,
    java: Java,
    kdc: Kdc,
    *,
    principal: str,
    keytab: Path,
    qop: str = "auth",
    acting: str = "starpruner",
    conf: Mapping[str, str] | None = None,
) -> Iterator[ThriftServer]:
    """The server until the end. `acting` is the user who may act for all others."""
    hadoop_conf(
        directory / "conf",
        {
            "hadoop.security.authentication": "kerberos",
            f"hadoop.proxyuser.{acting}.users": "*",
            f"hadoop.proxyuser.{acting}.hosts": "*",
        },
    )
    settings = ServerSettings(
        directory,
        cores=2,
        java_options=f"{QUICK_JAVA} -Djava.security.krb5.conf={kdc.config}",
        conf={
            "spark.hadoop.hadoop.security.authentication": "kerberos",
            "spark.hadoop.hive.server2.authentication": "KERBEROS",
            "spark.hadoop.hive.server2.authentication.kerberos.principal": principal,
            "spark.hadoop.hive.server2.authentication.kerberos.keytab": str(keytab),
            "spark.hadoop.hive.server2.thrift.sasl.qop": qop,
            **(conf or {}),
        },
    )
    with thrift_server(settings, java, lambda _: None, answers=Endpoint.listens) as server:
        yield server


def run_beeline(
    java: Java, kdc: Kdc, user: str, url: str, script: str, home: Path
) -> "subprocess.CompletedProcess[str]":
    """Spark's own beeline with a user's tickets, as `kinit` and a cluster's core-site.xml leave them to it."""
    home.mkdir(parents=True, exist_ok=True)
    path = home / "script.sql"
    path.write_text(script, encoding="utf-8")
    conf = hadoop_conf(home / "conf", {"hadoop.security.authentication": "kerberos"})
    options = ("--outputformat=tsv2", "--force=true", "--silent=true", "-f", str(path))
    command = beeline_command(java, url, *options)
    command[command.index("-cp") + 1] = f"{conf}:{spark_home()}/jars/*"
    command[1:1] = [f"-Duser.home={home}", f"-Djava.security.krb5.conf={kdc.config}"]
    return subprocess.run(
        command,
        env=kdc.environment_of(user) | {"HOME": str(home), "LC_ALL": "C.UTF-8"},
        check=False,
        capture_output=True,
        text=True,
        timeout=BEELINE_SECONDS_MAX,
    )

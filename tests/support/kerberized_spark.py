"""A Spark Thrift Server with hive.server2.authentication=KERBEROS in the realm of a test's KDC, and beeline."""

import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from demo.hive import Endpoint, free_port
from demo.java import Java, beeline_command, spark_home
from demo.thrift_server import ServerOptions, ThriftServer, thrift_server
from support import cheap_spark
from support.cheap_spark import QUICK_COMPILER, QUICK_JAVA
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


@dataclass(frozen=True)
class Service:
    """The principal of the server, the file with its key, the protection of its frames, and its transport.

    Over HTTP it speaks TLS: without, its cookies are for nobody.
    """

    principal: str
    keytab: Path
    qop: str = "auth"
    over_http: bool = False


@contextmanager
def kerberized_spark(
    directory: Path, java: Java, kdc: Kdc, service: Service, core_site: Mapping[str, str]
) -> Iterator[ThriftServer]:
    """The server until the end, with these settings of Hadoop beside its own."""
    port = free_port()
    http = (
        {
            "hive.server2.transport.mode": "http",
            "hive.server2.thrift.http.port": str(port),
            **_tls(directory, java),
        }
        if service.over_http
        else {}
    )
    hadoop_conf(directory / "conf", {"hadoop.security.authentication": "kerberos", **core_site})
    settings = ServerOptions(
        directory,
        port=port,
        cores=2,
        java_options=f"{QUICK_JAVA} -Djava.security.krb5.conf={kdc.config}",
        conf={
            **cheap_spark.conf(),
            "spark.hadoop.hadoop.security.authentication": "kerberos",
            "spark.hadoop.hive.server2.authentication": "KERBEROS",
            "spark.hadoop.hive.server2.authentication.kerberos.principal": service.principal,
            "spark.hadoop.hive.server2.authentication.kerberos.keytab": str(service.keytab),
            "spark.hadoop.hive.server2.thrift.sasl.qop": service.qop,
            **{f"spark.hadoop.{name}": text for name, text in http.items()},
        },
    )
    with thrift_server(settings, java, lambda _: None, answers=Endpoint.listens) as server:
        yield server


def _tls(directory: Path, java: Java) -> dict[str, str]:
    """Settings for TLS, and the certificate `spark.pem` in the directory. Jetty asks for the host in it."""
    directory.mkdir(parents=True, exist_ok=True)
    password, store = "of-the-store", str(directory / "spark.p12")
    for command in (
        (
            "-genkeypair",
            "-alias",
            "spark",
            "-keyalg",
            "RSA",
            "-dname",
            "CN=localhost",
            "-ext",
            "san=ip:127.0.0.1",
        ),
        ("-exportcert", "-rfc", "-alias", "spark", "-file", str(directory / "spark.pem")),
    ):
        keytool = [str(java.path.parent / "keytool"), *command]
        store_options = ("-keystore", store, "-storetype", "PKCS12", "-storepass", password)
        subprocess.run([*keytool, *store_options], check=True, capture_output=True)
    return {
        "hive.server2.use.SSL": "true",
        "hive.server2.keystore.path": store,
        "hive.server2.keystore.password": password,
    }


@dataclass(frozen=True)
class Beeline:
    """Spark's own beeline in the realm, as `beeline` in a directory for PATH, and the tickets of its users."""

    kdc: Kdc
    home: Path

    @classmethod
    def installed(cls, java: Java, kdc: Kdc, home: Path) -> "Beeline":
        """With the core-site.xml that a cluster's clients have."""
        conf = hadoop_conf(home / "conf", {"hadoop.security.authentication": "kerberos"})
        (home / "bin").mkdir(parents=True)
        command = beeline_command(java, "URL")[:-2]
        command[command.index("-cp") + 1] = f"{conf}:{spark_home()}/jars/*"
        command[1:1] = [
            f"-Duser.home={home}",
            f"-Djava.security.krb5.conf={kdc.config}",
            QUICK_COMPILER,
        ]
        script = home / "bin" / "beeline"
        script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
        return cls(kdc, home)

    def environment_of(self, user: str) -> dict[str, str]:
        """The environment of a user who has logged in."""
        own = self.kdc.environment_of(user)
        return own | {"HOME": str(self.home), "LC_ALL": "C.UTF-8", "PATH": f"{self.home / 'bin'}:{own['PATH']}"}

    def run(self, user: str, url: str, script: str) -> "subprocess.CompletedProcess[str]":
        """Run a script to its end in spite of errors."""
        path = self.home / "script.sql"
        path.write_text(script, encoding="utf-8")
        options = ("-u", url, "--outputformat=tsv2", "--force=true", "--silent=true", "-f", str(path))
        return subprocess.run(
            [str(self.home / "bin" / "beeline"), *options],
            env=self.environment_of(user),
            check=False,
            capture_output=True,
            text=True,
            timeout=BEELINE_SECONDS_MAX,
        )

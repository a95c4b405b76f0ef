"""The JDBC drivers that users have: Hive 2.3's, which Spark brings along, and Hive 4's from Maven Central."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from demo.java import spark_home

CACHE = Path(__file__).parents[2] / ".starpruner" / "clients"
HIVE_4 = "4.0.1"
# 44 MB from a registry near or far, and Maven's own plugins before it.
MAVEN_SECONDS_MAX = 300
# Set where every client has to be there, as in CI: what cannot be had then fails instead of being skipped.
REQUIRED = "STARPRUNER_CLIENTS_REQUIRED"


class ClientMissingError(Exception):
    """A client cannot be had here; the message says why."""


@dataclass(frozen=True)
class Driver:
    """A JDBC driver by the class path that has it."""

    name: str
    class_path: str


def spark_driver() -> Driver:
    """The driver that beeline of every Spark uses."""
    return Driver("hive-jdbc 2.3", f"{spark_home()}/jars/*")


def hive_4_driver(cache: Path = CACHE) -> Driver:
    """Hive 4's driver in its standalone form, fetched by Maven on first use."""
    jar = cache / f"hive-jdbc-{HIVE_4}-standalone.jar"
    if not jar.exists():
        _fetch(f"org.apache.hive:hive-jdbc:{HIVE_4}:jar:standalone", cache)
    return Driver(f"hive-jdbc {HIVE_4}", str(jar))


def is_required(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a client that is missing is a failure."""
    return environment.get(REQUIRED, "") not in ("", "0")


def _fetch(artifact: str, directory: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise ClientMissingError(f"{artifact} is fetched by Maven, and there is no mvn on PATH")
    copy = (f"-Dartifact={artifact}", f"-DoutputDirectory={directory}")
    command = [maven, "--batch-mode", "--quiet", "dependency:copy", *copy]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=MAVEN_SECONDS_MAX, cwd="/"
        )
    except subprocess.TimeoutExpired:
        raise ClientMissingError(f"Maven has not brought {artifact} within {MAVEN_SECONDS_MAX} s") from None
    if done.returncode:
        raise ClientMissingError(f"Maven could not bring {artifact}: {done.stdout[-1000:]}{done.stderr[-1000:]}")

"""What tests need beside the packages of Python: artifacts of Maven Central, and a Java that compiles."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from demo.java import Java

# Tens of megabytes from a registry near or far, and Maven's own plugins before them.
MAVEN_SECONDS_MAX = 300
# Set where every client has to be there, as in CI: what cannot be had then fails instead of being skipped.
REQUIRED = "STARPRUNER_CLIENTS_REQUIRED"


_DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
_PROJECT = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>starpruner</groupId><artifactId>tests</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>{}</dependencies></project>
"""


class ClientMissingError(Exception):
    """A client or server cannot be had here; the message says why."""


def is_required(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether what is missing is a failure."""
    return environment.get(REQUIRED, "") not in ("", "0")


def require_compiler(java: Java) -> None:
    """Skip a test, or fail where every client has to be there, whose Java runs no program from its source."""
    if "jdk.compiler" in java.modules:
        return
    reason = "this Java has no compiler, so it cannot run a program from its source"
    if is_required():
        raise ClientMissingError(reason)
    pytest.skip(reason)


def fetch(artifact: str, directory: Path) -> None:
    """Put an artifact, as group:name:version, into a directory; raises ClientMissingError."""
    _run_maven(artifact, "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={directory}")


def fetch_with_dependencies(artifacts: Sequence[str], directory: Path) -> None:
    """Put artifacts, and all that they need, into a directory; raises ClientMissingError."""
    with TemporaryDirectory(prefix="starpruner-maven-") as name:
        project = Path(name) / "pom.xml"
        dependencies = "".join(_DEPENDENCY.format(*artifact.split(":")) for artifact in artifacts)
        project.write_text(_PROJECT.format(dependencies), encoding="utf-8")
        options = ("-f", str(project), "-DincludeScope=runtime", f"-DoutputDirectory={directory}")
        _run_maven(artifacts[0], "dependency:copy-dependencies", *options)


def _run_maven(artifact: str, *arguments: str) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise ClientMissingError("there is no mvn on PATH, which fetches clients and servers from Maven Central")
    command = [maven, "--batch-mode", "--quiet", *arguments]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=MAVEN_SECONDS_MAX, cwd="/"
        )
    except subprocess.TimeoutExpired:
        raise ClientMissingError(f"Maven has not brought {artifact} within {MAVEN_SECONDS_MAX} s") from None
    if done.returncode:
        raise ClientMissingError(f"Maven could not bring {artifact}: {done.stdout[-1000:]}{done.stderr[-1000:]}")

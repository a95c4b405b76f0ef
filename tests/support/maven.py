"""What tests need beside the packages of Python, from Maven Central by way of Maven."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

# Tens of megabytes from a registry near or far, and Maven's own plugins before them.
MAVEN_SECONDS_MAX = 300
# Set where every client has to be there, as in CI: what cannot be had then fails instead of being skipped.
REQUIRED = "STARPRUNER_CLIENTS_REQUIRED"


class ClientMissingError(Exception):
    """A client or server cannot be had here; the message says why."""


def is_required(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether what is missing is a failure."""
    return environment.get(REQUIRED, "") not in ("", "0")


def fetch(artifact: str, directory: Path) -> None:
    """Put an artifact, as group:name:version, into a directory; raises ClientMissingError."""
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

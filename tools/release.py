"""Builds what a release consists of, and checks it: `make release`, or `python -m tools.release --help`.

Wheel, source archive and chart; with `--compiled` the compiled wheel, and where a Docker engine answers the image
of the proxy; and their sums. Wheel, archive and chart are the same each time, byte for byte. Nothing is
published.
"""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Final

import click

ROOT: Final = Path(__file__).parent.parent
CHART: Final = ROOT / "deploy" / "helm" / "starpruner"
SAMPLE: Final = ROOT / "deploy" / "starpruner.sample.toml"
DOCKER: Final = ROOT / "deploy" / "docker"
# As hatchling dates what it packs.
_DATE_S: Final = 1_580_601_600
_INSTALL: Final = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
_PARSES: Final = """
from rewriter import Statement, parse
sql = "SELECT f.v:a FROM f JOIN d ON f.ds = d.ds"
assert isinstance(parse(sql, chars_max=99), Statement), "it does not parse"
"""
_HELM: Final = shutil.which("helm", path=f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin")


class Release:
    """One release, on its way into a directory."""

    def __init__(self, to: Path, work: Path) -> None:
        self.version = str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])
        self.notes: list[str] = []
        self._to = to
        self._work = work
        self._unpacked = work / f"starpruner-{self.version}"
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        """A line of progress."""
        click.echo(f"release: {time.monotonic() - self._began:4.0f} s  {text}")

    def build(self) -> None:
        """The wheel and the source archive, of which the same wheel has to come."""
        python = self._environment("build", "-r", str(DOCKER / "build-requirements.txt"))
        self.say("build the wheel and the source archive")
        _run(python, "-m", "hatchling", "build", "-d", str(self._to))
        self.say("build the wheel of the source archive once more")
        with tarfile.open(self._only("*.tar.gz")) as archive:
            archive.extractall(self._work, filter="data")
        _run(
            *(python, "-m", "hatchling", "build", "-t", "wheel", "-d", str(self._work)),
            within=self._unpacked,
        )
        wheel = self._only("*-any.whl")
        if (self._work / wheel.name).read_bytes() != wheel.read_bytes():
            raise click.ClickException("the wheel of the source archive is not that of the checkout")

    def check_wheel(self) -> None:
        """Install the wheel where nothing else is, and let it say its version and check a configuration.

        Then it has to parse a statement with the compiled sqlglot, whose classes Python code cannot extend.
        """
        self.say("install the wheel in an empty environment, and run it")
        wheel = str(self._only("*-any.whl"))
        python = self._environment("wheel", wheel)
        command = str(Path(python).with_name("starpruner"))
        empty = self._work / "empty"
        empty.mkdir()
        self._expect_version(command, self.version, within=empty)
        _run(command, "serve", "--check", "--config", str(SAMPLE), within=empty)
        _run(python, *_INSTALL, f"{wheel}[fast]")
        _run(python, "-c", _PARSES, within=empty)

    def compile_wheel(self) -> None:
        """The wheel of this platform and Python, its wire and relay compiled, where there is a compiler.

        mypyc leaves its modules beside the sources, where Python takes them first. So the source archive is
        compiled, and not the checkout.
        """
        if shutil.which("cc") is None:
            self.notes.append("there is no compiled wheel: no C compiler is here")
            return
        self.say("build the compiled wheel, and let it say its version")
        target = ("-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps", "-w", str(self._to))
        _run(sys.executable, *target, str(self._unpacked), HATCH_BUILD_HOOK_ENABLE_MYPYC="1")
        python = self._environment("compiled", str(self._only("*-cp3*.whl")))
        command = str(Path(python).with_name("starpruner"))
        self._expect_version(command, f"{self.version} (compiled)", within=self._work)

    def pack_chart(self) -> None:
        """The chart, of this version."""
        self.say("pack the chart")
        package = self._to / f"starpruner-chart-{self.version}.tgz"
        package.write_bytes(packed(CHART))
        if _HELM is None:
            self.notes.append("the chart was not checked: helm is not here")
        else:
            _run(_HELM, "lint", "--strict", str(package))
            _run(_HELM, "template", "demo", str(package))

    def build_image(self) -> None:
        """The image, where an engine answers."""
        name = f"starpruner:{self.version}"
        docker = shutil.which("docker")
        if docker is None or _tried(docker, "info").returncode:
            self.notes.append("there is no image: no Docker engine answers")
            return
        self.say(f"build the image {name}")
        _run(docker, "build", "-f", str(DOCKER / "proxy.Dockerfile"), "-t", name, str(ROOT))
        if self.version not in _run(docker, "run", "--rm", name, "--version"):
            raise click.ClickException(f"the image {name} does not say its version")
        _run(docker, "save", "-o", str(self._to / f"starpruner-image-{self.version}.tar"), name)

    def sum_up(self) -> None:
        """The sums of all files, and what is left to say."""
        files = sorted(self._to.glob("starpruner-*"))
        sums = [f"{sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
        (self._to / "SHA256SUMS").write_text("".join(sums))
        if f"## {self.version}\n" not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"):
            self.notes.append(f"CHANGELOG.md has no date or heading `## {self.version}`: it is not released yet")
        self.say(f"{self._to}: {', '.join(file.name for file in files)}, SHA256SUMS")
        for note in self.notes:
            self.say(f"note: {note}")

    def _environment(self, name: str, *wanted: str) -> str:
        """An empty environment with these packages. Returns the path of its Python."""
        _run(sys.executable, "-m", "venv", str(self._work / name))
        python = str(self._work / name / "bin" / "python")
        _run(python, *_INSTALL, *wanted)
        return python

    def _expect_version(self, command: str, expected: str, within: Path) -> None:
        if not (told := _run(command, "--version", within=within)).endswith(f" {expected}\n"):
            raise click.ClickException(f"the wheel says {told.strip()!r}, expected {expected}")

    def _only(self, pattern: str) -> Path:
        (found,) = self._to.glob(pattern)
        return found


def packed(chart: Path) -> bytes:
    """The chart as `helm package` packs it, but without the time and the owner of its files."""
    to = BytesIO()
    with (
        gzip.GzipFile("", "wb", fileobj=to, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as archive,
    ):
        for path in sorted(path for path in chart.rglob("*") if path.is_file() and path.name != ".DS_Store"):
            entry = tarfile.TarInfo(f"{chart.name}/{path.relative_to(chart)}")
            entry.size, entry.mtime = path.stat().st_size, _DATE_S
            with path.open("rb") as content:
                archive.addfile(entry, content)
    return to.getvalue()


def _tried(*command: str, within: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    # Else an environment would find the checkout in the place of what is installed there.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    return subprocess.run(  # noqa: S603 - ours
        command, cwd=within, env=environment, capture_output=True, text=True, check=False
    )


def _run(*command: str, within: Path = ROOT, **variables: str) -> str:
    done = _tried(*command, within=within, **variables)
    if done.returncode:
        raise click.ClickException(f"{' '.join(command)}: {(done.stdout + done.stderr)[-4_000:].strip()}")
    return done.stdout


@click.command()
@click.option("--to", type=click.Path(path_type=Path), default=ROOT / "dist", help="The directory.")
@click.option("--no-images", is_flag=True, help="Build no image, also where a Docker engine answers.")
@click.option("--compiled", is_flag=True, help="Build the compiled wheel too, which is not released yet.")
def main(to: Path, *, no_images: bool, compiled: bool) -> None:
    """Build a release, and check it."""
    to.mkdir(parents=True, exist_ok=True)
    for old in (*to.glob("starpruner-*"), to / "SHA256SUMS"):
        old.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="starpruner-release-") as work:
        release = Release(to.absolute(), Path(work))
        release.build()
        release.check_wheel()
        if compiled:
            release.compile_wheel()
        release.pack_chart()
        if not no_images:
            release.build_image()
        release.sum_up()


if __name__ == "__main__":
    main()

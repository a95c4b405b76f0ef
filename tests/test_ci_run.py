"""`.ci/run` on machines that lack something: it names each missing package, and skips nothing in silence."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / ".ci" / "run"
BASH = shutil.which("bash")

# It installs all at once, or each by itself, except those that the machine cannot have.
APT_GET = """#!{bash}
[ "$1" = update ] && exit {update}
for last; do
  case " {unknown} " in *" $last "*) exit 100 ;; esac
done
echo "${{@:5}}" >> {log}
"""
# The end of all runs tells what has to be there.
MAKE = """#!{bash}
echo "make $* clients=$STARPRUNER_CLIENTS_REQUIRED kerberos=$STARPRUNER_KERBEROS_REQUIRED" >> {log}
"""


@dataclass(frozen=True)
class Machine:
    """A folder with the script and with all programs that it finds."""

    folder: Path

    def put(self, path: str, text: str) -> None:
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        place.chmod(0o755)

    def answers(self, program: str, answer: str = "", code: int = 0) -> None:
        self.put(f"bin/{program}", f"#!{BASH}\necho {answer}\nexit {code}\n")

    def with_apt_get(self, *unknown: str, update: int = 0) -> "Machine":
        log = self.folder / "installed"
        self.put("bin/apt-get", APT_GET.format(bash=BASH, update=update, unknown=" ".join(unknown), log=log))
        return self

    def run(self) -> subprocess.CompletedProcess[str]:
        assert BASH is not None
        environment = {name: value for name, value in os.environ.items() if not name.startswith("STARPRUNER_")}
        environment |= {"PATH": str(self.folder / "bin"), "JAVA_HOME": ""}
        command = [BASH, str(self.folder / ".ci" / "run")]
        return subprocess.run(command, env=environment, check=False, capture_output=True, text=True)

    def told(self, name: str) -> list[str]:
        place = self.folder / name
        return place.read_text(encoding="utf-8").splitlines() if place.exists() else []

    @property
    def last_make(self) -> str:
        return (self.told("made") or [""])[-1]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine of root's with Maven and a JDK, and without apt-get."""
    made = Machine(tmp_path)
    made.put(".ci/run", SCRIPT.read_text(encoding="utf-8"))
    made.put("bin/make", MAKE.format(bash=BASH, log=tmp_path / "made"))
    for program in ("mvn", "javac", "../.venv/bin/pip", "../.venv/bin/python"):
        made.answers(program)
    made.answers("id", "0")
    made.answers("dirname", str(tmp_path / ".ci"))
    return made


def test_all_packages_are_installed_at_once_and_all_is_required(machine: Machine) -> None:
    done = machine.with_apt_get().run()
    assert done.returncode == 0, done.stderr
    (installed,) = machine.told("installed")
    assert {"chromium", "haproxy", "prometheus", "docker.io", "krb5-kdc"} <= set(installed.split())
    assert not {"maven", "default-jdk-headless"} & set(installed.split())
    assert machine.last_make == "make test CHECKED=1 clients=1 kerberos=1"


def test_a_package_that_is_missing_is_named_and_takes_no_other_with_it(machine: Machine) -> None:
    done = machine.with_apt_get("chromium", "slapd").run()
    assert done.returncode == 1
    assert done.stderr == "tests need these packages, which cannot be installed: chromium slapd\n"
    assert {"haproxy", "prometheus", "docker.io", "krb5-kdc"} <= set(machine.told("installed"))
    assert machine.told("made") == []


def test_maven_and_a_jdk_are_installed_where_there_are_none(machine: Machine) -> None:
    for program in ("mvn", "javac"):
        (machine.folder / "bin" / program).unlink()
    machine.with_apt_get().run()
    assert machine.told("installed")[0].split()[-2:] == ["maven", "default-jdk-headless"]


def test_a_machine_without_a_mirror_goes_on_with_what_it_has(machine: Machine) -> None:
    done = machine.with_apt_get("chromium", update=100).run()
    assert done.returncode == 0
    assert "cannot be installed: chromium\n" in done.stderr
    assert machine.last_make == "make test CHECKED=1 clients=1 kerberos="


@pytest.mark.parametrize(("user", "has_apt_get"), [("1000", True), ("0", False)])
def test_where_apt_cannot_work_the_run_says_so_and_goes_on(
    machine: Machine, user: str, *, has_apt_get: bool
) -> None:
    machine.answers("id", user)
    (machine.folder / "bin" / "mvn").unlink()
    if has_apt_get:
        machine.with_apt_get()
    done = machine.run()
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("no package is installed, for that needs root and apt-get")
    assert "no clients are required, for Maven (mvn) or a Java compiler (javac) is missing" in done.stderr
    assert machine.told("installed") == []
    assert machine.last_make == "make test CHECKED=1 clients= kerberos="

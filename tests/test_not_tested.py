"""A run ends with what the machine lacks, and how many tests that leaves out."""

import re
from pathlib import Path

import pytest
from support.not_tested import REASON_CHARS_MAX, TITLE, Skipped, lines
from support.profile import only_deep
from support.stamps import UNCHANGED

pytest_plugins = ["pytester"]

TESTS = Path(__file__).parent
MAVEN = "there is no mvn on PATH"
# A test that asks by itself whether the run is deep, with the reason that it gives.
ASKS = re.compile(r"not DEEP[,:]\s+(?:pytest\.skip\(|reason=)\"(.*)\"")
# Of pytest's plugins only the one that is needed, which makes a start ten times as fast.
SETTINGS = f"""[pytest]
pythonpath = {TESTS}
addopts = -ra -p xdist -p xdist.looponfail
"""
CONFTEST = """from support import not_tested

def pytest_configure(config):
    config.pluginmanager.register(not_tested)
"""

LACKING = """
import pytest

if {module}:
    pytest.skip("there is no KDC", allow_module_level=True)

@pytest.fixture(scope="module")
def driver():
    pytest.skip("there is no driver\\nand here is why")

@pytest.mark.parametrize("version", "123")
def test_a_driver(driver, version): ...

@pytest.mark.skipif(True, reason="takes a server of its own: STARPRUNER_DEEP=1")
def test_by_choice(): ...

def test_that_passes(): ...
"""


def test_tests_are_counted_by_what_is_lacking_and_by_folder() -> None:
    skipped = [
        Skipped("there is no haproxy", "tests/e2e"),
        *(Skipped(MAVEN, "tests/iceberg") for _ in range(2)),
        Skipped(MAVEN, "tests/clients"),
        Skipped(MAVEN, "tests/iceberg", is_module=True),
    ]
    assert list(lines(skipped)) == [
        "there is no haproxy: 1 test in tests/e2e",
        f"{MAVEN}: 1 test in tests/clients, 2 tests and 1 module in tests/iceberg",
    ]


def test_a_test_that_is_skipped_by_choice_is_no_lack() -> None:
    reasons = (only_deep("takes minutes").kwargs["reason"], UNCHANGED)
    assert list(lines(Skipped(reason, "tests/e2e") for reason in reasons)) == []


def test_a_long_reason_is_cut() -> None:
    (line,) = lines([Skipped("x" * 1000, "tests/e2e")])
    assert line == f"{'x' * REASON_CHARS_MAX}: 1 test in tests/e2e"


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A place for tests of its own, whose runs end with the table."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeconftest(CONFTEST)
    pytester.makeini(SETTINGS)
    return pytester


@pytest.mark.parametrize("processes", ["0", "2"])
def test_the_table_stands_behind_the_short_summary(run: pytest.Pytester, processes: str) -> None:
    for name, module in (("drivers/test_a.py", False), ("kerberos/test_b.py", True)):
        path = run.mkpydir(name.partition("/")[0]) / name.rpartition("/")[2]
        path.write_text(LACKING.format(module=module), encoding="utf-8")
    found = run.runpytest_subprocess("-n", processes)
    table = found.outlines[found.outlines.index(next(line for line in found.outlines if TITLE in line)) :]
    assert table[1:3] == ["there is no KDC: 1 module in kerberos", "there is no driver: 3 tests in drivers"]
    assert "1 passed, 5 skipped" in table[3]
    assert len(table) == 4


def test_a_run_that_lacks_nothing_has_no_table(run: pytest.Pytester) -> None:
    run.makepyfile("import pytest\n\ndef test_by_choice():\n    pytest.skip('a choice: STARPRUNER_DEEP=1')\n")
    found = run.runpytest_subprocess()
    assert found.ret == 0
    assert TITLE not in found.stdout.str()


def test_tests_of_the_deep_run_say_what_runs_them() -> None:
    reasons = [reason for path in TESTS.rglob("*.py") for reason in ASKS.findall(path.read_text(encoding="utf-8"))]
    assert [reason for reason in reasons if not Skipped(reason, "").is_by_choice] == []

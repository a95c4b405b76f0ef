"""The alert rules: Prometheus reads them, each fires where it should, and each has its part of the page."""

import re
import subprocess
from pathlib import Path
from shutil import which

import pytest

ROOT = Path(__file__).parent.parent.parent
RULES = ROOT / "deploy" / "prometheus" / "alerts.yml"
CASES = Path(__file__).parent / "alerts_test.yml"
PAGE = ROOT / "docs" / "observability.md"


def promtool(*arguments: str | Path) -> None:
    program = which("promtool")
    if program is None:
        pytest.skip("promtool is missing: it comes with Debian's package prometheus")
    found = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr


def alerts(of: Path) -> list[str]:
    return re.findall(r"alert(?:name)?: (\w+)", of.read_text(encoding="utf-8"))


def test_prometheus_reads_the_rules() -> None:
    promtool("check", "rules", "--lint=all", "--lint-fatal", RULES)


def test_each_alert_fires_where_it_should_and_nowhere_else() -> None:
    promtool("test", "rules", CASES)


def test_each_alert_has_a_case_with_it_and_one_without() -> None:
    cases = CASES.read_text(encoding="utf-8")
    quiet, *others = cases.split("  - name: ")[1:]
    assert alerts(RULES) == re.findall(r"alertname: (\w+)", quiet)
    assert set(alerts(RULES)) == set(re.findall(r"alertname: (\w+)", "".join(others)))


def test_each_alert_has_its_part_of_the_page() -> None:
    headings = re.findall(r"^### (Starpruner\w+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings == alerts(RULES)
    links = re.findall(r"runbook_url: docs/observability\.md#(\w+)", RULES.read_text(encoding="utf-8"))
    assert links == [name.lower() for name in headings]

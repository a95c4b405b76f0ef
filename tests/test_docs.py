"""The pages in docs/ say what the code has: keys, packages, rules, reasons; and their links lead somewhere."""

import re
from pathlib import Path

import pytest

from proxy.session.session_settings import SessionSettings
from rewriter import Rule, SkipReason
from rewriter.vocabulary.remedies import REMEDIES
from rewriter.vocabulary.skip_reason import UnpinnedReason
from tools import architecture_map, compatibility, configuration_page, metrics_table
from tools.configuration_keys import tables

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [*(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")), *sorted(DOCS.rglob("*.md"))]
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
WIDTH = 115


def text(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def test_the_page_of_the_configuration_is_made_from_the_code_as_it_is() -> None:
    command = configuration_page.COMMAND
    assert text("configuration.md") == configuration_page.page(), f"make it anew: {command}"


def test_the_table_of_metrics_is_made_from_the_code_as_it_is() -> None:
    now = text("observability.md")
    assert now == metrics_table.page(now), f"make it anew: {metrics_table.COMMAND}"


def test_the_table_of_versions_is_made_from_the_record_of_runs() -> None:
    now = text("compatibility.md")
    assert now == compatibility.page(now, compatibility.recorded()), f"make it anew: {compatibility.COMMAND}"


def test_every_key_of_the_configuration_has_a_text() -> None:
    assert [entry for table in tables() for entry in table.entries if not entry.text] == []


def test_the_page_of_the_configuration_names_every_setting_of_a_session() -> None:
    settings = re.findall(r"^SET starpruner\.(\w+)=", text("configuration.md"), re.MULTILINE)
    assert set(settings) == set(SessionSettings.__struct_fields__)


def test_the_map_is_made_from_the_packages_as_they_are() -> None:
    now = text("architecture.md")
    assert now == architecture_map.page(now), f"make it anew: {architecture_map.COMMAND}"


def test_the_page_on_coverage_names_every_rule_and_every_reason_and_no_other() -> None:
    codes = re.findall(r"^\| `(\w+)` \|", text("coverage.md"), re.MULTILINE)
    reasons = [reason.name for reason in (*SkipReason, *UnpinnedReason)]
    assert sorted(codes) == sorted([*(rule.value for rule in Rule), *reasons])


def test_the_remedies_are_those_of_the_page_on_coverage() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", text("coverage.md"), re.MULTILINE)
    without_links = {code: re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", advice) for code, advice in rows}
    assert {reason.name: advice for reason, advice in REMEDIES.items()} == {
        reason.name: without_links[reason.name] for reason in SkipReason
    }


def test_the_index_names_every_page_and_every_decision() -> None:
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} - {"README.md"}
    assert set(re.findall(r"\]\(((?!\.\.)[^)]+\.md)\)", text("README.md"))) == pages


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_link_leads_to_a_file_or_a_heading(page: Path) -> None:
    targets = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not leads_somewhere(page, target)] == []


def leads_somewhere(page: Path, target: str) -> bool:
    if ":" in target:
        return True
    path, _, heading = target.partition("#")
    found = page.parent / path if path else page
    return found.exists() and (not heading or heading in anchors(found))


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_no_line_of_prose_is_wider_than_the_code(page: Path) -> None:
    assert [line for line in prose(page.read_text(encoding="utf-8")) if len(line) > WIDTH] == []


def prose(written: str) -> list[str]:
    """The lines outside of code, tables, and the paragraphs that a program writes."""
    without_code = re.sub(r"^ *```.*?^ *```", "", written, flags=re.DOTALL | re.MULTILINE)
    by_hand = re.sub(r"^<!-- \w+: made by .*?\n\n", "", without_code, flags=re.DOTALL | re.MULTILINE)
    return [line for line in by_hand.splitlines() if not line.startswith(("|", "<!--"))]

from datetime import date, timedelta
from pathlib import Path

import pytest
from support.landing import LANDING, ROTATED, ROTATION_DAYS, is_landing, is_of_another_day

TESTS = Path(__file__).parent
MONDAY = date(2026, 11, 23)


@pytest.mark.parametrize("path", [*sorted(LANDING), *ROTATED])
def test_a_module_of_landings_is_there(path: str) -> None:
    assert (TESTS / path).is_file()


def test_a_module_has_one_place() -> None:
    assert len({*ROTATED, *LANDING}) == len(ROTATED) + len(LANDING)


@pytest.mark.parametrize("path", ROTATED)
def test_a_rotated_module_runs_on_one_day_of_four(path: str) -> None:
    days = [(MONDAY + timedelta(days)).isoformat() for days in range(ROTATION_DAYS)]
    assert is_landing(f"tests/{path}")
    assert sum(not is_of_another_day(f"tests/{path}", day) for day in days) == 1


def test_the_other_modules_run_every_day() -> None:
    for path in ("tests/e2e/test_rewrite.py", *(f"tests/{one}" for one in LANDING)):
        assert not is_of_another_day(path, MONDAY.isoformat())

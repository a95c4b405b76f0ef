"""Limits that guard tests against hanging are none that a busy machine reaches."""

import re
from pathlib import Path

TESTS = Path(__file__).parent
PATIENCE_S_MIN = 30.0
# Constants by the names that such limits have here, and numbers that a test compares with what has passed.
LIMIT = re.compile(
    r"^_?(?:PATIENCE|PATIENT|PROMPTLY|BACKGROUND)_S(?:: Final)? = ([\d.]+)$|monotonic\(\) - \w+ [<>] ([\d.]+)",
    re.MULTILINE,
)


def limits(text: str) -> list[float]:
    # Processor time does not pass while others have the machine.
    return [] if "process_time()" in text else [float(one or other) for one, other in LIMIT.findall(text)]


def test_a_limit_is_found_where_it_is_named_and_where_it_is_compared() -> None:
    assert limits("PATIENCE_S = 5.0\nPATIENT_S: Final = 2\nOTHER_S = 1.0\n") == [5.0, 2.0]
    assert limits("    assert time.monotonic() - began < 1.5, 'it waits'\n") == [1.5]
    assert limits("PATIENCE_S = 5.0\nbegan = time.process_time()\n") == []


def test_patience_is_half_a_minute_or_more() -> None:
    found = {path: limits(path.read_text(encoding="utf-8")) for path in TESTS.rglob("*.py")}
    del found[Path(__file__)]
    short = {path.relative_to(TESTS).as_posix(): min(each) for path, each in found.items() if each}
    assert len(short) > 20
    assert {path: limit for path, limit in short.items() if limit < PATIENCE_S_MIN} == {}

"""Whether skipping files by a statement's own filters makes up for narrowing it."""

import pytest

from proxy.session.feedback.cost_inputs import makes_up
from rewriter.files.file_facts import FileFacts
from rewriter.files.file_index import FileSelection

MB = 1_000_000


def selection(skipped: int, kept: int, size_bytes: int, rows: int) -> FileSelection:
    misses = tuple(FileFacts(f"/f/{number}", size_bytes, 0, rows, {}, ()) for number in range(skipped))
    total = skipped + kept
    return FileSelection(misses, kept, kept * size_bytes, total, total * size_bytes, kept_rows=kept * rows)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param(selection(23, 2, 80 * MB, 2_000_000), True, id="a frequent value in files of its own"),
        pytest.param(selection(20, 5, 80 * MB, 1_600_000), False, id="a rare value among eight million rows"),
        pytest.param(selection(16, 9, 80 * MB, 1_800_000), False, id="some values among sixteen million rows"),
        pytest.param(selection(17, 1, 110 * MB, 2_800_000), True, id="one key of a sorted table"),
        pytest.param(selection(18, 0, 1 * MB, 50_000), False, id="a few small files"),
        pytest.param(selection(300, 3, 1 * MB, 10_000), True, id="hundreds of small files"),
    ],
)
def test_files_are_skipped_where_that_was_measured_to_save_time(files: FileSelection, expected: bool) -> None:  # noqa: FBT001
    assert makes_up([files]) is expected


def test_what_all_scans_save_is_held_against_the_rows_that_all_leave() -> None:
    one, other = selection(23, 2, 80 * MB, 2_000_000), selection(0, 5, 80 * MB, 1_600_000)
    assert makes_up([one])
    assert not makes_up([one, other])

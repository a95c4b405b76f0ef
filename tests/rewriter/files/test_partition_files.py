"""The partitions to which indexed files belong, by their directories."""

import pytest

from rewriter.files.file_facts import FileFacts
from rewriter.files.partition_files import FileSum, PartitionFiles


def file(path: str, size_bytes: int = 10) -> FileFacts:
    return FileFacts(path, size_bytes, 7, None, {}, ())


def test_files_are_counted_by_the_names_of_their_directories() -> None:
    found = PartitionFiles.of(
        [
            file("s3://b/t/ds=1/r=eu/a", 5),
            file("s3://b/t/ds=1/r=eu/b", 7),
            file("s3://b/t/DS=1/r=us/a"),
            file("s3://b/t/ds=2/r=%2525 x/a=b"),
        ],
        ("ds", "r"),
    )
    assert found is not None
    assert found.location == "s3://b/t"
    assert found.by_partition == {
        "ds=1/r=eu": FileSum(2, 12),
        "DS=1/r=us": FileSum(1, 10),
        "ds=2/r=%25 x": FileSum(1, 10),
    }
    assert found.total == FileSum(4, 32)
    assert found.sum_of(["ds=1/r=eu", "DS=1/r=us"]) == FileSum(3, 22)
    assert found.sum_of(["ds=1/r=eu", "ds=9/r=eu"]) is None, "it may be newer than the index"


def test_the_name_of_a_column_is_quoted_in_a_path() -> None:
    found = PartitionFiles.of([file("s3://b/t/my%20col=1/a")], ("my col",))
    assert found is not None
    assert set(found.by_partition) == {"my col=1"}


@pytest.mark.parametrize(
    "path", ["s3://b/t/a", "s3://b/t/ds=1/a", "s3://b/t/r=eu/ds=1/a", "s3://b/elsewhere/2026/eu/a", "ds=1/r=eu"]
)
def test_a_file_in_a_directory_of_another_name_leaves_all_unknown(path: str) -> None:
    assert PartitionFiles.of([file("s3://b/t/ds=1/r=eu/a"), file(path)], ("ds", "r")) is None


@pytest.mark.parametrize("path", ["s3://b/old/ds=2/a", "s3://b/t/ds=1/ds=2/a"])
def test_partitions_in_several_places_leave_all_unknown(path: str) -> None:
    assert PartitionFiles.of([file("s3://b/t/ds=1/a"), file(path)], ("ds",)) is None

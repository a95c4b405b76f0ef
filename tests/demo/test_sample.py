"""The sample is loaded once, and never half."""

import json
from pathlib import Path

import pytest
from pyhive import hive

from demo.hive import run
from demo.sample import (
    REGIONS,
    ROWS_PER_PARTITION,
    STATE_FILE,
    Sample,
    SampleError,
    clear_unfinished,
    is_loaded,
)


def _left_by(directory: Path, *, finished: bool, sample: Sample) -> None:
    (directory / "warehouse").mkdir()
    state = {"finished": finished, "days": sample.days, "version": sample.version}
    (directory / STATE_FILE).write_text(json.dumps(state))


def test_a_finished_sample_is_kept(tmp_path: Path) -> None:
    _left_by(tmp_path, finished=True, sample=Sample(10))
    clear_unfinished(tmp_path, Sample(10))
    assert is_loaded(tmp_path, Sample(10))
    assert (tmp_path / "warehouse").exists()


@pytest.mark.parametrize(
    ("finished", "sample"),
    [(False, Sample(10)), (True, Sample(11)), (True, Sample(10, version=0))],
    ids=["half loaded", "of another size", "of another version"],
)
def test_any_other_sample_is_removed_before_loading_again(
    tmp_path: Path, *, finished: bool, sample: Sample
) -> None:
    _left_by(tmp_path, finished=finished, sample=sample)
    assert not is_loaded(tmp_path, Sample(10))
    clear_unfinished(tmp_path, Sample(10))
    assert not (tmp_path / "warehouse").exists()


def test_tables_that_the_demo_did_not_make_are_never_removed(tmp_path: Path) -> None:
    (tmp_path / "metastore_db").mkdir()
    with pytest.raises(SampleError, match="another --dir"):
        clear_unfinished(tmp_path, Sample(10))
    assert (tmp_path / "metastore_db").exists()


def test_the_loaded_sample_is_complete_and_its_keys_find_partners(direct: hive.Connection, sample: Sample) -> None:
    partitions = sample.days * len(REGIONS)
    assert run(direct, "SELECT count(*), count(DISTINCT ds, region) FROM sales") == [
        (partitions * ROWS_PER_PARTITION, partitions)
    ]
    joined = """
SELECT count(*) FROM sales JOIN dates USING (ds) JOIN products USING (product_id)
JOIN stores USING (store_id, region)"""
    assert run(direct, joined) == [(partitions * ROWS_PER_PARTITION,)]

"""The parts that the other modules of this folder need, and are skipped without."""

import pytest
from support.kdc import missing_parts
from support.maven import is_required


def test_the_parts_are_there_where_clients_are_required() -> None:
    if not is_required():
        pytest.skip("nothing is required here; CI sets STARPRUNER_CLIENTS_REQUIRED")
    assert not missing_parts()

"""The parts that the other modules of this folder need, and are skipped without."""

import os

import pytest
from support.kdc import missing_parts
from support.ldap_directory import missing_directory_parts

# Set by .ci/run where Debian's packages and the bindings could be installed.
REQUIRED = "STARPRUNER_KERBEROS_REQUIRED"


@pytest.mark.skipif(not os.environ.get(REQUIRED), reason=f"nothing is required here: {REQUIRED}=1")
def test_the_parts_are_there_where_kerberos_is_required() -> None:
    assert not missing_parts()
    assert not missing_directory_parts()

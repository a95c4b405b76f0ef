"""Without python-gssapi the proxy starts as ever, and says what to install where [kerberos] is set."""

import sys
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from proxy.cli import main
from proxy.kerberos.errors import KerberosMissingError
from proxy.kerberos.gss import library

KERBEROS = ("--set", "kerberos.principal=starpruner/host@REALM", "--set", "kerberos.keytab=/etc/keytab")


@pytest.fixture(autouse=True)
def _without_the_library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    library.cache_clear()
    yield
    library.cache_clear()


def test_the_extra_is_named() -> None:
    with pytest.raises(KerberosMissingError, match=r"pip install '.\[kerberos\]'"):
        library()


def test_the_start_is_refused_with_a_sentence() -> None:
    done = CliRunner().invoke(main, ["serve", "--check", *KERBEROS])
    assert done.exit_code == 1
    assert "pip install '.[kerberos]'" in done.output


def test_nothing_is_needed_without_the_section() -> None:
    assert CliRunner().invoke(main, ["serve", "--check"]).exit_code == 0

"""A cache of tickets is left where they may be of no use, and not too often."""

import os
from pathlib import Path

from proxy.kerberos.principals import parse_principal
from proxy.kerberos.ticket_caches import RENEWED_AFTER_S, TicketCaches

OWN = parse_principal("starpruner/host@REALM")


def test_a_new_keytab_begins_a_new_cache(tmp_path: Path) -> None:
    caches, keytab = TicketCaches(), tmp_path / "keytab"
    keytab.write_bytes(b"key")
    first = caches.name_for(OWN, keytab)
    assert caches.name_for(OWN, keytab) == first
    os.utime(keytab, (1, 1))
    assert caches.name_for(OWN, keytab) != first


def test_refused_logins_begin_one_cache_a_minute(tmp_path: Path) -> None:
    now = 0.0
    caches = TicketCaches(lambda: now)
    names = {caches.name_for(OWN, tmp_path)}
    for _ in range(100):
        caches.login_refused()
        names.add(caches.name_for(OWN, tmp_path))
    assert len(names) == 2
    now += RENEWED_AFTER_S
    caches.login_refused()
    assert caches.name_for(OWN, tmp_path) not in names

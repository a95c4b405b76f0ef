"""A directory (LDAP) for a test's KDC: it alone keeps where a service may delegate to (S4U2Proxy)."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from demo.hive import Endpoint, free_port

BASE: Final = "dc=starpruner,dc=test"
ADMIN: Final = f"cn=admin,{BASE}"
# Of a test's data, on this machine alone.
PASSWORD: Final = "secret-of-the-directory"  # noqa: S105
# Debian has the servers where no user's path leads.
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
_PROGRAMS = ("slapd", "ldapadd", "ldapmodify", "kdb5_ldap_util")
_CORE_SCHEMA = Path("/etc/ldap/schema/core.schema")
_START_S = 60.0

# The part of MIT's schema that its KDC asks for: an attribute, its number and its kind. Debian keeps the schema
# among its documentation, which small images leave out.
_NOVELL = "2.16.840.1.113719.1.301"
_ATTRIBUTES = f"""
krbPrincipalName {_NOVELL}.4.1.1 text
krbCanonicalName 1.2.840.113554.1.4.1.6.1 text
krbPrincipalExpiration {_NOVELL}.4.6.1 time
krbTicketFlags {_NOVELL}.4.8.1 integer
krbMaxTicketLife {_NOVELL}.4.9.1 integer
krbMaxRenewableAge {_NOVELL}.4.10.1 integer
krbSearchScope {_NOVELL}.4.25.1 integer
krbPwdPolicyReference {_NOVELL}.4.36.1 name
krbPasswordExpiration {_NOVELL}.4.37.1 time
krbPrincipalKey {_NOVELL}.4.39.1 bytes
krbTicketPolicyReference {_NOVELL}.4.40.1 name
krbSubTrees {_NOVELL}.4.41.1 name
krbPwdHistory {_NOVELL}.4.44.1 bytes
krbLastPwdChange {_NOVELL}.4.45.1 time
krbLastAdminUnlock 1.3.6.1.4.1.5322.21.2.5 time
krbMKey {_NOVELL}.4.46.1 bytes
krbLastSuccessfulAuth {_NOVELL}.4.48.1 time
krbLastFailedAuth {_NOVELL}.4.49.1 time
krbLoginFailedCount {_NOVELL}.4.50.1 integer
krbExtraData {_NOVELL}.4.51.1 bytes
krbObjectReferences {_NOVELL}.4.52.1 name
krbPrincContainerRef {_NOVELL}.4.53.1 name
krbPrincipalAuthInd 2.16.840.1.113730.3.8.15.2.1 words
krbAllowedToDelegateTo 1.3.6.1.4.1.5322.21.2.4 text
"""
_KINDS = {
    "text": ("caseExactIA5Match SUBSTR caseExactSubstringsMatch", 26),
    "integer": ("integerMatch", 27),
    "time": ("generalizedTimeMatch", 24),
    "bytes": ("octetStringMatch", 40),
    "name": ("distinguishedNameMatch", 12),
    "words": ("caseExactMatch", 15),
}
# A class, its number, its kind, and whether it has a name of its own (cn) or one of its attributes.
_CLASSES = f"""
krbContainer {_NOVELL}.6.1.1 STRUCTURAL cn
krbRealmContainer {_NOVELL}.6.2.1 STRUCTURAL cn
krbPrincipalAux {_NOVELL}.6.8.1 AUXILIARY -
krbPrincipal {_NOVELL}.6.9.1 STRUCTURAL krbPrincipalName
krbTicketPolicyAux {_NOVELL}.6.16.1 AUXILIARY -
"""


def missing_directory_parts() -> str:
    """The reason why there can be no tests with delegation; empty if there can."""
    missing = [name for name in _PROGRAMS if shutil.which(name, path=_PATH) is None]
    if missing or not _CORE_SCHEMA.exists():
        return f"{', '.join(missing) or _CORE_SCHEMA} of Debian's krb5-kdc-ldap, slapd and ldap-utils missing"
    return ""


@dataclass(frozen=True)
class LdapDirectory:
    """A running directory."""

    path: Path
    endpoint: Endpoint

    @property
    def url(self) -> str:
        return f"ldap://{self.endpoint}"

    def kdc_conf(self) -> str:
        """The section of kdc.conf by which a KDC keeps its principals here."""
        return f"""[dbmodules]
    directory = {{
        db_library = kldap
        ldap_kerberos_container_dn = cn=kerberos,{BASE}
        ldap_kdc_dn = {ADMIN}
        ldap_kadmind_dn = {ADMIN}
        ldap_service_password_file = {self.path / "password"}
        ldap_servers = {self.url}
        ldap_conns_per_server = 2
    }}
"""

    def creation(self, realm: str) -> list[str]:
        """The command that makes a realm's database."""
        options = ("-D", ADMIN, "-w", PASSWORD, "-H", self.url)
        return [
            *("kdb5_ldap_util", *options, "create", "-r", realm, "-s", "-P", "master"),
            *("-subtrees", BASE, "-sscope", "SUB"),
        ]

    def let_delegate(self, realm: str, service: str, target: str) -> None:
        """Let a service act for users at another one. Both names are without the realm."""
        self.change(
            "ldapmodify",
            f"dn: krbPrincipalName={service}@{realm},cn={realm},cn=kerberos,{BASE}\nchangetype: modify\n"
            f"add: krbAllowedToDelegateTo\nkrbAllowedToDelegateTo: {target}@{realm}\n",
        )

    def change(self, program: str, entries: str) -> None:
        command = [str(shutil.which(program, path=_PATH)), "-x", "-H", self.url, "-D", ADMIN, "-w", PASSWORD]
        done = subprocess.run(command, input=entries, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def running_directory(path: Path) -> Iterator[LdapDirectory]:
    """A directory until the end. It listens on this machine alone."""
    (path / "data").mkdir(parents=True)
    directory = LdapDirectory(path, Endpoint("127.0.0.1", free_port()))
    (path / "kerberos.schema").write_text(_schema())
    (path / "slapd.conf").write_text(_slapd_conf(path))
    (path / "password").write_text(f"{ADMIN}#{{HEX}}{PASSWORD.encode().hex()}\n")
    (path / "password").chmod(0o600)
    program = str(shutil.which("slapd", path=_PATH))
    command = [program, "-h", f"{directory.url}/", "-f", str(path / "slapd.conf"), "-d", "0"]
    with (path / "slapd.out").open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said)
    try:
        until = time.monotonic() + _START_S
        while not directory.endpoint.listens():
            assert process.poll() is None, (path / "slapd.out").read_text()
            assert time.monotonic() < until, "the directory does not listen"
            time.sleep(0.05)
        directory.change(
            "ldapadd", f"dn: {BASE}\nobjectClass: organization\nobjectClass: dcObject\no: tests\ndc: starpruner\n"
        )
        yield directory
    finally:
        process.terminate()
        process.wait(_START_S)


def _slapd_conf(path: Path) -> str:
    return f"""include {_CORE_SCHEMA}
include {path / "kerberos.schema"}
pidfile {path / "slapd.pid"}
modulepath /usr/lib/ldap
moduleload back_mdb
database mdb
suffix "{BASE}"
rootdn "{ADMIN}"
rootpw {PASSWORD}
directory {path / "data"}
maxsize 33554432
access to * by * none
"""


def _schema() -> str:
    attributes = [line.split() for line in _ATTRIBUTES.split("\n") if line]
    names = " $ ".join(name for name, *_ in attributes)
    lines = []
    for name, number, kind in attributes:
        match, syntax = _KINDS[kind]
        lines.append(
            f"attributetype ( {number} NAME '{name}' EQUALITY {match} SYNTAX 1.3.6.1.4.1.1466.115.121.1.{syntax} )"
        )
    for name, number, kind, own_name in (line.split() for line in _CLASSES.split("\n") if line):
        must = "" if own_name == "-" else f"MUST {own_name} "
        lines.append(f"objectclass ( {number} NAME '{name}' SUP top {kind} {must}MAY ( {names} ) )")
    return "\n".join(lines) + "\n"

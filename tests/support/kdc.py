"""A KDC of the tests' own: MIT's krb5kdc on a free port, with a realm in a directory."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.ldap_directory import LdapDirectory, running_directory

REALM = "STARPRUNER.TEST"
# Debian has the servers where no user's path leads.
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
_PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
_START_S = 60.0
# Of MIT's libraries: each is looked up by krb5.conf alone.
_VARIABLES = (
    "KRB5_CONFIG",
    "KRB5_KDC_PROFILE",
    "KRB5CCNAME",
    "KRB5RCACHENAME",
    "KRB5_CLIENT_KTNAME",
    "KRB5_KTNAME",
)


def missing_parts() -> str:
    """The reason why there can be no tests with a KDC; empty if there can."""
    missing = [name for name in _PROGRAMS if shutil.which(name, path=_PATH) is None]
    if missing:
        return f"{', '.join(missing)} of Debian's krb5-kdc, krb5-admin-server and krb5-user missing"
    try:
        import gssapi  # noqa: F401, PLC0415 - an extra
    except (ImportError, OSError) as error:
        return f"python-gssapi is missing: pip install 'starpruner[kerberos]' ({error})"
    return ""


def require_kerberos() -> None:
    """Skip a module, with the reason, where parts are missing; test_parts.py fails where they are required."""
    if reason := missing_parts():
        pytest.skip(reason, allow_module_level=True)


@dataclass(frozen=True)
class Kdc:
    """A realm, its port, and the files of its users."""

    directory: Path
    port: int
    # Of its principals, where services may delegate.
    ldap: LdapDirectory | None = None

    @property
    def config(self) -> Path:
        return self.directory / "krb5.conf"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a program that lives in the realm, without anybody's tickets."""
        kept = {name: value for name, value in os.environ.items() if name not in _VARIABLES}
        return kept | {
            "PATH": _PATH,
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(self.directory / "kdc.conf"),
            "KRB5RCACHENAME": f"file2:{self.directory / 'rcache'}",
        }

    def environment_of(self, user: str) -> dict[str, str]:
        """The same, with the tickets of a user who has logged in by `log_in`."""
        return self.environment | {"KRB5CCNAME": f"FILE:{self.cache_of(user)}"}

    def cache_of(self, user: str) -> Path:
        return self.directory / f"{user.replace('/', '_')}.ccache"

    def administrate(self, *commands: str) -> None:
        for command in commands:
            self.run("kadmin.local", "-r", REALM, "-q", command)

    def add_user(self, user: str, password: str) -> None:
        self.administrate(f"addprinc -pw {password} {user}@{REALM}")

    def add_service(self, service: str, keytab: Path) -> None:
        self.administrate(f"addprinc -randkey {service}@{REALM}", f"ktadd -k {keytab} {service}@{REALM}")

    def let_delegate(self, service: str, target: str) -> None:
        """Let a service act for users at another one."""
        assert self.ldap is not None
        self.ldap.let_delegate(REALM, service, target)

    def log_in(self, user: str, password: str, *options: str) -> dict[str, str]:
        """`kinit`. Returns the environment with the tickets."""
        environment = self.environment_of(user)
        subprocess.run(
            [str(shutil.which("kinit", path=_PATH)), *options, f"{user}@{REALM}"],
            env=environment,
            input=password.encode(),
            check=True,
            capture_output=True,
            timeout=60,
        )
        return environment

    def run(self, *command: str) -> None:
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


@contextmanager
def running_kdc(directory: Path, *, ticket_lifetime: str = "10h", keeps_delegation: bool = False) -> Iterator[Kdc]:
    """A KDC until the end. It listens on this machine alone. `keeps_delegation` needs a directory's parts."""
    directory.mkdir(parents=True, exist_ok=True)
    with running_directory(directory / "ldap") if keeps_delegation else nullcontext() as ldap:
        yield from _running_kdc(Kdc(directory, _free_port(), ldap), ticket_lifetime)


def _running_kdc(kdc: Kdc, ticket_lifetime: str) -> Iterator[Kdc]:
    directory = kdc.directory
    (directory / "krb5.conf").write_text(_krb5_conf(kdc, ticket_lifetime))
    (directory / "kdc.conf").write_text(_kdc_conf(kdc))
    (directory / "kadm5.acl").write_text("")
    local = ["kdb5_util", "create", "-s", "-r", REALM, "-P", "master"]
    kdc.run(*(local if kdc.ldap is None else kdc.ldap.creation(REALM)))
    program = shutil.which("krb5kdc", path=_PATH)
    assert program is not None
    with (directory / "krb5kdc.out").open("wb") as said:
        process = subprocess.Popen([program, "-n", "-r", REALM], env=kdc.environment, stdout=said, stderr=said)
    try:
        _wait_for(kdc, process)
        yield kdc
    finally:
        process.terminate()
        process.wait(_START_S)


def _wait_for(kdc: Kdc, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + _START_S
    while time.monotonic() < until:
        assert process.poll() is None, (kdc.directory / "krb5kdc.out").read_text()
        try:
            socket.create_connection(("127.0.0.1", kdc.port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the KDC does not listen")


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def _krb5_conf(kdc: Kdc, ticket_lifetime: str) -> str:
    # Java reads this file too: it knows neither `include` nor names that it has to look up.
    return f"""[libdefaults]
    default_realm = {REALM}
    dns_lookup_kdc = false
    dns_lookup_realm = false
    rdns = false
    dns_canonicalize_hostname = false
    udp_preference_limit = 1
    ticket_lifetime = {ticket_lifetime}
    forwardable = true

[realms]
    {REALM} = {{
        kdc = 127.0.0.1:{kdc.port}
    }}

[domain_realm]
    localhost = {REALM}
"""


def _kdc_conf(kdc: Kdc) -> str:
    here = kdc.directory
    return f"""[kdcdefaults]
    kdc_listen = 127.0.0.1:{kdc.port}
    kdc_tcp_listen = 127.0.0.1:{kdc.port}

[realms]
    {REALM} = {{
        {f"database_name = {here / 'principal'}" if kdc.ldap is None else "database_module = directory"}
        key_stash_file = {here / "stash"}
        acl_file = {here / "kadm5.acl"}
        max_life = 10h
        supported_enctypes = aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal
    }}

[logging]
    kdc = FILE:{here / "kdc.log"}
    admin_server = FILE:{here / "kadmin.log"}
{"" if kdc.ldap is None else kdc.ldap.kdc_conf()}"""

"""The realm of these tests, in which this process lives too."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.kdc import REALM, Kdc, running_kdc
from support.ldap_directory import missing_directory_parts

from proxy.config.kerberos import KerberosSection


@dataclass(frozen=True)
class Realm:
    """Its KDC, the proxy's keytab and a backend's."""

    kdc: Kdc
    proxy_keytab: Path
    backend_keytab: Path

    # The proxy's own name, and the backend's.
    PROXY = f"starpruner/localhost@{REALM}"
    BACKEND = f"hive/127.0.0.1@{REALM}"

    def ccache(self, user: str = "anna") -> str:
        return f"FILE:{self.kdc.cache_of(user)}"

    def section(self, **keys: object) -> KerberosSection:
        """Clients log in to the proxy."""
        ours = {
            "principal": self.PROXY,
            "keytab": str(self.proxy_keytab),
            "qop": ("auth", "auth-int", "auth-conf"),
        }
        return KerberosSection(**{**ours, **keys})  # type: ignore[arg-type]

    def to_backend(self, **keys: object) -> KerberosSection:
        """The same, and the proxy logs in to the backend."""
        return self.section(**{"backend_principal": f"hive/_HOST@{REALM}", **keys})


@contextmanager
def running_realm(directory: Path, *, ticket_lifetime: str = "10h") -> Iterator[Realm]:
    """The realm until the end. Services may delegate where the parts for that are there."""
    keeps_delegation = not missing_directory_parts()
    with (
        running_kdc(directory, ticket_lifetime=ticket_lifetime, keeps_delegation=keeps_delegation) as kdc,
        pytest.MonkeyPatch.context() as patch,
    ):
        proxy_keytab, backend_keytab = directory / "starpruner.keytab", directory / "hive.keytab"
        kdc.add_service("starpruner/localhost", proxy_keytab)
        kdc.add_service("hive/127.0.0.1", backend_keytab)
        for user in ("anna", "bob"):
            kdc.add_user(user, f"secret-of-{user}")
            kdc.log_in(user, f"secret-of-{user}")
        for variable in ("KRB5_CONFIG", "KRB5RCACHENAME"):
            patch.setenv(variable, kdc.environment[variable])
        yield Realm(kdc, proxy_keytab, backend_keytab)

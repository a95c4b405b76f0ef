"""The section `[kerberos]`: logins of clients, and our own at the backends."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from proxy.config.errors import ConfigError
from proxy.config.types import Counts, Section
from proxy.kerberos.client_logins import ClientLogins, PlainLogins, ServiceKey
from proxy.kerberos.errors import KerberosError
from proxy.kerberos.name_rules import DEFAULT, NameRules
from proxy.kerberos.principals import Principal, parse_principal
from proxy.kerberos.protection import Protection

Qop = Literal["auth", "auth-int", "auth-conf"]


@dataclass(frozen=True)
class BackendKerberos:
    """The login at the backends: our own key, their principal, the protection. Names may still have `_HOST`."""

    own: ServiceKey
    principal: Principal
    protection: Protection
    # True if the login is by the clients' tickets, and the session's user the client itself.
    delegates: bool = False


class KerberosSection(Section, frozen=True):
    """Kerberos: see docs/kerberos.md. Needs the extra starpruner[kerberos]. Left out, logins pass as they come."""

    counts: ClassVar = Counts.AFTER_RESTART

    # The principal that clients log in to, as hive/_HOST@EXAMPLE.COM, where _HOST is this machine's full name.
    # Clients write it behind `principal=` in their URL. Empty: no client can log in by Kerberos.
    principal: str = ""
    # The same on listeners with transport = "http", where browsers and curl ask for HTTP/the-host. Empty:
    # `principal`, which hive-jdbc takes from its URL there too.
    http_principal: str = ""
    # The file with their keys, and with that of `own_principal`. Read anew at each login.
    keytab: str = ""
    # The protection of frames that clients may choose from: "auth" (a login alone), "auth-int" (nobody can change
    # a frame), "auth-conf" (nobody can read it either). "auth" alone, as Hive has it: PyHive and impyla with
    # pure-sasl take the strongest and can speak no other.
    qop: Annotated[tuple[Qop, ...], Meta(min_length=1)] = ("auth",)
    # Rules that make a user's short name of a principal, as Hadoop's hadoop.security.auth_to_local has them, one
    # for each string. DEFAULT takes the first part of principals of our own realm.
    auth_to_local: Annotated[tuple[str, ...], Meta(min_length=1)] = (DEFAULT,)
    # Logins by name and password beside: "refuse", or "kdc", which lets the KDC check the password. Backends
    # cannot check it: one that takes clients of Kerberos by their names alone checks no password.
    plain: Literal["refuse", "kdc"] = "refuse"
    # The principal of backends with hive.server2.authentication=KERBEROS, as hive/_HOST@EXAMPLE.COM, where _HOST
    # is the backend's host. One that speaks HTTP may have another (hive.server2.authentication.spnego.principal).
    # Empty: the backends ask for no Kerberos; where they look at no password, clients go on under their short
    # names.
    backend_principal: str = ""
    # The principal that the proxy itself logs in as there. Empty: `principal`.
    own_principal: str = ""
    # The protection of frames to the backends (hive.server2.thrift.sasl.qop). Over HTTP there is TLS alone.
    backend_qop: Qop = "auth"
    # The way in which a session at such a backend is the client's: "proxy_user" acts for it by
    # hive.server2.proxy.user, which the backend has to allow our principal (hadoop.proxyuser.*). "delegation" logs
    # in as the client, by its forwardable ticket for `principal`, which the KDC has to let delegate to
    # `backend_principal` (S4U2Proxy), or by a ticket-granting ticket that the client sends.
    act_by: Literal["proxy_user", "delegation"] = "proxy_user"
    # Logins over HTTP to backends without backend.tls. A ticket protects neither the statement nor the rows, and
    # the cookie that answers it lets anybody in who reads along: for networks that are trusted alone.
    cleartext_http: bool = False

    @property
    def takes_logins(self) -> bool:
        """True if the proxy takes the clients' logins itself, in the place of the backend."""
        return bool(self.principal or self.backend_principal)

    def client_logins(self, host: str, data_bytes_max: int, listeners: str = "") -> ClientLogins | None:
        """The logins of clients on this host; None where they pass to the backend. Raises ConfigError.

        `listeners` is the principal of one listener, if it has one of its own.
        """
        self._expect_whole()
        if not self.takes_logins:
            if listeners:
                raise ConfigError("listener: kerberos_principal needs the section [kerberos]")
            return None
        try:
            own = self._key(self.own_principal or self.principal)
            service = self._key(listeners or self.principal) if listeners or self.principal else None
            http_service = self._key(self.http_principal) if self.http_principal and not listeners else service
            realm = self._key(self.principal).principal.realm if self.principal else own.principal.realm
            rules = NameRules(self.auth_to_local, realm)
        except KerberosError as error:
            raise ConfigError(f"kerberos: {error}") from None
        qops = frozenset(map(Protection, self.qop))
        return ClientLogins(
            None if service is None else service.at_host(host),
            None if http_service is None else http_service.at_host(host),
            own.at_host(host),
            qops,
            rules,
            PlainLogins(self.plain),
            data_bytes_max,
            self._delegates,
        )

    def backend_kerberos(self) -> BackendKerberos | None:
        """The login at the backends; None where they ask for no Kerberos. Raises ConfigError."""
        self._expect_whole()
        if not self.backend_principal:
            return None
        try:
            own = self._key(self.own_principal or self.principal)
            peer, protection = parse_principal(self.backend_principal), Protection(self.backend_qop)
            return BackendKerberos(own, peer, protection, self._delegates)
        except KerberosError as error:
            raise ConfigError(f"kerberos: {error}") from None

    def expect_transport(self, backend: str, *, has_tls: bool) -> None:
        """Raise ConfigError if the proxy cannot log in over the transport of the backends."""
        if self.cleartext_http and (backend != "http" or has_tls):
            raise ConfigError(
                'kerberos.cleartext_http would do nothing: it is for backend.transport "http" without TLS'
            )
        if not self.takes_logins or backend == "sasl":
            return
        if backend != "http" or not self.backend_principal:
            raise ConfigError(
                f'kerberos: backend.transport is "{backend}", and with [kerberos] it has to be "sasl", or "http" '
                "with kerberos.backend_principal"
            )
        if self.backend_qop != "auth":
            raise ConfigError(
                'kerberos.backend_qop would do nothing: backend.transport is "http", which TLS protects'
            )
        if not (has_tls or self.cleartext_http):
            raise ConfigError(
                "kerberos: over HTTP a ticket protects neither statements nor rows: backend.tls has to be true, "
                "or kerberos.cleartext_http where the network is trusted"
            )

    @property
    def _delegates(self) -> bool:
        return self.act_by == "delegation"

    def _key(self, principal: str) -> ServiceKey:
        return ServiceKey(parse_principal(principal), Path(self.keytab))

    def _expect_whole(self) -> None:
        if not self.takes_logins:
            default = KerberosSection()
            alone = [key for key in self.__struct_fields__ if getattr(self, key) != getattr(default, key)]
            if alone:
                raise ConfigError(
                    f"kerberos: {', '.join(alone)} would do nothing: principal or backend_principal is missing"
                )
            return
        if self._delegates and not self.backend_principal:
            raise ConfigError('kerberos.act_by = "delegation" needs kerberos.backend_principal')
        if not self.keytab:
            raise ConfigError("kerberos.keytab is missing: the file with the key of kerberos.principal")
        if not (self.principal or self.own_principal):
            raise ConfigError("kerberos.own_principal is missing: the name to log in with at the backends")
        if not self.principal and self.plain == "refuse":
            raise ConfigError(
                "kerberos: nobody could log in, neither by Kerberos (kerberos.principal) nor by password "
                '(kerberos.plain = "kdc")'
            )

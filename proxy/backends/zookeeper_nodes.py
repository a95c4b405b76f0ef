"""ZooKeeper nodes in HiveServer2's format, so that its clients find the proxy in the same way. Pure.

A server has one node, `serverUri=HOST:PORT;version=V;sequence=N` below the namespace, which contains the settings
that a client needs to connect. hive-jdbc chooses one of the nodes at random, and reads from it the settings that
its URL does not have (ZooKeeperHiveClientHelper).
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.config.address import Address
from proxy.config.endpoints import Listener, Transport

# Listen addresses that mean all addresses of the host: clients need one of these.
_EVERYWHERE = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - compared, not listened on


def node_prefix(address: Address, version: str) -> str:
    """Return the node's name without its number, which ZooKeeper adds."""
    return f"serverUri={address};version={version};sequence="


def connection_settings(
    listener: Listener, address: Address, http_path: str, logins: Mapping[str, str] | None = None
) -> bytes:
    """Return the content of the node of a listener that clients reach at the address.

    `logins` are the settings by which clients log in, where that is not by PLAIN.
    """
    entries = {
        "hive.server2.thrift.bind.host": address.host,
        "hive.server2.use.SSL": "false" if listener.tls is None else "true",
        **_transport(listener.transport, address.port, http_path),
        **(logins or {}),
    }
    return ";".join(f"{key}={value}" for key, value in entries.items()).encode()


def kerberos_logins(principal: str, qop: str) -> dict[str, str]:
    """Return the settings by which clients log in to a principal."""
    return {
        "hive.server2.authentication": "KERBEROS",
        "hive.server2.authentication.kerberos.principal": principal,
        "hive.server2.thrift.sasl.qop": qop,
    }


def advertised_address(listener: Listener, port: int, advertised_host: str, own_name: str) -> Address:
    """Return the address at which clients reach a listener: the advertised host, or the best guess."""
    host = listener.address.host
    return Address(advertised_host or (own_name if host in _EVERYWHERE else host), port)


def _transport(transport: Transport, port: int, http_path: str) -> dict[str, str]:
    if transport is Transport.HTTP:
        return {
            "hive.server2.transport.mode": "http",
            "hive.server2.thrift.http.port": str(port),
            "hive.server2.thrift.http.path": http_path,
        }
    # A client does not need to know which authentication a login over PLAIN uses.
    return {
        "hive.server2.transport.mode": "binary",
        "hive.server2.thrift.port": str(port),
        "hive.server2.thrift.sasl.qop": "auth",
        "hive.server2.authentication": "NOSASL" if transport is Transport.NOSASL else "NONE",
    }

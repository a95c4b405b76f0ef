"""What HiveServer2 writes into ZooKeeper about itself, so that its clients find us the same way. Pure.

A server has one node, `serverUri=HOST:PORT;version=V;sequence=N` below the namespace, and in it the settings by
which a client has to connect. hive-jdbc takes one of the nodes at random, and from it the settings that its URL
does not have (ZooKeeperHiveClientHelper).
"""

from __future__ import annotations

from proxy.config.address import Address
from proxy.config.endpoints import Listener, Transport

# Where a host listens on all its addresses, clients have to be told one of them.
_EVERYWHERE = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - nobody listens here


def node_prefix(address: Address, version: str) -> str:
    """The node's name up to its number, which ZooKeeper adds."""
    return f"serverUri={address};version={version};sequence="


def connection_settings(listener: Listener, address: Address, http_path: str) -> bytes:
    """How to connect to a listener that clients reach at the address."""
    entries = {
        "hive.server2.thrift.bind.host": address.host,
        "hive.server2.use.SSL": "false" if listener.tls is None else "true",
        **_transport(listener.transport, address.port, http_path),
    }
    return ";".join(f"{key}={value}" for key, value in entries.items()).encode()


def advertised_address(listener: Listener, port: int, advertised_host: str, own_name: str) -> Address:
    """Where clients reach a listener that has the port: as advertised, or as far as it can be known."""
    host = listener.address.host
    return Address(advertised_host or (own_name if host in _EVERYWHERE else host), port)


def _transport(transport: Transport, port: int, http_path: str) -> dict[str, str]:
    if transport is Transport.HTTP:
        return {
            "hive.server2.transport.mode": "http",
            "hive.server2.thrift.http.port": str(port),
            "hive.server2.thrift.http.path": http_path,
        }
    # Of the logins over PLAIN a client need not know which one it is.
    return {
        "hive.server2.transport.mode": "binary",
        "hive.server2.thrift.port": str(port),
        "hive.server2.thrift.sasl.qop": "auth",
        "hive.server2.authentication": "NOSASL" if transport is Transport.NOSASL else "NONE",
    }

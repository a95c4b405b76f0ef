"""A proxy to which its clients speak TLS, and what they need to trust it."""

import re
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import trustme

from demo.hive import Endpoint
from demo.proxy_process import proxy_process

_HOST = "127.0.0.1"


@dataclass(frozen=True)
class TlsProxy:
    """A running proxy with a listener that speaks TLS."""

    endpoint: Endpoint
    trust: ssl.SSLContext
    pid: int


@contextmanager
def tls_proxy(backend: Endpoint, directory: Path, options: Sequence[str]) -> Iterator[TlsProxy]:
    """One in front of the backend, with a certificate that nobody else trusts."""
    directory.mkdir(parents=True, exist_ok=True)
    authority, key, chain = trustme.CA(), directory / "server.key", directory / "server.pem"
    issued = authority.issue_cert(_HOST)
    issued.private_key_pem.write_to_path(key)
    for number, pem in enumerate(issued.cert_chain_pems):
        pem.write_to_path(chain, append=number > 0)
    config = directory / "starpruner.toml"
    config.write_text(
        f'[[listener]]\nlisten = "{_HOST}:0"\ntls_certificate = "{chain.resolve()}"\ntls_key = "{key.resolve()}"\n'
    )
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    with proxy_process(backend, directory, options=(*options, "--config", str(config.resolve()))) as proxy:
        (endpoint,) = re.findall(rf"also on ({_HOST}:\d+)", proxy.child.log.read_text())
        yield TlsProxy(Endpoint.parse(endpoint), trust, proxy.child.process.pid)

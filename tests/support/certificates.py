"""Files of certificates, and whom a client trusts."""

import ssl
from pathlib import Path

import trustme

from proxy.config.endpoints import ListenerTls
from support.scripted_session import HOST


def issued(authority: trustme.CA, folder: Path, *names: str) -> ListenerTls:
    """A listener's certificate, in files there."""
    leaf = authority.issue_cert(*(names or (HOST, "localhost")))
    tls = ListenerTls(folder / "server.pem", folder / "server.key")
    leaf.cert_chain_pems[0].write_to_path(tls.certificate)
    leaf.private_key_pem.write_to_path(tls.key)
    return tls


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    """TLS of a client that knows the authority."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context

"""TLS on either side: contexts from the configured files, read anew when those change, and what a handshake says.

A connection keeps the context that it began with, so new certificates end no session.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from proxy.config.endpoints import ListenerTls, UpstreamTls
from proxy.config.errors import ConfigError

log = logging.getLogger(__name__)

# Two round trips, and no directory service behind them as behind a login.
HANDSHAKE_S: Final = 10.0
# How long the other side may take to read what is on its way, as without TLS (proxy/frontend/graceful_close.py).
SHUTDOWN_S: Final = 30.0
# Certificates are renewed days before they expire. Looking costs a system call for each file.
LOOK_S: Final = 10.0

# OpenSSL's words for what is not a broken handshake but none at all, and for what is up to the other side.
_REASONS: Final = {
    "HTTP_REQUEST": "the other side speaks HTTP without TLS",
    "WRONG_VERSION_NUMBER": "the other side speaks without TLS",
    "RECORD_LAYER_FAILURE": "the other side speaks without TLS",
    "PACKET_LENGTH_TOO_LONG": "the other side speaks without TLS",
    "UNEXPECTED_EOF_WHILE_READING": "the other side closed during the handshake",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the other side has shown no certificate",
    "UNSUPPORTED_PROTOCOL": "the other side speaks no TLS from version 1.2 on",
    "TLSV1_ALERT_UNKNOWN_CA": "the other side does not trust the authority behind our certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the other side does not trust our certificate",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the other side asks for a certificate",
}

Stamp = tuple[int, int, int]


class Certificates:
    """One side's context, as its files have it."""

    def __init__(
        self,
        name: str,
        files: Iterable[Path | None],
        make: Callable[[], ssl.SSLContext],
        clock: Callable[[], float],
    ) -> None:
        """Raises ConfigError where the files cannot be used."""
        self._name = name
        self._files = tuple(path for path in files if path is not None)
        self._make = make
        self._clock = clock
        self._looked_at = clock()
        # Before they are read: what is written meanwhile is then noticed the next time.
        self._stamps = self._look()
        self._context = self._read()

    @classmethod
    def of_listener(cls, name: str, tls: ListenerTls, clock: Callable[[], float]) -> Certificates:
        """What a listener shows."""
        return cls(name, (tls.certificate, tls.key, tls.client_ca), lambda: _server_context(tls), clock)

    @classmethod
    def of_upstream(cls, tls: UpstreamTls, clock: Callable[[], float]) -> Certificates:
        """Whom we trust to be the backend, and what we show it."""
        return cls("backend", (tls.ca, tls.certificate, tls.key), lambda: _client_context(tls), clock)

    def context(self) -> ssl.SSLContext:
        """The context of a connection that begins now."""
        now = self._clock()
        if now - self._looked_at >= LOOK_S:
            self._looked_at = now
            if self._look() != self._stamps:
                self.renew()
        return self._context

    def renew(self) -> None:
        """Read the files again. Where they cannot be used, what was read before goes on."""
        self._stamps = self._look()
        try:
            self._context = self._read()
        except ConfigError as error:
            log.error("%s; the certificates read before go on", error)  # noqa: TRY400 - it says all there is
        else:
            log.info("%s: the certificates were read anew", self._name)

    def _read(self) -> ssl.SSLContext:
        try:
            return self._make()
        except ssl.SSLError as error:
            files = ", ".join(map(str, self._files))
            raise ConfigError(f"{self._name}: {files}: not usable for TLS: {error.reason or error}") from error
        except OSError as error:
            raise ConfigError(f"{self._name}: {error.filename or self._files}: {error.strerror}") from error

    def _look(self) -> tuple[Stamp | None, ...]:
        return tuple(map(_stamp, self._files))


def why_no_handshake(error: Exception) -> str:
    """What a failed handshake is due to, in words for a log."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the other side's certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return _REASONS.get(error.reason or "", f"the handshake failed: {error.reason or 'no reason given'}")
    if isinstance(error, TimeoutError | ConnectionAbortedError):
        return f"no handshake within {HANDSHAKE_S:g} s"
    return "the other side closed during the handshake"


def _server_context(tls: ListenerTls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(tls.certificate, tls.key, password=_no_password)
    if tls.client_ca is not None:
        _trust(context, tls.client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _client_context(tls: UpstreamTls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if tls.ca is None:
        context.load_default_certs()
    else:
        _trust(context, tls.ca)
    if tls.certificate is not None:
        context.load_cert_chain(tls.certificate, tls.key, password=_no_password)
    return context


def _trust(context: ssl.SSLContext, authorities: Path) -> None:
    context.load_verify_locations(authorities)


def _no_password() -> str:
    """An encrypted key is an error: OpenSSL would ask for its password on the terminal."""
    return ""


def _stamp(path: Path) -> Stamp | None:
    """What tells one version of a file from the next, also where a link to it is turned."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size

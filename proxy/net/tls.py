"""TLS contexts for either side, made from the configured files and again when these change; handshake errors.

A connection keeps the context that it began with, so new certificates end no session.
"""

from __future__ import annotations

import logging
import ssl
from _ssl import _test_decode_cert  # type: ignore[attr-defined]
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from proxy.config.endpoints import ListenerTls, UpstreamTls
from proxy.config.errors import ConfigError

log = logging.getLogger(__name__)

# A handshake takes two round trips, and asks no directory service as a login does.
HANDSHAKE_S: Final = 10.0
# The time in which the peer may read the bytes already sent, as without TLS (`linger` in proxy/net/sockets.py).
SHUTDOWN_S: Final = 30.0
# Certificates are renewed days before they expire. A check costs a system call for each file.
CHECK_EVERY_S: Final = 10.0

# OpenSSL's reasons for a peer that speaks no TLS at all, and for errors that the peer's settings cause.
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

# Inode, modification time and size of a file.
FileVersion = tuple[int, int, int]


class Certificates:
    """One side's TLS context, made from its files."""

    def __init__(
        self,
        name: str,
        files: Iterable[Path | None],
        make: Callable[[], ssl.SSLContext],
        clock: Callable[[], float],
        shown: Path | None = None,
    ) -> None:
        """`shown` is the certificate whose end is reported. Raises ConfigError if the files cannot be used."""
        self._name = name
        self._files = tuple(path for path in files if path is not None)
        self._make = make
        self._clock = clock
        self._shown = shown
        self._checked_at = clock()
        # Taken before the files are read: a change during the read is then noticed at the next check.
        self._versions = self._file_versions()
        # The end of the certificate that is shown, in seconds since 1970; None where nobody knows.
        self.end: float | None = None
        self._context = self._read()

    @classmethod
    def of_listener(cls, name: str, tls: ListenerTls, clock: Callable[[], float]) -> Certificates:
        """Return the certificates that a listener shows to clients."""
        files = tls.certificate, tls.key, tls.client_ca
        return cls(name, files, lambda: _server_context(tls), clock, tls.certificate)

    @classmethod
    def of_upstream(cls, tls: UpstreamTls, clock: Callable[[], float]) -> Certificates:
        """Return the authorities trusted for the backend, and the certificate shown to it."""
        return cls("backend", (tls.ca, tls.certificate, tls.key), lambda: _client_context(tls), clock)

    def context(self) -> ssl.SSLContext:
        """Return the context for a connection that begins now."""
        now = self._clock()
        if now - self._checked_at >= CHECK_EVERY_S:
            self._checked_at = now
            if self._file_versions() != self._versions:
                self.reload()
        return self._context

    def reload(self) -> None:
        """Read the files again. If they cannot be used, the context made before stays in use."""
        self._versions = self._file_versions()
        try:
            self._context = self._read()
        except ConfigError as error:
            log.error("%s; the certificates read before stay in use", error)  # noqa: TRY400 - it says all there is
        else:
            log.info("%s: the certificates were reloaded", self._name)

    def _read(self) -> ssl.SSLContext:
        try:
            context = self._make()
            end = None if self._shown is None else _end_of(self._shown)
        except ssl.SSLError as error:
            files = ", ".join(map(str, self._files))
            raise ConfigError(f"{self._name}: {files}: not usable for TLS: {error.reason or error}") from error
        except OSError as error:
            raise ConfigError(f"{self._name}: {error.filename or self._files}: {error.strerror}") from error
        self.end = end
        return context

    def _file_versions(self) -> tuple[FileVersion | None, ...]:
        return tuple(map(_file_version, self._files))


def why_no_handshake(error: Exception) -> str:
    """Return why a handshake failed, in words for a log."""
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


def _end_of(path: Path) -> float | None:
    """The end of a file's first certificate; None if it has a form of OpenSSL's own, which is valid too."""
    try:
        # Python has no other function for one's own certificate: `ssl` tells the end of the other side's alone.
        return ssl.cert_time_to_seconds(str(_test_decode_cert(path)["notAfter"]))
    except (ssl.SSLError, ValueError):
        return None


def _trust(context: ssl.SSLContext, authorities: Path) -> None:
    context.load_verify_locations(authorities)


def _no_password() -> str:
    """An encrypted key is an error: OpenSSL would ask for its password on the terminal."""
    return ""


def _file_version(path: Path) -> FileVersion | None:
    """Return values that differ between a file's versions, also if the path is a link that leads elsewhere now."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size

"""Contexts and credentials by python-gssapi, which comes with the extra starpruner[kerberos]. Calls may block.

Keys are read from their keytab at each login, so a new keytab needs no restart. Tickets of our own are kept in
memory; MIT's library asks for new ones by the keytab when half of their time is over, or when there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

from proxy.extras import how_to_install
from proxy.kerberos.context import Unwrapped
from proxy.kerberos.delegation import ClientTickets
from proxy.kerberos.errors import KerberosError, KerberosMissingError
from proxy.kerberos.principals import Principal, parse_principal
from proxy.kerberos.ticket_caches import TICKET_CACHES

# Passwords of directories are shorter; a bound before one is hashed.
_PASSWORD_BYTES_MAX: Final = 1024
# Negotiation of mechanisms, which HTTP has (RFC 4178).
_SPNEGO: Final = "1.3.6.1.5.5.2"


@cache
def library() -> Any:
    """Return python-gssapi. Raises KerberosMissingError."""
    try:
        import gssapi  # noqa: PLC0415 - an extra
    except (ImportError, OSError) as error:
        raise KerberosMissingError(
            f"[kerberos] needs python-gssapi and MIT's libgssapi ({error}): {how_to_install('kerberos')}"
        ) from error
    return gssapi


class GssContext:
    """A context of python-gssapi. The first step acquires the credentials."""

    def __init__(self, begin: Callable[[], Any], advice: str = "") -> None:
        """`advice` is added to an error of the first step, which asks the KDC."""
        self._begin = begin
        self._advice = advice
        self._context: Any = None

    @property
    def is_complete(self) -> bool:
        """See Context."""
        if self._context is None:
            return False
        with _mapped_errors():
            return bool(self._context.complete)

    @property
    def initiator(self) -> str:
        """See Context."""
        with _mapped_errors():
            if library().RequirementFlag.anonymity in self._context.actual_flags:
                raise KerberosError("the client is anonymous")
            return str(self._context.initiator_name)

    @property
    def delegated(self) -> Any | None:
        """See Context."""
        with _mapped_errors():
            return self._context.delegated_creds

    @property
    def can_check_integrity(self) -> bool:
        """See Context."""
        flag = library().RequirementFlag
        # The order of tokens is checked too: without it a token could be replayed. MIT's library finds replays by
        # the order, so the flag of replay detection is not needed; Cyrus does not ask for it.
        return {flag.integrity, flag.out_of_sequence_detection} <= set(self._context.actual_flags)

    @property
    def can_encrypt(self) -> bool:
        """See Context."""
        return library().RequirementFlag.confidentiality in self._context.actual_flags

    @property
    def knows_peer(self) -> bool:
        """See Context."""
        return library().RequirementFlag.mutual_authentication in self._context.actual_flags

    def step(self, token: bytes) -> bytes:
        """See Context."""
        with _mapped_errors():
            if self._context is None:
                self._context = self._begin()
                # An error ends the login here and now, with its own words.
                self._context.__DEFER_STEP_ERRORS__ = False
        try:
            with _mapped_errors():
                return bytes(self._context.step(token or None) or b"")
        except KerberosError as error:
            raise KerberosError(f"{error}{'' if token else self._advice}") from None

    def wrap(self, data: bytes, *, encrypts: bool) -> bytes:
        """See Context."""
        with _mapped_errors():
            message, was_encrypted = self._context.wrap(data, encrypts)
        if encrypts and not was_encrypted:
            raise KerberosError("the library did not encrypt")
        return bytes(message)

    def unwrap(self, token: bytes) -> Unwrapped:
        """See Context."""
        with _mapped_errors():
            data, was_encrypted, _ = self._context.unwrap(token)
        return Unwrapped(bytes(data), bool(was_encrypted))

    def data_bytes_max(self, token_bytes_max: int, *, encrypts: bool) -> int:
        """See Context."""
        with _mapped_errors():
            return int(self._context.get_wrap_size_limit(token_bytes_max, encrypts))


def acceptor_context(
    principal: Principal, keytab: Path, *, negotiates: bool = False, delegates: bool = False
) -> GssContext:
    """A context in which a client logs in to this principal, whose key is in the keytab.

    Kerberos alone is taken, whatever mechanisms are installed; with `negotiates`, also within SPNEGO. With
    `delegates`, the principal can act as the client afterwards: by the client's own ticket if that is forwardable
    (S4U2Proxy; the KDC is asked only then), or by a ticket-granting ticket that the client sends along.
    """

    def begin() -> Any:
        gssapi = library()
        _expect_readable(keytab)
        mechanisms = [_kerberos(), gssapi.OID.from_int_seq(_SPNEGO)] if negotiates else [_kerberos()]
        credentials = gssapi.Credentials(
            name=_name(principal),
            usage="both" if delegates else "accept",
            store=_keys(keytab) | (_tickets(principal, keytab) if delegates else {}),
            mechs=mechanisms,
        )
        return gssapi.SecurityContext(creds=credentials, usage="accept")

    return GssContext(begin)


def initiator_context(own: Principal, keytab: Path, peer: Principal) -> GssContext:
    """A context in which we log in to another principal as our own, by the key in the keytab."""

    def begin() -> Any:
        gssapi = library()
        _expect_readable(keytab)
        credentials = gssapi.Credentials(
            name=_name(own), usage="initiate", store=_tickets(own, keytab), mechs=[_kerberos()]
        )
        return _initiator(credentials, peer)

    return GssContext(begin)


def delegated_context(tickets: ClientTickets, peer: Principal) -> GssContext:
    """A context in which we log in to a principal as the client whose tickets these are."""

    def begin() -> Any:
        try:
            left_s = tickets.credentials.lifetime
        except library().exceptions.ExpiredCredentialsError:
            left_s = 0
        # None is a lifetime without an end.
        if left_s is not None and left_s <= 0:
            raise KerberosError(f"the ticket of {tickets.client} has ended: log in anew, and connect again")
        return _initiator(tickets.credentials, peer)

    advice = (
        f"; the KDC has to let {tickets.acting} delegate to {peer}, and the client's ticket has to be forwardable "
        "(kinit -f)"
    )
    return GssContext(begin, advice)


def check_password(user: str, password: bytes, service: Principal, keytab: Path) -> ClientTickets:
    """Let the KDC check a password, and return the user's tickets. Raises KerberosError.

    A ticket to `service`, whose key is in the keytab, proves that the KDC is the true one.
    """
    if not user or not password or len(password) > _PASSWORD_BYTES_MAX:
        raise KerberosError("a name and a password are needed")
    gssapi = library()
    with _mapped_errors():
        _expect_readable(keytab)
        name = gssapi.Name(user, gssapi.NameType.user)
        acquired = gssapi.raw.acquire_cred_with_password(name, password, usage="initiate", mechs=[_kerberos()])
        credentials = gssapi.Credentials(acquired.creds)
        client = gssapi.SecurityContext(name=_name(service), creds=credentials, usage="initiate", mech=_kerberos())
        keys = gssapi.Credentials(name=_name(service), usage="accept", store=_keys(keytab), mechs=[_kerberos()])
        server = gssapi.SecurityContext(creds=keys, usage="accept")
        _ = server.step(client.step())
        if not server.complete:
            raise KerberosError("the KDC's ticket proved nothing")
        principal = parse_principal(str(server.initiator_name))
        return ClientTickets(principal, principal, credentials)


def _name(principal: Principal) -> Any:
    gssapi = library()
    return gssapi.Name(str(principal), gssapi.NameType.kerberos_principal)


def _kerberos() -> Any:
    return library().MechType.kerberos


def _keys(keytab: Path) -> dict[str, str]:
    return {"keytab": f"FILE:{keytab}"}


def _tickets(own: Principal, keytab: Path) -> dict[str, str]:
    """Our own tickets. With the keytab beside the cache, the library renews them."""
    return {"client_keytab": f"FILE:{keytab}", "ccache": TICKET_CACHES.name_for(own, keytab)}


def _initiator(credentials: Any, peer: Principal) -> Any:
    flag = library().RequirementFlag
    flags = [
        flag.mutual_authentication,
        flag.integrity,
        flag.confidentiality,
        flag.replay_detection,
        flag.out_of_sequence_detection,
    ]
    return library().SecurityContext(
        name=_name(peer), creds=credentials, usage="initiate", mech=_kerberos(), flags=flags
    )


def _expect_readable(keytab: Path) -> None:
    """Raise KerberosError with a sentence: the library's own words for a missing keytab name no file."""
    try:
        with keytab.open("rb"):
            return
    except OSError as error:
        raise KerberosError(f"the keytab {keytab} cannot be read: {error.strerror}") from None


@contextmanager
def _mapped_errors() -> Iterator[None]:
    try:
        yield
    except library().exceptions.GSSError as error:
        raise KerberosError(_words(error)) from None
    except (UnicodeError, ValueError, OSError) as error:
        # A name that cannot be encoded, a text that is no token, a file. The type alone: a text may be a secret's.
        raise KerberosError(f"{type(error).__name__} in a step of the login") from None


def _words(error: Any) -> str:
    """The library's reasons in one line: the general one, then the mechanism's own."""
    try:
        said = [
            *error.get_all_statuses(error.maj_code, is_maj=True),
            *error.get_all_statuses(error.min_code, is_maj=False),
        ]
    except Exception:  # noqa: BLE001 - the words are for a log; the error itself has been mapped
        said = [type(error).__name__]
    return "; ".join(" ".join(str(words).split()) for words in said)

"""The login of a client: SASL GSSAPI (RFC 4752) as the server sees it. Steps may wait for files or a KDC."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol, TypeAlias

from proxy.kerberos.context import Context
from proxy.kerberos.delegation import DelegatedCredentials, tickets_of_login
from proxy.kerberos.errors import KerberosError
from proxy.kerberos.name_rules import NameRules
from proxy.kerberos.principals import Principal, parse_principal
from proxy.kerberos.protection import ChosenProtection, Protection, decode_selection, encode_offer
from proxy.kerberos.security_layer import SecurityLayer
from proxy.wire.sasl import plain_response

# Kerberos takes one token from each side; negotiation and errors of clocks a few more.
_TOKENS_MAX: Final = 8

# The password of hive-jdbc for a server that wants one but does not check it.
UNCHECKED_PASSWORD: Final = "anonymous"  # noqa: S105 - it is no secret


@dataclass(frozen=True)
class Challenge:
    """The server's next message; the client has to answer it."""

    token: bytes = field(repr=False)


@dataclass(frozen=True)
class Accepted:
    """The client has proven who it is."""

    # The login of other connections in the client's name, as a PLAIN response. A secret where it has a password.
    credentials: bytes = field(repr=False)
    # None: frames come as they are.
    layer: SecurityLayer | None = None


LoginStep: TypeAlias = Challenge | Accepted


class ClientLogin(Protocol):
    """The login of one client, by any mechanism."""

    @property
    def checks_password(self) -> bool:
        """True if a step asks the KDC about a password."""
        ...

    def step(self, response: bytes) -> LoginStep:
        """Take the client's response. It may wait for a file or a KDC. Raises KerberosError."""
        ...


class _State(Enum):
    CONTEXT = "a token of the context"
    OFFER = "an empty response, after the last token of ours"
    SELECTION = "the selected protection"
    OVER = "nothing"


class GssapiLogin:
    """A login by GSSAPI."""

    checks_password: Final = False

    def __init__(
        self,
        context: Callable[[], Context],
        protections: Collection[Protection],
        rules: NameRules,
        data_bytes_max: int,
        delegates_to: Principal | None = None,
    ) -> None:
        """`context` begins a context, with the first step; `data_bytes_max` bounds a call of the client.

        `delegates_to` is the principal that is to act for the client by its tickets, if there is one.
        """
        self._begin = context
        self._context: Context | None = None
        self._protections = protections
        self._rules = rules
        self._data_bytes_max = data_bytes_max
        self._delegates_to = delegates_to
        self._offered: frozenset[Protection] = frozenset()
        self._state = _State.CONTEXT
        self._tokens = 0

    def step(self, response: bytes) -> LoginStep:
        """See ClientLogin."""
        state, self._state = self._state, _State.OVER
        if state is _State.CONTEXT:
            return self._take_token(response)
        if self._context is None or state is _State.OVER:
            raise KerberosError("the login is over")
        if state is _State.OFFER:
            if response:
                raise KerberosError("expected an empty response, since the login needs no further token")
            return self._offer(self._context)
        return self._select(self._context, response)

    def _take_token(self, token: bytes) -> LoginStep:
        self._tokens += 1
        if self._tokens > _TOKENS_MAX:
            raise KerberosError(f"the login took more than {_TOKENS_MAX} tokens")
        if not token and self._context is None:
            # A client without a first response waits for a challenge.
            self._state = _State.CONTEXT
            return Challenge(b"")
        self._context = context = self._context or self._begin()
        answer = context.step(token)
        if not context.is_complete:
            self._state = _State.CONTEXT
            return Challenge(answer)
        if not answer:
            return self._offer(context)
        self._state = _State.OFFER
        return Challenge(answer)

    def _offer(self, context: Context) -> LoginStep:
        possible = {
            Protection.AUTH: True,
            Protection.INTEGRITY: context.can_check_integrity,
            Protection.CONFIDENTIALITY: context.can_encrypt and context.can_check_integrity,
        }
        self._offered = frozenset(each for each in self._protections if possible[each])
        if not self._offered:
            raise KerberosError("the client's login can protect nothing, and kerberos.qop asks for that")
        self._state = _State.SELECTION
        return Challenge(context.wrap(encode_offer(self._offered), encrypts=False))

    def _select(self, context: Context, response: bytes) -> LoginStep:
        selection = decode_selection(context.unwrap(response).data, self._offered)
        initiator = context.initiator
        if selection.authorization not in ("", initiator):
            raise KerberosError(
                f"{initiator} cannot act for {selection.authorization[:100]!r} by SASL; "
                "hive.server2.proxy.user can, where [proxy_users] says so"
            )
        client = parse_principal(initiator)
        short_name = self._rules.short_name(client)
        if self._delegates_to is None:
            credentials = plain_response(short_name, UNCHECKED_PASSWORD)
        else:
            tickets = tickets_of_login(client, self._delegates_to, context.delegated)
            credentials = DelegatedCredentials.with_tickets(short_name, tickets)
        return Accepted(credentials, self._layer(context, selection))

    def _layer(self, context: Context, selection: ChosenProtection) -> SecurityLayer | None:
        if selection.protection is Protection.AUTH:
            return None
        return SecurityLayer(
            context,
            encrypts=selection.protection.encrypts,
            peer_token_bytes_max=selection.token_bytes_max,
            data_bytes_max=self._data_bytes_max,
        )

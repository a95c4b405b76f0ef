"""Explanations and partition plans on request, each in a backend session of its own, opened as the caller."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated
from uuid import uuid4

import msgspec
from msgspec import Meta

from proxy.backends.pool import BackendPool
from proxy.config.config import Config
from proxy.kerberos.client_login import UNCHECKED_PASSWORD
from proxy.kerberos.errors import KerberosError, sentence_for_client
from proxy.net.login_threads import password_check_in_thread, step_within_s
from proxy.net.own_host import own_host
from proxy.operations.session_port import SessionOpening
from proxy.session.explain.partition_plan import PartitionPlanView, partition_plan
from proxy.session.explain.view import ExplainView, view
from proxy.session.session import Session
from proxy.session.shared_state import SharedState
from proxy.upstream.client import BackendClient, Login
from proxy.upstream.dialer import Dialer
from proxy.upstream.errors import BackendError, LoginError
from proxy.wire.sasl import plain_user

log = logging.getLogger(__name__)

# The user and the password of a request that names none, as in beeline without -n and -p. PLAIN refuses an empty
# password before the backend sees it.
ANONYMOUS = "anonymous"


class ExplainRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of POST /explain."""

    sql: str
    database: str | None = None
    run_key_queries: bool = True


class PartitionsRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The query of GET /partitions."""

    table: Annotated[str, Meta(description="A table's name, as a statement writes it.")]
    filter: Annotated[str, Meta(description="A condition on its partition columns, as behind WHERE.")] = "TRUE"
    database: Annotated[str, Meta(description="The database of a name without one; the user's own if empty.")] = ""


async def partitions_as_user(  # noqa: PLR0913 - the request, its user, and the parts that answer it
    config: Config,
    request: PartitionsRequest,
    user: str,
    password: str,
    shared: SharedState,
    *,
    backends: BackendPool,
    slots: asyncio.Semaphore | None = None,
) -> PartitionPlanView:
    """The plan of a filter on a table's partitions, as this user may list them. Raises BackendError."""
    async with logged_in(config, user, password, request.database or None, backends) as client:
        session = _session_of(client, shared)
        return await client.drive(partial(partition_plan, session, request.table, request.filter), slots)


async def explain_as_user(  # noqa: PLR0913 - the request, its user, and the parts that answer it
    config: Config,
    request: ExplainRequest,
    user: str,
    password: str,
    shared: SharedState,
    *,
    backends: BackendPool,
    slots: asyncio.Semaphore | None = None,
) -> ExplainView:
    """Explain the decision about a statement of this user. Raises BackendError.

    `slots` limits the key queries that run at once, together with those of clients' statements.
    """
    async with logged_in(config, user, password, request.database, backends) as client:
        session = _session_of(client, shared)
        explaining = partial(session.explain, request.sql, run_key_queries=request.run_key_queries)
        decision = await client.drive(explaining, slots)
    return view(decision)


def _session_of(client: BackendClient, shared: SharedState) -> Session:
    """The session that the proxy has opened. No client's statement runs in it, so its lists are the user's."""
    opened = SessionOpening(owner=uuid4().hex, user=client.user, login=client.user)
    return Session(shared, opened, is_own=True)


async def check_login(config: Config, user: str, password: str, backends: BackendPool) -> str:
    """Let the backend check a password: open a session as that user, and close it. Raises BackendError.

    Return the name of the session's user, which the history has too: with [kerberos] the short name.
    """
    async with logged_in(config, user, password, None, backends) as client:
        return client.user


@asynccontextmanager
async def logged_in(
    config: Config, user: str, password: str, database: str | None, backends: BackendPool
) -> AsyncIterator[BackendClient]:
    """A session of this user in a database. Raises BackendError."""
    user, password, credentials = await _checked_login(config, user, password)
    search = backends.search(user)
    lease = search.next_lease()
    if lease is None:
        raise BackendError(f"cannot reach the backend {backends.display_name}: {search.reason}")
    dialer = Dialer(config.upstream(), config.proxy.connect_timeout_s)
    acts_for = user if dialer.upstream.acts_for_clients else None
    login = Login(lease.address, user, password, database, dialer, acts_for, credentials)
    try:
        async with BackendClient(login) as client:
            yield client
    finally:
        lease.release()


async def _checked_login(config: Config, user: str, password: str) -> tuple[str, str, bytes | None]:
    """The name and password for the backend, and the user's credentials if they have more than these.

    If clients log in to the proxy, their passwords are checked here, as [kerberos] says. Raises BackendError.
    """
    logins = config.kerberos.client_logins(own_host(), config.proxy.request_bytes_max)
    if logins is None:
        return user, password, None
    try:
        check = partial(logins.credentials_with_password, user, password.encode())
        credentials = await password_check_in_thread(check, step_within_s(config.proxy.handshake_timeout_s))
    except KerberosError as error:
        log.warning("the login of user %r failed: %r", user, str(error))
        raise LoginError(f"user {user!r}: {sentence_for_client(error)}") from None
    return plain_user(credentials) or "", UNCHECKED_PASSWORD, credentials
